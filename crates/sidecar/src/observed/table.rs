//! A heartbeat table that is observed: owned, borrowed or counted.
//!
//! Contract: as [`SidecarBox`]. A tag other than 0 is the grace, in epochs, that every registration of
//! this process gets; 0 is the watchdog's. The `value` of an observation is the slot, where there is one.
//! Events: `registered`, `recycled` before it when the slot's last owner had died in it, `unregistered`.

use std::sync::Arc;

use bumpless_heartbeat::{
    Handle, HeartbeatError, HeartbeatSnapshot, HeartbeatTable, Label, Observed, Profile, SlotIndex,
    Unit,
};
use bumpless_substrate::clock::monotonic_ns;

use crate::event::{Event, EventKind};
use crate::observation::TALLIED_OP;
use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of a table.
    TableOp {
        /// A beat: tallied, and one in 256 recorded.
        Beat = 0, "beat";
        /// A registration.
        Register = 1, "register";
        /// A registration that was given back.
        Unregister = 2, "unregister";
        /// A unit put in flight.
        Mark = 3, "mark_in_flight";
        /// A unit completed.
        Complete = 4, "clear_in_flight";
        /// A tick of the global epoch by hand.
        Tick = 5, "tick_global_epoch";
        /// A look at a slot.
        Observe = 6, "observe";
    }
}

const _: () = assert!(TableOp::Beat as u16 == TALLIED_OP);

type Result<T> = core::result::Result<T, HeartbeatError>;

/// A table, however it is held.
pub trait AsTable {
    /// The table.
    fn as_table(&self) -> &HeartbeatTable;
}

impl AsTable for HeartbeatTable {
    #[inline]
    fn as_table(&self) -> &HeartbeatTable {
        self
    }
}

impl AsTable for &HeartbeatTable {
    #[inline]
    fn as_table(&self) -> &HeartbeatTable {
        self
    }
}

impl AsTable for Arc<HeartbeatTable> {
    #[inline]
    fn as_table(&self) -> &HeartbeatTable {
        self
    }
}

impl<T: AsTable> Observe for T {
    const KIND: &'static str = "table";
    type Memory = ();

    fn op_name(number: u16) -> Option<&'static str> {
        TableOp::name_of(number)
    }

    fn apply(&self, tag: u32) {
        let table = self.as_table();
        for slot in table.held_slots() {
            set_grace(table, slot as usize, tag);
        }
    }
}

/// A table's calls. Those that are missing here are the inner one's.
impl<T: AsTable> SidecarBox<T> {
    /// As [`HeartbeatTable::register`].
    ///
    /// # Errors
    /// As there.
    pub fn register(&self, pid: u32) -> Result<Handle> {
        self.register_as(pid, Profile::default())
    }

    /// As [`HeartbeatTable::register_as`].
    ///
    /// # Errors
    /// As there.
    pub fn register_as(&self, pid: u32, profile: Profile) -> Result<Handle> {
        let _inside = self.instruments.header().enter();
        let call = |inner: &T| inner.as_table().register_as(pid, profile);
        let registered = self.observed(TableOp::Register, 0, call, found_another);
        if let Ok(handle) = &registered {
            // What was taken over before found the slot with nobody in it.
            let tag = self.instruments.header().tag();
            if tag != 0 {
                set_grace(self.inner.as_table(), handle.slot(), tag);
            }
            self.tell_registered(*handle, profile);
        }
        registered
    }

    /// As [`HeartbeatTable::unregister`].
    ///
    /// # Errors
    /// As there.
    pub fn unregister(&self, handle: Handle) -> Result<()> {
        let _inside = self.instruments.header().enter();
        let has_sink = self.instruments.has_sink();
        let event = has_sink.then(|| self.event(EventKind::Unregistered, handle));
        let call = |inner: &T| inner.as_table().unregister(handle);
        let left = self.observed(TableOp::Unregister, value(handle), call, found_another);
        if let (Ok(()), Some(event)) = (&left, event) {
            self.instruments.tell(event);
        }
        left
    }

    /// As [`HeartbeatTable::beat`], which costs the least of all; observed, it costs one locked operation
    /// more.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn beat(&self, handle: Handle) -> Result<()> {
        let call = |inner: &T| inner.as_table().beat(handle);
        self.tallied(value(handle), call, found_another)
    }

    /// As [`HeartbeatTable::mark_in_flight`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn mark_in_flight<U>(&self, handle: Handle, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        let call = |inner: &T| inner.as_table().mark_in_flight(handle, unit);
        self.observed(TableOp::Mark, value(handle), call, found_another)
    }

    /// As [`HeartbeatTable::clear_in_flight`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn clear_in_flight<U>(&self, handle: Handle, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        let call = |inner: &T| inner.as_table().clear_in_flight(handle, unit);
        self.observed(TableOp::Complete, value(handle), call, found_another)
    }

    /// As [`HeartbeatTable::tick_global_epoch`].
    ///
    /// # Errors
    /// As there.
    pub fn tick_global_epoch(&self) -> Result<u64> {
        let call = |inner: &T| inner.as_table().tick_global_epoch();
        self.observed(TableOp::Tick, 0, call, found_another)
    }

    /// As [`HeartbeatTable::observe`].
    pub fn observe(&self, slot: impl SlotIndex) -> Observed {
        let slot = slot.slot_index();
        let call = |inner: &T| inner.as_table().observe(slot);
        let is_contended = |seen: &Observed| matches!(seen, Observed::InTransition { .. });
        self.observed(TableOp::Observe, slot as u32, call, is_contended)
    }

    /// As [`HeartbeatTable::snapshot`].
    pub fn snapshot(&self, slot: impl SlotIndex) -> Option<HeartbeatSnapshot> {
        match self.observe(slot) {
            Observed::Consistent(snapshot) => Some(snapshot),
            Observed::Vacant | Observed::InTransition { .. } => None,
        }
    }

    fn tell_registered(&self, handle: Handle, profile: Profile) {
        if !self.instruments.has_sink() {
            return;
        }
        let registered = Event {
            label: profile.label,
            value: u16::from(profile.role).into(),
            ..self.event(EventKind::Registered, handle)
        };
        let cells = self.inner.as_table().cells(handle.slot());
        let dead = cells.map(|cells| (cells.verdict.deaths(), cells.verdict.last_dead().pid()));
        if let Some((deaths, pid)) = dead
            && deaths.generation() > 0
            && deaths.generation().wrapping_add(1) == handle.generation()
        {
            self.instruments.tell(Event {
                kind: EventKind::Recycled,
                pid,
                value: deaths.generation().into(),
                ..registered
            });
        }
        self.instruments.tell(registered);
    }

    fn event(&self, kind: EventKind, handle: Handle) -> Event {
        let identity = self.inner.as_table().identity(handle);
        Event {
            slot: handle.slot() as u32,
            generation: handle.generation(),
            pid: std::process::id(),
            table_id: self.inner.as_table().creation_id(),
            label: identity.map_or_else(Label::default, |found| found.registration.profile.label),
            ..Event::new(kind, monotonic_ns())
        }
    }
}

/// The tag is the grace of a slot of this process.
fn set_grace(table: &HeartbeatTable, slot: usize, tag: u32) {
    if let Some(cells) = table.cells(slot) {
        cells.slot.set_grace(u16::try_from(tag).unwrap_or(u16::MAX));
    }
}

#[inline]
fn value(handle: Handle) -> u32 {
    handle.slot() as u32
}

/// Whether the call found that the slot, or the table, is another's.
#[inline]
fn found_another<V>(result: &Result<V>) -> bool {
    result.as_ref().err().is_some_and(is_anothers)
}

#[cold]
fn is_anothers(error: &HeartbeatError) -> bool {
    matches!(
        error,
        HeartbeatError::Fenced { .. }
            | HeartbeatError::StaleHandle { .. }
            | HeartbeatError::Contended { .. }
            | HeartbeatError::Superseded { .. }
            | HeartbeatError::Orphaned { .. }
            | HeartbeatError::TableFull { .. }
    )
}
