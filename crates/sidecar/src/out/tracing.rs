//! Events as `tracing` events.
//!
//! Contract: one `tracing` event for each event, with the target [`TARGET`], the event's name in the field
//! `event`, its time in `time_ns`, and all else that it says in `fields`, as in a line of text. What
//! somebody must look at is a warning; the rest is information.

use crate::event::{Event, EventKind};
use crate::sink::EventSink;

/// The target of all of them.
pub const TARGET: &str = "bumpless";

/// Tells events to the subscriber.
///
/// ```
/// use bumpless_sidecar::Instruments;
/// use bumpless_sidecar::out::tracing::ToTracing;
/// use std::sync::Arc;
///
/// let instruments = Instruments::new().with_events(Arc::new(ToTracing));
/// assert!(instruments.has_sink());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ToTracing;

impl EventSink for ToTracing {
    fn record(&self, event: &Event) {
        let fields = Fields(event);
        let name = event.kind.name();
        let time_ns = event.time_ns;
        if is_warning(event.kind) {
            ::tracing::warn!(target: TARGET, event = name, time_ns, fields = %fields);
        } else {
            ::tracing::info!(target: TARGET, event = name, time_ns, fields = %fields);
        }
    }
}

/// Whether somebody must look at it.
const fn is_warning(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Silent
            | EventKind::Died
            | EventKind::Fenced
            | EventKind::HandedBack
            | EventKind::Quarantined
            | EventKind::Superseded
            | EventKind::LeaseLost
            | EventKind::Disqualified
            | EventKind::RedundancyLost
            | EventKind::StaleOutputRefused
            | EventKind::OutputRefused
            | EventKind::PathDegraded
            | EventKind::Suspended
            | EventKind::PartnerLost
            | EventKind::SwitchOverFailed
            | EventKind::SwitchTestFailed
            | EventKind::CheckpointRefused
            | EventKind::NoBallot
            | EventKind::AlarmRaised
            | EventKind::PolicyPanicked
    )
}

/// `slot=3 generation=2 …`; made only if a subscriber asks.
struct Fields<'e>(&'e Event);

impl core::fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, (name, value)) in self.0.fields().into_iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{name}={value}")?;
        }
        Ok(())
    }
}
