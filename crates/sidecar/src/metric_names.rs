//! The names, kinds, labels and help texts of all metrics: one list, for the `metrics` facade here, for an
//! exporter elsewhere, and for `docs/observation.md`.
//!
//! Contract: names follow the conventions of Prometheus: a prefix, base units, `_total` for what only
//! rises. A name never changes its meaning.

/// What a metric's value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What its value does.
    pub kind: MetricKind,
    /// The names of its labels, in order.
    pub labels: &'static [&'static str],
    /// One sentence for people.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All of them.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    SLOTS = "bumpless_slots", Gauge, ["state"],
        "Slots of the table by state: live, fenced, vacant and others.";
    BEAT_LAG_EPOCHS = "bumpless_beat_lag_epochs", Gauge, [],
        "The longest time since the last beat of a live owner, in epochs.";
    UNITS_IN_FLIGHT = "bumpless_units_in_flight", Gauge, [],
        "Units of work in flight in all slots.";
    GLOBAL_EPOCH = "bumpless_global_epoch", Counter, [],
        "The table's epoch: how often a watchdog has ticked it.";
    REGISTRATIONS = "bumpless_registrations_total", Counter, [],
        "Registrations that this process observed.";
    DEATHS = "bumpless_deaths_total", Counter, ["verdict"],
        "Owners found dead (died) or late beyond their grace (silent), each once.";
    FENCED = "bumpless_fenced_total", Counter, [],
        "Owners that were fenced.";
    HANDED_BACK_UNITS = "bumpless_handed_back_units_total", Counter, [],
        "Units of work that were handed back.";
    ACKNOWLEDGED_UNITS = "bumpless_acknowledged_units_total", Counter, [],
        "Units of work that somebody took over.";
    WATCHDOG_PRIMARY = "bumpless_watchdog_primary", Gauge, [],
        "Whether this process's watchdog holds the lease: 1 or 0.";
    LEADER_CHANGES = "bumpless_leader_changes_total", Counter, [],
        "Changes of an election's leader that this process observed.";
    ELECTION_TERM = "bumpless_election_term", Counter, [],
        "The highest term of an election that this process observed.";
    BARRIER_RELEASES = "bumpless_barrier_releases_total", Counter, [],
        "Releases of a barrier, counted by each member in this process.";
    STANDBY_ROLE = "bumpless_standby_role", Gauge, ["node"],
        "Whether a standby's node is the primary: 1 or 0.";
    REDUNDANCY_LOST = "bumpless_redundancy_lost", Gauge, ["node"],
        "Whether the node's pair survives no failure: 1 or 0.";
    PATHS_DEGRADED = "bumpless_paths_degraded", Gauge, ["node"],
        "Paths between the nodes that are silent while the partner lives.";
    STALE_OUTPUTS_REFUSED = "bumpless_stale_outputs_refused_total", Counter, [],
        "Outputs of a former primary that an actuator refused.";
    EVENTS = "bumpless_events_total", Counter, ["event"],
        "Events by name.";
    OPERATIONS = "bumpless_operations_total", Counter, ["instance", "operation"],
        "Operations on an observed instance.";
    CONTENDED = "bumpless_contended_operations_total", Counter, ["instance", "operation"],
        "Of these, those that retried, or found that the thing was another's.";
    OPERATION_SECONDS = "bumpless_operation_seconds", Gauge, ["instance", "operation"],
        "Mean duration of the operations that were timed: one in 256.";
    OBSERVATIONS_LOST = "bumpless_observations_lost_total", Counter, ["instance", "reason"],
        "Observations that found the ring full (dropped), or were never finished (skipped).";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_conventions_and_each_is_there_once() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for Metric {
            name, kind, help, ..
        } in ALL
        {
            let letters = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(letters && name.starts_with("bumpless_"), "{name}");
            assert!(help.ends_with('.'), "{name}");
            // A counter whose value is somebody else's number is named after that number.
            let is_number = name.ends_with("_epoch") || name.ends_with("_term");
            let is_total = *kind == MetricKind::Counter && !is_number;
            assert_eq!(name.ends_with("_total"), is_total, "{name}");
        }
    }

    #[test]
    fn the_documentation_lists_every_metric_with_its_labels_and_no_other() {
        let text = include_str!("../../../docs/observation.md");
        let rows = text.lines().filter(|line| line.starts_with("| `bumpless_"));
        let documented: Vec<_> = rows.collect();
        let wanted = ALL.iter().map(|metric| {
            let labels = metric.labels.join(",");
            let labels = if labels.is_empty() {
                labels
            } else {
                format!("{{{labels}}}")
            };
            let kind = format!("{:?}", metric.kind).to_lowercase();
            format!("| `{}{labels}` | {kind} | {} |", metric.name, metric.help)
        });
        assert_eq!(documented, wanted.collect::<Vec<_>>());
    }
}
