//! The consumer's side of an [`ObservationRing`]: taking observations, and sleeping until there are some.
//!
//! Contract: one consumer at a time, whoever it is: within a process a lock that is only tried, between
//! processes a lock of the file, which the kernel drops with its holder. (In the portable tier files have no
//! such lock; there the caller sees to it.)

use core::time::Duration;
use std::sync::{Arc, PoisonError, TryLockError};

use bumpless_substrate::futex;

use super::{Memory, ObservationRing};
use crate::observation::{OBSERVATION_WORDS, Observation};
use crate::ring::cursor::{Cursor, Vigil};
use crate::ring::doorbell::{self, Doorbell};
use crate::ring::protocol::{Drained, Mode, PATIENCE_NS};

/// The slot lock of a ring's file that its consumer holds.
const CONSUMER_LOCK: u32 = 0;

const ELSEWHERE: Drained = Drained {
    taken: 0,
    skipped: 0,
    overtaken: 0,
    is_elsewhere: true,
};

/// How far it has come.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    vigil: Vigil,
    /// Of a flight recorder.
    cursor: Cursor,
    holds_lock: bool,
}

impl ObservationRing {
    /// Delivers what is there, at most as many observations as fit. Time is an argument: a record that its
    /// producer has not finished is waited for, over several calls, for [`PATIENCE_NS`]; then it is skipped.
    ///
    /// Each observation is delivered once, also when the delivery panics; after the death of a consumer in
    /// another process up to 32 are delivered again.
    pub fn drain(&self, now_ns: u64, deliver: &mut dyn FnMut(Observation)) -> Drained {
        let mut consumer = match self.consumer.try_lock() {
            Ok(consumer) => consumer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return ELSEWHERE,
        };
        if self.is_inherited() || !self.may_consume(&mut consumer) {
            return ELSEWHERE;
        }
        let mut deliver = |words| deliver(Observation::from_words(words));
        match self.mode() {
            Mode::Lossless => self.ring().drain(&mut consumer.vigil, now_ns, &mut deliver),
            Mode::FlightRecorder => self.follow(&mut consumer.cursor, now_ns, &mut deliver),
        }
    }

    /// Whether no other process drains the ring's file.
    fn may_consume(&self, consumer: &mut Consumer) -> bool {
        let Memory::File(shared) = &self.memory else {
            return true;
        };
        if shared.mode == Mode::Lossless && !consumer.holds_lock {
            let locks = shared.region().locks();
            consumer.holds_lock =
                locks.is_some_and(|locks| locks.try_lock(CONSUMER_LOCK).unwrap_or(false));
            return consumer.holds_lock;
        }
        // A fork child has its parent's lock, and is not its parent.
        shared.mode == Mode::FlightRecorder || !self.guard.is_forked()
    }

    fn follow(
        &self,
        cursor: &mut Cursor,
        now_ns: u64,
        deliver: &mut dyn FnMut([u64; OBSERVATION_WORDS]),
    ) -> Drained {
        let ring = self.ring();
        let before = *cursor;
        for _ in 0..ring.capacity() {
            let Some((_, words)) = ring.read(cursor, now_ns, PATIENCE_NS) else {
                break;
            };
            deliver(words);
        }
        Drained {
            taken: cursor.delivered - before.delivered,
            skipped: cursor.skipped - before.skipped,
            overtaken: cursor.overtaken - before.overtaken,
            is_elsewhere: false,
        }
    }

    /// Has every push of this process into a sleeping ring ring this bell as well, for as long as somebody
    /// else holds it. One bell may serve many rings, and one ring have many bells. Nothing in a fork child.
    pub fn add_doorbell(&self, bell: &Arc<Doorbell>) {
        if self.guard.is_forked() {
            return;
        }
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that only this ring still holds wake nobody.
        bells.retain(|known| Arc::strong_count(known) > 1 && !Arc::ptr_eq(known, bell));
        bells.push(Arc::clone(bell));
    }

    /// For the consumer, when it has found nothing: the next push is to ring the bell. False when something
    /// has come, or somebody else drains.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        let Ok(consumer) = self.consumer.try_lock() else {
            return false;
        };
        match self.mode() {
            Mode::Lossless => self.ring().fall_asleep(),
            Mode::FlightRecorder => self.ring().fall_asleep_at(&consumer.cursor),
        }
    }

    /// For a consumer of this ring alone: sleeps until something is there, or for `timeout`; may return
    /// earlier for no reason. Pushes of other processes wake it if the ring is in a file.
    pub fn wait(&self, timeout: Duration) {
        match &self.memory {
            Memory::File(shared) => {
                let word = &shared.lines[0].doorbell;
                let value = doorbell::value(word);
                if self.fall_asleep() {
                    // Whatever ended it, the caller looks again.
                    let _ = futex::wait(word, value, Some(timeout));
                }
            }
            Memory::Heap { .. } => {
                let bell = Arc::<Doorbell>::default();
                self.add_doorbell(&bell);
                let value = bell.value();
                // A fork child's copy gets nothing.
                if self.is_inherited() || self.fall_asleep() {
                    bell.wait(value, timeout);
                }
            }
        }
    }
}
