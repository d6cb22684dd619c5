//! The heartbeat table: a mapped file in which each process owns one cache line.
//!
//! Contract: no call waits for another process; a call on a slot that is not the caller's any more is
//! an error and changes nothing; a slot is reused only when its owner gave it back or is proven gone,
//! and only when nothing of it waits for an acknowledgement.
//!
//! ```text
//!   owner:    create/open ─ register ─ { beat │ mark_in_flight ─ clear_in_flight }* ─ unregister
//!   observer: open_read_only ─ { observe │ snapshot │ iter_live }*
//!   watchdog: see the failover crate, which works on `cells`, `prove` and the header
//! ```

use core::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bumpless_substrate::claim::Claim;
use bumpless_substrate::fork_guard::ForkGuard;
use bumpless_substrate::keeper::{Keeper, KeeperError};
use bumpless_substrate::region::{Access, Born, Region};
use bumpless_substrate::sync::AtomicU64;
use bumpless_substrate::view::{One, View};

use crate::cells::SlotCells;
use crate::error::HeartbeatError;
use crate::handle::Handle;
use crate::header::{CAPACITY_MAX, FORMAT, HEADER, Places, TableHeader};
use crate::identity_line::{IdentityLine, Label};
use crate::slot::{Slot, SlotError};
use crate::snapshot::SlotRole;
use crate::unit::Unit;
use crate::verdict_line::VerdictLine;

mod refusals;

/// What ties a handle to a table: the low half of its creation id, but neither 0 nor the token of a guard
/// without one.
pub(crate) fn tag(creation_id: u64) -> NonZeroU32 {
    let low = NonZeroU32::new(creation_id as u32);
    low.filter(|low| *low > NonZeroU32::MIN)
        .unwrap_or(NonZeroU32::MAX)
}

/// The result of a table's operation.
pub type Result<T> = core::result::Result<T, HeartbeatError>;

/// A table of heartbeats in shared memory. `Sync`: share it among threads by reference or `Arc`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_heartbeat::HeartbeatTable;
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let me = table.register(std::process::id())?;
/// table.mark_in_flight(me, 5_u8)?; // before the unit is taken
/// table.beat(me)?;
/// table.clear_in_flight(me, 5_u8)?; // the commit: now it can not be handed to anybody else
/// assert_eq!(table.snapshot(me).unwrap().pid, std::process::id());
/// table.unregister(me)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HeartbeatTable {
    pub(crate) region: Arc<Region>,
    pub(crate) header: One<TableHeader>,
    pub(crate) summary: View<AtomicU64>,
    pub(crate) occupancy: View<AtomicU64>,
    pub(crate) slots: View<Slot>,
    pub(crate) identities: View<IdentityLine>,
    pub(crate) verdicts: View<VerdictLine>,
    /// The registrations of this table in this process. Held over all of register and unregister: a
    /// byte lock does not exclude its own process.
    pub(crate) local: Mutex<Local>,
    /// A fork child inherits the table, and must leave the parent's slots alone. Tested before the
    /// lock above is taken: another thread may have held it when the process forked.
    pub(crate) guard: ForkGuard,
}

/// What this process has in the table.
#[derive(Debug, Default)]
pub(crate) struct Local {
    /// Its registrations.
    pub(crate) held: Vec<Handle>,
    /// Its keeper thread: started by the first registration, which tells why if it cannot be.
    pub(crate) keeper: Option<core::result::Result<Keeper, KeeperError>>,
}

/// Opening and replacing.
impl HeartbeatTable {
    /// Creates the table at `path` with mode 0600, or attaches to the one that is there, whose live
    /// registrations stay untouched. A file of an earlier boot that nobody has open is revived: its
    /// dead owners' units are handed back by the next scan.
    ///
    /// # Errors
    /// [`HeartbeatError::Capacity`]; [`HeartbeatError::Region`], also when the table that is there has
    /// another capacity.
    pub fn create(path: impl AsRef<Path>, capacity: usize) -> Result<Self> {
        Self::create_with_access(path, capacity, Access::Private)
    }

    /// As [`create`](Self::create), with the file's mode chosen by hand.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with_access(
        path: impl AsRef<Path>,
        capacity: usize,
        access: Access,
    ) -> Result<Self> {
        let path = path.as_ref();
        let capacity = checked_capacity(path, capacity)?;
        let (region, _born): (Region, Born) =
            Region::create(path, &FORMAT, capacity, access, |_| {})?;
        Self::map(region)
    }

    /// Attaches to the table at `path`, which must have `capacity` slots.
    ///
    /// # Errors
    /// [`HeartbeatError::Region`], [`HeartbeatError::Capacity`].
    pub fn open(path: impl AsRef<Path>, capacity: usize) -> Result<Self> {
        let table = Self::attach(path)?;
        if table.capacity() == capacity {
            return Ok(table);
        }
        Err(HeartbeatError::Capacity {
            path: table.region.path().to_owned(),
            found: capacity,
            limit: table.capacity(),
        })
    }

    /// Attaches to the table at `path`, whatever its capacity.
    ///
    /// # Errors
    /// [`HeartbeatError::Region`].
    pub fn attach(path: impl AsRef<Path>) -> Result<Self> {
        Self::map(Region::attach(path.as_ref(), &FORMAT)?)
    }

    /// Maps the table at `path` to look only: no lock, no write, no right to register.
    ///
    /// # Errors
    /// [`HeartbeatError::Region`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::map(Region::observe(path.as_ref(), &FORMAT)?)
    }

    /// Puts a new, empty table in the place of the one at `path`. Destructive: units in flight in the
    /// old one are not carried over. Its mappings stay valid; every later beat in it is told
    /// [`HeartbeatError::Superseded`], and nothing written there reaches the new one.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn reset(path: impl AsRef<Path>, capacity: usize) -> Result<Self> {
        let path = path.as_ref();
        let capacity = checked_capacity(path, capacity)?;
        let (region, old) =
            Region::reset(path, &FORMAT, capacity, Access::Private, |_| {}, |_, _| {})?;
        if let Some(old) = old {
            old.at::<TableHeader>(HEADER)?.epoch.supersede();
        }
        Self::map(region)
    }

    fn map(region: Region) -> Result<Self> {
        let region = Arc::new(region);
        let capacity = region.capacity();
        let places = Places::of(capacity);
        Ok(Self {
            header: One::new(&region, HEADER)?,
            summary: View::new(&region, places.summary, places.summary_words)?,
            occupancy: View::new(&region, places.occupancy, places.occupancy_words)?,
            slots: View::new(&region, places.slots, capacity)?,
            identities: View::new(&region, places.identities, capacity)?,
            verdicts: View::new(&region, places.verdicts, capacity)?,
            local: Mutex::new(Local::default()),
            guard: if region.is_read_only() {
                ForkGuard::new()
            } else {
                ForkGuard::with_token(tag(region.creation_id()))
            },
            region,
        })
    }
}

/// The owner's operations.
impl HeartbeatTable {
    /// Tells the watchdog that the owner of `handle` is alive and not stuck. Never waits; no system
    /// call, no locked instruction. Cost: three relaxed loads and one store in the table, a load of the
    /// fork guard, and the bounds check.
    ///
    /// # Errors
    /// [`HeartbeatError::Fenced`]: the units in flight were handed back; unregister, then register
    /// anew. [`HeartbeatError::StaleHandle`], [`HeartbeatError::ForkedHandle`],
    /// [`HeartbeatError::Superseded`],
    /// [`HeartbeatError::Orphaned`], [`HeartbeatError::SlotOutOfRange`].
    #[inline(always)]
    pub fn beat(&self, handle: Handle) -> Result<()> {
        if self.beats(handle) {
            Ok(())
        } else {
            // In parts: a handle that is passed whole lies in memory, and every beat would put it there.
            self.beat_or_say_why(handle.live, handle.place)
        }
    }

    /// The beat; false when anything is in its way. Apart from the errors, and always inlined: what can
    /// return one of those is too large for a caller's loop.
    #[inline(always)]
    fn beats(&self, handle: Handle) -> bool {
        match self.slots.get(handle.slot()) {
            Some(slot) => self.gave(handle) && slot.beats(handle.live, self.epoch()),
            None => false,
        }
    }

    /// The beat once more, from the start, with every answer that it can have.
    #[cold]
    #[inline(never)]
    fn beat_or_say_why(&self, live: Claim, place: NonZeroU64) -> Result<()> {
        let handle = Handle { live, place };
        let epoch = self.epoch();
        self.owned(handle)?
            .beat(live, epoch.epoch())
            .map_err(|error| self.named(handle, None, error))?;
        if epoch.is_superseded() {
            Err(self.replaced())
        } else {
            Ok(())
        }
    }

    /// Tells what the next [`beat`](Self::beat) would be told, and stores nothing: for the layers above,
    /// before they act for the owner of `handle`.
    ///
    /// # Errors
    /// As [`beat`](Self::beat).
    #[inline]
    pub fn check(&self, handle: Handle) -> Result<()> {
        let slot = self.owned(handle)?;
        let found = slot.peek_claim();
        if found != handle.live {
            return Err(self.named(handle, None, SlotError::Stale { found }));
        }
        if slot
            .peek_decision(handle.generation())
            .is_none_or(|work| work.is_fenced())
        {
            return Err(self.named(handle, None, SlotError::Fenced));
        }
        if self.epoch().is_superseded() {
            return Err(self.replaced());
        }
        Ok(())
    }

    /// Puts a unit in flight; to be called *before* the unit is taken from wherever it waits. Cost:
    /// one locked CAS.
    ///
    /// # Errors
    /// [`HeartbeatError::UnitOutOfRange`], [`HeartbeatError::AlreadyMarked`], and as
    /// [`beat`](Self::beat).
    #[inline]
    pub fn mark_in_flight<U>(&self, handle: Handle, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        let unit = unit.try_into()?;
        self.owned(handle)?
            .mark(handle.live, unit)
            .map_err(|error| self.named(handle, Some(unit), error))
    }

    /// Completes a unit: the commit. To be called *after* its result is published; if it succeeds, the
    /// unit is done, and nobody else is given it. Cost: one locked CAS.
    ///
    /// # Errors
    /// [`HeartbeatError::Fenced`]: the unit belongs to whoever it was handed back to, and the result
    /// does not count. [`HeartbeatError::NotMarked`], and as [`beat`](Self::beat).
    #[inline]
    pub fn clear_in_flight<U>(&self, handle: Handle, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        let unit = unit.try_into()?;
        self.owned(handle)?
            .complete(handle.live, unit)
            .map_err(|error| self.named(handle, Some(unit), error))
    }

    /// Changes what the owner is for.
    ///
    /// # Errors
    /// [`HeartbeatError::StaleHandle`].
    pub fn set_role(&self, handle: Handle, role: SlotRole) -> Result<()> {
        let local = self.local()?;
        self.still_registered(&local, handle)?.slot.set_role(role);
        Ok(())
    }

    /// Changes the slot's own grace, in epochs; 0 = the watchdog's.
    ///
    /// # Errors
    /// [`HeartbeatError::StaleHandle`].
    pub fn set_grace(&self, handle: Handle, grace_epochs: u16) -> Result<()> {
        let local = self.local()?;
        self.still_registered(&local, handle)?
            .slot
            .set_grace(grace_epochs);
        Ok(())
    }

    /// Changes the label.
    ///
    /// # Errors
    /// [`HeartbeatError::StaleHandle`].
    pub fn set_label(&self, handle: Handle, label: Label) -> Result<()> {
        let local = self.local()?;
        let cells = self.still_registered(&local, handle)?;
        cells.slot.set_label(cells.identity, label);
        Ok(())
    }

    /// The handle's slot in this table, by bounds and table alone.
    #[inline]
    fn owned(&self, handle: Handle) -> Result<&Slot> {
        match self.slots.get(handle.slot()) {
            Some(slot) if self.gave(handle) || self.gave_without_a_guard(handle) => Ok(slot),
            _ => Err(self.not_of_this_table(handle)),
        }
    }

    /// Whether this table gave the handle, to this process, as one load tells. Never in a table that was
    /// opened to look only, also for a handle from another opening of the same file: every store to a
    /// read-only mapping is a fault.
    #[inline(always)]
    fn gave(&self, handle: Handle) -> bool {
        handle.table().is_some_and(|table| self.guard.holds(table))
    }

    /// The same where one load does not tell.
    #[cold]
    fn gave_without_a_guard(&self, handle: Handle) -> bool {
        !self.guard.is_cheap()
            && !self.guard.is_forked()
            && !self.is_read_only()
            && handle.table() == Some(tag(self.region.creation_id()))
    }

    /// The process's own registrations, locked.
    ///
    /// # Errors
    /// [`HeartbeatError::ForkedHandle`].
    pub(crate) fn local(&self) -> Result<MutexGuard<'_, Local>> {
        if self.guard.is_forked() {
            return Err(self.forked());
        }
        // A thread that panicked inside left a list that is still true: each change is one push or
        // one removal.
        Ok(self.local.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cells of a registration of this process, with the local lock held.
    pub(crate) fn still_registered(&self, local: &Local, handle: Handle) -> Result<SlotCells<'_>> {
        let slot = self.owned(handle)?;
        let found = slot.claimed_by();
        match self.cells(handle.slot()) {
            Some(cells) if local.held.contains(&handle) && found == handle.live => Ok(cells),
            _ => Err(self.named(handle, None, SlotError::Stale { found })),
        }
    }
}

impl Drop for HeartbeatTable {
    fn drop(&mut self) {
        // A fork child has nothing to give back.
        let Ok(held) = self.local().map(|local| local.held.clone()) else {
            return;
        };
        for handle in held {
            // A slot that is not ours any more needs nothing from us.
            let _ = self.unregister(handle);
        }
    }
}

fn checked_capacity(path: &Path, capacity: usize) -> Result<u32> {
    match u32::try_from(capacity) {
        Ok(checked) if (1..=CAPACITY_MAX).contains(&capacity) => Ok(checked),
        _ => Err(HeartbeatError::Capacity {
            path: path.to_owned(),
            found: capacity,
            limit: CAPACITY_MAX,
        }),
    }
}
