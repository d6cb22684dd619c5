//! Who grants epochs: each to one node, once, for good.
//!
//! A node wants the next epoch while it is idle, so that a takeover waits for no disk. The driver of the
//! node passes [`Tick::ballot_wanted`](crate::Tick::ballot_wanted) on to an [`Authority`], and the answer
//! back as [`Received::Grant`](crate::message::Received::Grant).

use thiserror::Error;

use crate::epoch::{Epoch, NodeId};
use crate::message::{Action, Grant, Refusal, Reply, Verdict};
use crate::persist::{Store, StoreError};

/// Grants epochs.
pub trait Authority {
    /// Wants an epoch of `node` above `above`. Asking again while an answer is due changes nothing.
    fn want(&mut self, node: NodeId, above: Epoch);

    /// The answer, once.
    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>>;

    /// What must be asked of the actuator in this cycle: an epoch above this one.
    fn asks_actuator(&self) -> Option<Epoch> {
        None
    }

    /// A reply of the actuator.
    fn hear(&mut self, _: &Reply) {}
}

impl<A: Authority + ?Sized> Authority for Box<A> {
    fn want(&mut self, node: NodeId, above: Epoch) {
        (**self).want(node, above);
    }

    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>> {
        (**self).poll()
    }

    fn asks_actuator(&self) -> Option<Epoch> {
        (**self).asks_actuator()
    }

    fn hear(&mut self, reply: &Reply) {
        (**self).hear(reply);
    }
}

/// Why no epoch was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
pub enum AuthorityError {
    /// It could not be made durable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The counter has ended.
    #[error("no epoch is left above {above}")]
    Exhausted {
        /// The level.
        above: Epoch,
    },
    /// The actuator, as the authority, grants none.
    #[error("the actuator grants no epoch: {refusal:?}")]
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// The authority does not answer.
    #[error("the authority does not answer: {0}")]
    Unreachable(String),
}

/// A file of the node's own: the counter of the last epoch that it was granted.
///
/// Epochs of two nodes differ by their owner, so no node needs to see the other's file. It cannot know
/// whether the partner drives, so it never lets a node start alone.
#[derive(Debug)]
pub struct LocalFile<S> {
    store: S,
    answer: Option<Result<Grant, AuthorityError>>,
}

impl<S: Store> LocalFile<S> {
    /// The authority over this store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            answer: None,
        }
    }

    fn grant(&mut self, node: NodeId, above: Epoch) -> Result<Grant, AuthorityError> {
        let counter = match self.store.load()? {
            None => 0,
            Some(bytes) => {
                let counter: [u8; 8] = bytes
                    .as_slice()
                    .try_into()
                    .map_err(|_| StoreError::malformed(&bytes, 8))?;
                u64::from_le_bytes(counter)
            }
        };
        let epoch = above
            .next(counter, node)
            .ok_or(AuthorityError::Exhausted { above })?;
        self.store.save(&epoch.counter().to_le_bytes())?;
        Ok(Grant { epoch })
    }
}

impl<S: Store> Authority for LocalFile<S> {
    fn want(&mut self, node: NodeId, above: Epoch) {
        if self.answer.is_none() {
            self.answer = Some(self.grant(node, above));
        }
    }

    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>> {
        self.answer.take()
    }
}

/// The actuator as the authority: the default for a pair, as it must remember the level anyway.
///
/// The nodes need no disk, and a node alone may start the plant when the actuator knows of no output for
/// a whole timeout.
///
/// ```
/// use bumpless_standby::authority::{Authority, Witness};
/// use bumpless_standby::message::{Action, Reply, Verdict};
/// use bumpless_standby::{Epoch, NodeId};
///
/// let (me, incarnation) = (NodeId(1), 0x5eed);
/// let mut witness = Witness::new(incarnation);
/// witness.want(me, Epoch::NONE);
/// // Sent to the actuator each cycle, until its reply comes:
/// assert_eq!(witness.request::<f64>(), Some((Epoch::NONE, Action::Reserve)));
/// let (epoch, idle_ns) = (Epoch::new(1, me), 30_000_000);
/// witness.receive(&Reply {
///     cluster: 7,
///     node: me,
///     incarnation,
///     actuator: 9,
///     epoch: Epoch::NONE,
///     seq: 1,
///     level: Epoch::NONE,
///     last_seq: 0,
///     verdict: Verdict::Granted { epoch, idle_ns },
/// });
/// assert_eq!(witness.poll().and_then(Result::ok).map(|grant| grant.epoch), Some(epoch));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Witness {
    incarnation: u64,
    wanted: Option<(NodeId, Epoch)>,
    answer: Option<Result<Grant, AuthorityError>>,
}

impl Witness {
    /// For this life of the node.
    #[must_use]
    pub fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            wanted: None,
            answer: None,
        }
    }

    /// The request to send now, as an action with the epoch to exceed; again at each call until answered.
    #[must_use]
    pub fn request<V>(&self) -> Option<(Epoch, Action<V>)> {
        let (_, above) = self.wanted?;
        Some((above, Action::Reserve))
    }

    /// Hands a reply of the actuator over. One to another node or to an earlier life of this one, which
    /// may have used the grant, is ignored, and so is one that neither grants nor says why it never will.
    pub fn receive(&mut self, reply: &Reply) {
        let Some((node, above)) = self.wanted else {
            return;
        };
        if (reply.node, reply.incarnation) != (node, self.incarnation) {
            return;
        }
        let answer = match reply.verdict {
            Verdict::Granted { epoch, .. } if epoch.owner() == node && epoch > above => {
                Ok(Grant { epoch })
            }
            Verdict::Nack(refusal @ (Refusal::NotDurable | Refusal::EpochJump)) => {
                Err(AuthorityError::Refused { refusal })
            }
            _ => return,
        };
        self.wanted = None;
        self.answer = Some(answer);
    }
}

impl Authority for Witness {
    fn want(&mut self, node: NodeId, above: Epoch) {
        if self.answer.is_none() {
            self.wanted = Some((node, above));
        }
    }

    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>> {
        self.answer.take()
    }

    fn asks_actuator(&self) -> Option<Epoch> {
        self.wanted.map(|(_, above)| above)
    }

    fn hear(&mut self, reply: &Reply) {
        self.receive(reply);
    }
}
