//! Events, tables and statistics as figures of the `metrics` facade.
//!
//! Contract: names, labels and help texts are those of [`metric_names`](crate::metric_names). Counters
//! follow events as they are told; what is looked up, in a table or in statistics, is set when the caller
//! asks, say once for each scrape.

use ::metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use bumpless_heartbeat::{HeartbeatTable, Observed};

use crate::event::{Event, EventKind};
use crate::metric_names::{self as names, MetricKind};
use crate::sidecar_box::Observe;
use crate::sink::EventSink;
use crate::stats::InstanceStats;

/// Tells the recorder the help texts of all metrics: once, behind its installation.
pub fn describe() {
    for metric in names::ALL {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, Unit::Count, metric.help),
            MetricKind::Gauge if metric.name.ends_with("_seconds") => {
                describe_gauge!(metric.name, Unit::Seconds, metric.help);
            }
            MetricKind::Gauge => describe_gauge!(metric.name, Unit::Count, metric.help),
        }
    }
}

/// Counts events.
///
/// ```
/// use bumpless_sidecar::Instruments;
/// use bumpless_sidecar::out::metrics::{ToMetrics, describe};
/// use std::sync::Arc;
///
/// describe();
/// let instruments = Instruments::new().with_events(Arc::new(ToMetrics));
/// assert!(instruments.has_sink());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ToMetrics;

impl EventSink for ToMetrics {
    fn record(&self, event: &Event) {
        let name = event.kind.name();
        counter!(names::EVENTS.name, "event" => name).increment(1);
        let units = u64::from(event.units().len());
        match event.kind {
            EventKind::Registered => counter!(names::REGISTRATIONS.name).increment(1),
            EventKind::Died | EventKind::Silent => {
                counter!(names::DEATHS.name, "verdict" => name).increment(1);
            }
            EventKind::Fenced => counter!(names::FENCED.name).increment(1),
            EventKind::HandedBack => counter!(names::HANDED_BACK_UNITS.name).increment(units),
            EventKind::Acknowledged => counter!(names::ACKNOWLEDGED_UNITS.name).increment(units),
            EventKind::LeaseTaken => gauge!(names::WATCHDOG_PRIMARY.name).set(1.0),
            EventKind::LeaseLost => gauge!(names::WATCHDOG_PRIMARY.name).set(0.0),
            EventKind::LeaderChanged => {
                counter!(names::LEADER_CHANGES.name).increment(1);
                counter!(names::ELECTION_TERM.name).absolute(event.value);
            }
            EventKind::BarrierReleased => counter!(names::BARRIER_RELEASES.name).increment(1),
            EventKind::StaleOutputRefused => {
                counter!(names::STALE_OUTPUTS_REFUSED.name).increment(1);
            }
            kind => of_node(kind, event.slot),
        }
    }
}

/// What is so of a node from this event on.
fn of_node(kind: EventKind, node: u32) {
    let node = || node.to_string();
    match kind {
        EventKind::Promoted => gauge!(names::STANDBY_ROLE.name, "node" => node()).set(1.0),
        EventKind::Demoted => gauge!(names::STANDBY_ROLE.name, "node" => node()).set(0.0),
        EventKind::RedundancyLost => {
            gauge!(names::REDUNDANCY_LOST.name, "node" => node()).set(1.0);
        }
        EventKind::RedundancyRestored => {
            gauge!(names::REDUNDANCY_LOST.name, "node" => node()).set(0.0);
        }
        EventKind::PathDegraded => {
            gauge!(names::PATHS_DEGRADED.name, "node" => node()).increment(1.0);
        }
        EventKind::PathRestored => {
            gauge!(names::PATHS_DEGRADED.name, "node" => node()).decrement(1.0);
        }
        _ => {}
    }
}

/// Sets what a table shows now. Cost: a look at every slot that may be in use.
pub fn publish_table(table: &HeartbeatTable) {
    let epoch = table.global_epoch();
    let (mut live, mut fenced, mut in_transition, mut units) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut lag_epochs = 0;
    for slot in table.occupancy().iter() {
        match table.observe(slot) {
            Observed::Vacant => {}
            Observed::InTransition { .. } => in_transition += 1,
            Observed::Consistent(snapshot) => {
                units += snapshot.in_flight_bitmap.len();
                if snapshot.is_fenced {
                    fenced += 1;
                } else {
                    live += 1;
                    lag_epochs = lag_epochs.max(epoch.saturating_sub(snapshot.last_seen_epoch));
                }
            }
        }
    }
    let occupied = live + fenced + in_transition;
    let vacant = (table.capacity() as u32).saturating_sub(occupied);
    for (state, slots) in [
        ("live", live),
        ("fenced", fenced),
        ("in_transition", in_transition),
        ("vacant", vacant),
    ] {
        gauge!(names::SLOTS.name, "state" => state).set(f64::from(slots));
    }
    counter!(names::GLOBAL_EPOCH.name).absolute(epoch);
    gauge!(names::BEAT_LAG_EPOCHS.name).set(lag_epochs as f64);
    gauge!(names::UNITS_IN_FLIGHT.name).set(f64::from(units));
}

/// Sets what the statistics of an instance of type `T` say, under a name of the caller's.
pub fn publish_stats<T: Observe>(instance: &str, stats: &InstanceStats) {
    let labels = |name, value: &str| [("instance", instance.to_owned()), (name, value.to_owned())];
    for (number, op) in stats.ops() {
        let labels = labels("operation", T::op_name(number).unwrap_or("other"));
        counter!(names::OPERATIONS.name, &labels).absolute(op.count);
        counter!(names::CONTENDED.name, &labels).absolute(op.contended);
        if let Some(mean_ns) = op.latency.mean_ns() {
            gauge!(names::OPERATION_SECONDS.name, &labels).set(mean_ns as f64 / 1e9);
        }
    }
    for (reason, lost) in [("dropped", stats.dropped), ("skipped", stats.skipped)] {
        counter!(names::OBSERVATIONS_LOST.name, &labels("reason", reason)).absolute(lost);
    }
}
