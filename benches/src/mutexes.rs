//! The baselines: what one writes without these crates, in one process.
//!
//! `Whole` is a mutex around clock and records, `PerSlot` one around the clock and one around each
//! record, as the heartbeat tables of other projects are compared with. The standard library's mutex and
//! parking_lot's, behind the one method that both have.

use std::hint::black_box;
use std::sync::PoisonError;

/// What a table of mutexes keeps of one owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record {
    /// Whose it is; 0 = nobody's.
    pub pid: u32,
    /// The clock at the last beat.
    pub last_seen_epoch: u64,
    /// The units in flight.
    pub in_flight: u64,
    /// What it is for.
    pub role: u16,
    /// How often it was taken.
    pub generation: u32,
}

impl Record {
    /// Every field, each seen by the optimizer as used.
    fn use_up(self) {
        black_box(self.pid);
        black_box(self.last_seen_epoch);
        black_box(self.in_flight);
        black_box(self.role);
        black_box(self.generation);
    }
}

/// A mutex of either library.
pub trait Lock<T> {
    /// A mutex around `value`.
    fn around(value: T) -> Self;
    /// Does `work` with the mutex locked.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Lock<T> for std::sync::Mutex<T> {
    fn around(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Lock<T> for parking_lot::Mutex<T> {
    fn around(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }
}

/// One mutex around everything.
#[derive(Debug)]
pub struct Whole<L>(L);

impl<L: Lock<(u64, Vec<Record>)>> Whole<L> {
    /// A table of so many owners, all there.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(L::around((0, vec![present(); count])))
    }

    /// The clock into the record.
    #[inline]
    pub fn beat(&self, index: usize) {
        self.0.with(|(epoch, records)| {
            if let Some(record) = records.get_mut(index) {
                record.last_seen_epoch = *epoch;
            }
        });
    }

    /// A copy of the record.
    #[inline]
    pub fn look(&self, index: usize) {
        let found = self.0.with(|(_, records)| records.get(index).copied());
        if let Some(record) = found {
            record.use_up();
        }
    }

    /// Turns one unit's bit over.
    #[inline]
    pub fn mark(&self, index: usize, unit: u32) {
        self.0.with(|(_, records)| {
            if let Some(record) = records.get_mut(index) {
                record.in_flight ^= 1 << (unit % 64);
            }
        });
    }

    /// The first free record, taken and given back, with all that an owner starts with.
    #[inline]
    pub fn register_and_leave(&self, pid: u32) {
        let index = self.0.with(|(epoch, records)| {
            let index = records.iter().position(|record| record.pid == 0)?;
            let record = records.get_mut(index)?;
            *record = Record {
                pid,
                last_seen_epoch: *epoch,
                generation: record.generation + 1,
                ..Record::default()
            };
            Some(index)
        });
        self.0.with(|(_, records)| {
            if let Some(record) = index.and_then(|index| records.get_mut(index)) {
                record.pid = 0;
            }
        });
    }

    /// Gives one record back.
    pub fn leave(&self, index: usize) {
        self.0.with(|(_, records)| {
            if let Some(record) = records.get_mut(index) {
                record.pid = 0;
            }
        });
    }
}

/// A mutex around the clock and one around each record.
#[derive(Debug)]
pub struct PerSlot<C, L> {
    epoch: C,
    records: Vec<L>,
}

impl<C: Lock<u64>, L: Lock<Record>> PerSlot<C, L> {
    /// A table of so many owners, all there.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            epoch: C::around(0),
            records: (0..count).map(|_| L::around(present())).collect(),
        }
    }

    /// The clock into the record.
    #[inline]
    pub fn beat(&self, index: usize) {
        let now = self.epoch.with(|epoch| *epoch);
        if let Some(record) = self.records.get(index) {
            record.with(|record| record.last_seen_epoch = now);
        }
    }

    /// A copy of the record.
    #[inline]
    pub fn look(&self, index: usize) {
        if let Some(record) = self.records.get(index) {
            record.with(|record| *record).use_up();
        }
    }

    /// Turns one unit's bit over.
    #[inline]
    pub fn mark(&self, index: usize, unit: u32) {
        if let Some(record) = self.records.get(index) {
            record.with(|record| record.in_flight ^= 1 << (unit % 64));
        }
    }

    /// Ticks the clock and counts who missed more than `grace` ticks.
    #[inline]
    pub fn scan(&self, grace: u64) -> usize {
        let now = self.epoch.with(|epoch| {
            *epoch += 1;
            *epoch
        });
        let is_late = |record: &&L| {
            record.with(|record| record.pid != 0 && now - record.last_seen_epoch > grace)
        };
        self.records.iter().filter(is_late).count()
    }
}

fn present() -> Record {
    Record {
        pid: 1,
        generation: 1,
        ..Record::default()
    }
}
