//! Where events go: a black box, a log, counters, or several of them.
//!
//! Contract: recording an event neither fails nor waits for anybody, as far as the caller can see; what
//! could not be recorded is counted by the sink itself. The one who records may be a watchdog in the
//! middle of a scan. A sink that panics all the same loses that event, and harms nobody else.

use core::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::black_box::BlackBox;
use crate::event::Event;

/// Takes events.
///
/// ```
/// use bumpless_sidecar::{Event, EventKind, EventSink};
/// use std::sync::{Arc, Mutex};
///
/// let here = Arc::new(Mutex::new(Vec::new()));
/// let both: Vec<Arc<dyn EventSink>> = vec![here.clone(), here.clone()];
/// both.record(&Event::new(EventKind::LeaseTaken, 17));
/// assert_eq!(here.lock().unwrap().len(), 2);
/// ```
pub trait EventSink: Send + Sync + Debug {
    /// Records one event.
    fn record(&self, event: &Event);
}

/// Records an event; false when the sink panicked, which is its own mistake and not that of the call that
/// is observed.
#[must_use]
pub(crate) fn record_in(sink: &dyn EventSink, event: &Event) -> bool {
    let recorded = catch_unwind(AssertUnwindSafe(|| sink.record(event)));
    // What a panic carries may itself panic when it is dropped.
    recorded.map_err(std::mem::forget).is_ok()
}

/// In shared memory, for whoever looks, also after everybody's death.
impl EventSink for BlackBox {
    fn record(&self, event: &Event) {
        self.record(*event);
    }
}

/// In memory, in order: for tests and small tools.
impl EventSink for Mutex<Vec<Event>> {
    fn record(&self, event: &Event) {
        // A thread that panicked inside left a list of whole events.
        let mut events = self.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(*event);
    }
}

/// To each of them, in order.
impl EventSink for Vec<Arc<dyn EventSink>> {
    fn record(&self, event: &Event) {
        for sink in self {
            sink.record(event);
        }
    }
}
