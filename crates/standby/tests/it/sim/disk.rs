//! Where the simulated nodes and the actuator keep what must survive, and who grants epochs.

use std::cell::RefCell;
use std::rc::Rc;

use bumpless_standby::authority::{Authority, AuthorityError, LocalFile, Witness};
use bumpless_standby::message::Grant;
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{Epoch, NodeId};

/// A disk that outlives its process, and fails when a test says so.
#[derive(Debug, Clone, Default)]
pub struct Disk(Rc<RefCell<Content>>);

#[derive(Debug, Default)]
struct Content {
    bytes: Option<Vec<u8>>,
    /// The system's words, for every call from now on.
    error: Option<&'static str>,
}

impl Disk {
    pub fn fail(&self, error: Option<&'static str>) {
        self.0.borrow_mut().error = error;
    }

    pub fn erase(&self) {
        self.0.borrow_mut().bytes = None;
    }

    pub fn write(&self, bytes: &[u8]) {
        self.0.borrow_mut().bytes = Some(bytes.to_vec());
    }

    fn check(&self, what: &str) -> Result<(), StoreError> {
        match self.0.borrow().error {
            Some(error) => Err(StoreError {
                what: what.to_owned(),
                why: error.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.check("read the record")?;
        Ok(self.0.borrow().bytes.clone())
    }

    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.check("save the record")?;
        self.0.borrow_mut().bytes = Some(bytes.to_vec());
        Ok(())
    }
}

/// Which kind of authority a pair asks.
#[derive(Debug, Clone)]
pub enum Kind {
    LocalFile,
    Witness,
    Central(Central),
}

/// The authority of one life of one node.
#[derive(Debug)]
pub enum Office {
    LocalFile(LocalFile<Disk>),
    Witness(Witness),
    Central(Central, Option<Result<Grant, AuthorityError>>),
}

impl Office {
    pub fn new(kind: &Kind, disk: &Disk, incarnation: u64) -> Self {
        match kind {
            Kind::LocalFile => Self::LocalFile(LocalFile::new(disk.clone())),
            Kind::Witness => Self::Witness(Witness::new(incarnation)),
            Kind::Central(central) => Self::Central(central.clone(), None),
        }
    }
}

impl Authority for Office {
    fn want(&mut self, node: NodeId, above: Epoch) {
        match self {
            Self::LocalFile(file) => file.want(node, above),
            Self::Witness(witness) => witness.want(node, above),
            Self::Central(central, answer) => *answer = Some(central.grant(node, above)),
        }
    }

    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>> {
        match self {
            Self::LocalFile(file) => file.poll(),
            Self::Witness(witness) => witness.poll(),
            Self::Central(_, answer) => answer.take(),
        }
    }
}

/// A counter that both nodes ask, as a consensus store would keep it.
#[derive(Debug, Clone, Default)]
pub struct Central(Rc<RefCell<CentralState>>);

#[derive(Debug, Default)]
struct CentralState {
    counter: u64,
    is_down: bool,
}

impl Central {
    pub fn set_down(&self, is_down: bool) {
        self.0.borrow_mut().is_down = is_down;
    }

    /// As if restored from an old snapshot.
    pub fn roll_back_to(&self, counter: u64) {
        self.0.borrow_mut().counter = counter;
    }

    pub fn counter(&self) -> u64 {
        self.0.borrow().counter
    }

    /// It grants what its counter says, whatever it is asked: the fence is the actuator's, not its own.
    fn grant(&self, node: NodeId, _: Epoch) -> Result<Grant, AuthorityError> {
        let mut state = self.0.borrow_mut();
        if state.is_down {
            return Err(AuthorityError::Unreachable("connection refused".to_owned()));
        }
        state.counter += 1;
        Ok(Grant {
            epoch: Epoch::new(state.counter, node),
        })
    }
}
