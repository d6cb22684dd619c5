//! An actuator with a memory that may fail or be lost.

use bumpless_standby::message::{Action, Reply, Request, Verdict};
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{Actuator, ActuatorConfig, Epoch, NodeId};

pub const A: NodeId = NodeId(0);
pub const B: NodeId = NodeId(1);
pub const JUMP_MAX: u64 = 1024;
pub const CONFIG: ActuatorConfig = ActuatorConfig {
    cluster: 7,
    nodes: [A, B],
    epoch_jump_max: JUMP_MAX,
};

/// What survives a restart, and may fail.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub bytes: Option<Vec<u8>>,
    pub is_full: bool,
}

impl Store for Memory {
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.bytes.clone())
    }

    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if self.is_full {
            let (what, why) = ("save".to_owned(), "no space".to_owned());
            return Err(StoreError { what, why });
        }
        self.bytes = Some(bytes.to_vec());
        Ok(())
    }
}

/// An actuator with its memory. Its lives are numbered.
pub struct Plant {
    pub actuator: Actuator<i64>,
    pub memory: Memory,
    pub now_ns: u64,
}

impl Plant {
    /// Without memory.
    pub fn blank() -> Self {
        let mut memory = Memory::default();
        let actuator = Actuator::start(CONFIG, 1, 0, &mut memory).unwrap();
        Self {
            actuator,
            memory,
            now_ns: 0,
        }
    }

    pub fn at(level: Epoch) -> Self {
        let mut plant = Self::blank();
        plant.actuator.commission(level, &mut plant.memory).unwrap();
        plant
    }

    pub fn restart(&mut self) {
        let life = self.life() + 1;
        self.actuator = Actuator::start(CONFIG, life, self.now_ns, &mut self.memory).unwrap();
    }

    pub fn lose_memory(&mut self) {
        self.memory = Memory::default();
        self.restart();
    }

    pub fn life(&self) -> u64 {
        self.actuator.incarnation()
    }

    pub fn send(&mut self, request: &Request<i64>) -> Option<Reply> {
        self.now_ns += 10;
        self.actuator
            .receive(self.now_ns, request, &mut self.memory)
    }

    /// The verdict on a request of a node that has heard this life of the actuator.
    pub fn ask(&mut self, node: NodeId, epoch: Epoch, seq: u64, action: Action<i64>) -> Verdict {
        let request = Request {
            actuator: self.life(),
            ..request(node, epoch, seq, action)
        };
        self.send(&request).unwrap().verdict
    }

    pub fn drive(&mut self, epoch: Epoch, seq: u64) -> Verdict {
        self.ask(epoch.owner(), epoch, seq, Action::Drive(seq as i64))
    }

    pub fn reserve(&mut self, node: NodeId, above: Epoch) -> Verdict {
        self.ask(node, above, 0, Action::Reserve)
    }

    pub fn granted(&mut self, node: NodeId, above: Epoch) -> Epoch {
        match self.reserve(node, above) {
            Verdict::Granted { epoch, .. } => epoch,
            other => panic!("no grant: {other:?}"),
        }
    }
}

/// Of the node's life 100, which has heard no actuator.
pub fn request(node: NodeId, epoch: Epoch, seq: u64, action: Action<i64>) -> Request<i64> {
    Request {
        cluster: 7,
        node,
        incarnation: 100,
        epoch,
        seq,
        actuator: 0,
        action,
    }
}

pub fn epoch(counter: u64, owner: NodeId) -> Epoch {
    Epoch::new(counter, owner)
}
