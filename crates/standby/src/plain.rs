//! The idea in its smallest form: two nodes, one number as the state, one gate.
//!
//! Each cycle the primary sends its state, and the backup takes it over and counts the cycles without;
//! at `miss_limit` it becomes the primary of the next epoch, and the gate refuses every epoch below.
//! Nothing is sent, stored or measured here: the caller carries heartbeats and outputs.
//!
//! ```text
//!              heartbeat of a higher epoch, or of an equal one and a lower id
//!            ┌──────────────────────────────────────────────────────────────┐
//!            ▼                                                              │
//!         Backup ── miss_limit cycles without a heartbeat: epoch + 1 ──▶ Primary
//! ```
//!
//! It is for reading, teaching and comparison. It survives one clean fault at a time: a crash of the
//! primary, a restart of the backup, a cut that heals. **It does not protect from the following.** The
//! core, [`crate::Node`] with [`crate::Actuator`], does, or bounds it and says by how much.
//!
//! | | what goes wrong here |
//! |---|---|
//! | F1 | two nodes that start without hearing each other both become primary of epoch 1; the gate lets both through |
//! | F2 | a node that restarts has forgotten its epoch, and may use the same one as its partner |
//! | F3 | a backup that knows nothing yet takes over from a healthy primary, with an empty state |
//! | F4 | one late heartbeat, of whatever age, counts as life and puts the takeover off |
//! | F5 | an old heartbeat of the same epoch sets the state back |
//! | F6 | inputs are not matched to cycles: a link slower or faster than one cycle gives a bump at takeover |
//! | F7 | a primary whose outputs are refused, and that hears nobody, stays primary for ever: nothing tells it |
//! | F8 | a pair that restarts behind a gate of a high epoch is refused for ever |
//! | F9 | a gate that restarts accepts every old epoch again |
//! | F10 | one absurd epoch in a heartbeat or an output is believed by all, for good |
//! | F11 | a node that ran alone on dead inputs and raised its epoch wins over the one that drove the plant |
//! | F12 | a node that hears its own heartbeat takes it for its partner's |
//! | F13 | a backup that was itself paused takes its pause for the silence of the primary |
//! | F14 | `miss_limit` is not checked: 0 takes over from a healthy primary, 1 at each lost heartbeat |
//! | F15 | one heartbeat a cycle: of two that arrive, the caller's choice decides |
//! | F16 | a state is taken over unseen: no checksum, range or program check; the caller makes the first primary |
//! | F17 | in the cycle of a takeover both outputs pass, the old epoch first |
//!
//! Nothing overflows: the state stays at its ends, and a node at the last epoch is not promoted.

/// Whether a node's outputs reach the plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It drives.
    Primary,
    /// It follows.
    Backup,
}

/// What the primary sends each cycle: that it lives, and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// The sender.
    pub id: u8,
    /// The sender's epoch.
    pub epoch: u32,
    /// The sender's state after its cycle.
    pub state: i64,
}

/// What the primary writes to the plant each cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Output {
    /// The sender's epoch.
    pub epoch: u32,
    /// The value.
    pub value: i64,
}

/// One of the two nodes. Its control loop is an integrator.
///
/// ```
/// use bumpless_standby::plain::{Actuator, Node, Role};
///
/// let mut primary = Node::new(0, Role::Primary, 3);
/// let mut backup = Node::new(1, Role::Backup, 3);
/// let mut actuator = Actuator::default();
/// let mut sent = None;
/// for _cycle in 1..=10 {
///     backup.tick(5, sent);
///     let (heartbeat, output) = primary.tick(5, None);
///     sent = heartbeat;
///     assert!(output.is_some_and(|output| actuator.drive(output)));
/// }
/// assert_eq!(primary.state, 50);
/// assert_eq!(backup.state, 50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Which of the two; on equal epochs the lower one is primary.
    pub id: u8,
    /// Its role now.
    pub role: Role,
    /// The highest epoch that it knows.
    pub epoch: u32,
    /// The sum of the inputs.
    pub state: i64,
    silent_cycles: u32,
    miss_limit: u32,
}

impl Node {
    /// A node of epoch 0 with an empty state; `miss_limit` in cycles.
    #[must_use]
    pub fn new(id: u8, role: Role, miss_limit: u32) -> Self {
        Self {
            id,
            role,
            epoch: 0,
            state: 0,
            silent_cycles: 0,
            miss_limit,
        }
    }

    /// One cycle, with its input and the heartbeat that came since the last one. A primary returns what
    /// it sends and what it drives, a backup nothing.
    pub fn tick(
        &mut self,
        input: i64,
        received: Option<Heartbeat>,
    ) -> (Option<Heartbeat>, Option<Output>) {
        let primary = received.filter(|heartbeat| self.yields_to(heartbeat));
        if let Some(heartbeat) = primary {
            self.role = Role::Backup;
            self.epoch = heartbeat.epoch;
            self.state = heartbeat.state;
        }
        self.state = self.state.saturating_add(input);
        if self.role == Role::Backup {
            self.silent_cycles = match primary {
                Some(_) => 0,
                None => self.silent_cycles.saturating_add(1),
            };
            if self.silent_cycles >= self.miss_limit {
                self.promote();
            }
        }
        match self.role {
            Role::Backup => (None, None),
            Role::Primary => {
                let (id, epoch, state) = (self.id, self.epoch, self.state);
                let output = Output {
                    epoch,
                    value: state,
                };
                (Some(Heartbeat { id, epoch, state }), Some(output))
            }
        }
    }

    fn yields_to(&self, heartbeat: &Heartbeat) -> bool {
        let ranks_higher = self.role == Role::Backup || heartbeat.id < self.id;
        heartbeat.epoch > self.epoch || (heartbeat.epoch == self.epoch && ranks_higher)
    }

    fn promote(&mut self) {
        if let Some(epoch) = self.epoch.checked_add(1) {
            self.epoch = epoch;
            self.role = Role::Primary;
            self.silent_cycles = 0;
        }
    }
}

/// The gate at the plant: it holds the last output, and refuses every epoch below the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Actuator {
    max_epoch: u32,
    /// Outputs refused.
    pub rejected: u32,
    /// What the plant gets.
    pub last: Option<Output>,
}

impl Actuator {
    /// Applies an output, or returns `false` if it is of an epoch of the past.
    pub fn drive(&mut self, output: Output) -> bool {
        if output.epoch < self.max_epoch {
            self.rejected = self.rejected.saturating_add(1);
            return false;
        }
        self.max_epoch = output.epoch;
        self.last = Some(output);
        true
    }
}
