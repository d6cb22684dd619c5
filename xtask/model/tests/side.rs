//! A node with what stands around it at run time: the driver's authority, its disk, answers that wait.

use bumpless_standby::authority::{Authority as _, LocalFile, Witness};
use bumpless_standby::message::{Grant, Received, Reply, Request};
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{Config, Epoch, Mode, Node, NodeId};

use crate::controller::TrueCycle;
use crate::pair::Message;
use crate::setups::{Authority, Lack};
use crate::shared::Shared;

/// The control cycle; unit: ns.
pub const PERIOD_NS: u64 = 1_000_000;
/// The pair.
pub const CLUSTER: u64 = 1;
/// The two nodes.
pub const IDS: [NodeId; 2] = [NodeId(0), NodeId(1)];

/// One node, with what its driver and its disk hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Side {
    index: usize,
    /// `None`: down.
    pub node: Option<Shared<Node<TrueCycle>>>,
    /// Its last control cycle.
    pub ticks: u64,
    /// How many lives it has had.
    pub lives: u64,
    disk: Disk,
    /// Asks the actuator for epochs, if that is the authority.
    pub witness: Witness,
    granted: Option<Grant>,
    /// What the disk held before the grant that the node has not heard of yet.
    disk_before: Option<Disk>,
    /// Of the actuator, for the next cycle.
    pub answers: Vec<Reply>,
    /// What becomes of these is decided before anything else happens.
    pub outbox: Vec<Request<u64>>,
}

/// Bytes that survive a crash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Disk(Option<Vec<u8>>);

impl Store for &mut Disk {
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.clone())
    }

    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.0 = Some(bytes.to_vec());
        Ok(())
    }
}

impl Side {
    /// Which life of which node: no other life is called the same.
    pub fn life(&self) -> u64 {
        self.index as u64 * 16 + self.lives
    }

    /// In its first life.
    pub fn new(index: usize) -> Self {
        let mut side = Self {
            index,
            node: None,
            ticks: 0,
            lives: 0,
            disk: Disk::default(),
            witness: Witness::new(0),
            granted: None,
            disk_before: None,
            answers: Vec::new(),
            outbox: Vec::new(),
        };
        side.start();
        side
    }

    /// In its next life; its cycles go on with the plant's.
    pub fn start(&mut self) {
        self.lives += 1;
        let life = self.life();
        let node = Node::new(config(self.index), life, TrueCycle(0));
        self.node = Some(Shared::new(node.expect("the settings are valid")));
        self.witness = Witness::new(life);
    }

    /// Whether a grant is on its way from the disk to the node.
    pub fn is_saving(&self) -> bool {
        self.disk_before.is_some()
    }

    /// It ends; a grant on its way is lost with it, and was made durable or not.
    pub fn crash(&mut self, has_saved: bool, lacks: Option<Lack>) {
        self.node = None;
        self.granted = None;
        let before = self.disk_before.take();
        if lacks == Some(Lack::BallotsOnDisk) {
            self.disk = Disk::default();
        } else if let (Some(before), false) = (before, has_saved) {
            self.disk = before;
        }
        self.witness = Witness::new(0);
        // Nobody will ever hear an answer to a life that has ended.
        self.answers.clear();
    }

    /// What the driver hands to the node.
    pub fn receive(&mut self, heard: &[Shared<Message>], answers_first: bool) -> Vec<Received> {
        let granted = self.granted.take().map(|grant| Received::Grant(Ok(grant)));
        self.disk_before = None;
        let heartbeats = heard.iter().filter_map(|message| match message.get() {
            Message::Heartbeat(heartbeat) => Some(Received::Heartbeat {
                path: 0,
                heartbeat: heartbeat.clone(),
            }),
            Message::Request(_) => None,
        });
        let answers = std::mem::take(&mut self.answers);
        for reply in &answers {
            self.witness.receive(reply);
        }
        let answers = answers.into_iter().map(Received::Reply);
        let mut received = Vec::from_iter(granted);
        if answers_first {
            received.extend(answers.chain(heartbeats));
        } else {
            received.extend(heartbeats.chain(answers));
        }
        received.extend(self.witness.poll().map(Received::Grant));
        received
    }

    /// The node wants an epoch.
    pub fn want(&mut self, above: Epoch, authority: Authority) {
        let node = IDS[self.index];
        match authority {
            Authority::Witness => self.witness.want(node, above),
            Authority::File => {
                self.disk_before = Some(self.disk.clone());
                let mut file = LocalFile::new(&mut self.disk);
                file.want(node, above);
                self.granted = file.poll().and_then(Result::ok);
            }
        }
    }
}

fn config(index: usize) -> Config {
    let mut config = Config::new(CLUSTER, IDS[index], IDS[1 - index], PERIOD_NS);
    config.miss_limit = 2;
    config.lease_cycles = 1;
    config.mode = Mode::Hot;
    config.full_every = 1;
    config.part_len_max = 64;
    config.history_cycles = 3;
    config.probe_cycles = 0;
    config.flap_budget = None;
    config
}
