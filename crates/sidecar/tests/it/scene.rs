//! A folder with a table, and boxes whose events can be asked for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_sidecar::{Event, Instruments, Observe, SidecarBox};
use bumpless_substrate::keeper::{OWNER_DIED, WAITERS};
use bumpless_substrate::sync::Ordering;
use tempfile::TempDir;

/// A folder that goes with the test.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn table(&self, capacity: usize) -> HeartbeatTable {
        HeartbeatTable::create(self.path("table"), capacity).expect("a table")
    }
}

/// Events in order.
#[derive(Debug, Clone, Default)]
pub struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    /// A box whose events come here.
    pub fn of<T: Observe>(&self, inner: T) -> SidecarBox<T> {
        let instruments = Instruments::new().with_events(self.0.clone());
        SidecarBox::with_instruments(inner, Arc::new(instruments))
    }

    /// Those since the last call.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().expect("whole"))
    }

    /// The names of those since the last call.
    pub fn take_names(&self) -> Vec<&'static str> {
        self.take().iter().map(|event| event.kind.name()).collect()
    }

    pub fn sink(&self) -> Arc<Mutex<Vec<Event>>> {
        self.0.clone()
    }
}

/// Registers this process.
pub fn register(table: &HeartbeatTable) -> Handle {
    table.register(std::process::id()).expect("a free slot")
}

/// Marks the owner of a slot as the kernel does when its process ends.
pub fn die(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    // Relaxed: one thread.
    let word = cells.slot.keeper_word();
    word.store(OWNER_DIED | WAITERS, Ordering::Relaxed);
}
