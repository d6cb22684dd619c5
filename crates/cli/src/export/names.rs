//! The names, kinds and help texts of what is exported.
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
    /// One sentence for people.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                help: $help,
            };
        )*
    };
}

metrics! {
    SLOTS = "bumpless_slots", Gauge,
        "Slots of the table by state: live, fenced, in_transition, vacant.";
    BEAT_LAG_EPOCHS = "bumpless_beat_lag_epochs", Gauge,
        "The longest time since the last beat of a live owner, in epochs.";
    UNITS_IN_FLIGHT = "bumpless_units_in_flight", Gauge,
        "Units of work in flight in all slots.";
    GLOBAL_EPOCH = "bumpless_global_epoch", Counter,
        "The table's epoch: how often a watchdog has ticked it.";
    REGISTRATIONS = "bumpless_registrations_total", Counter,
        "Registrations that this process observed.";
    DEATHS = "bumpless_deaths_total", Counter,
        "Owners found dead (died) or late beyond their grace (silent), each once.";
    FENCED = "bumpless_fenced_total", Counter,
        "Owners that were fenced.";
    HANDED_BACK_UNITS = "bumpless_handed_back_units_total", Counter,
        "Units of work that were handed back.";
    ACKNOWLEDGED_UNITS = "bumpless_acknowledged_units_total", Counter,
        "Units of work that somebody took over.";
    WATCHDOG_PRIMARY = "bumpless_watchdog_primary", Gauge,
        "Whether this process's watchdog holds the lease: 1 or 0.";
    ELECTION_TERM = "bumpless_election_term", Counter,
        "The highest term of an election that this process observed.";
    STANDBY_ROLE = "bumpless_standby_role", Gauge,
        "Whether a standby's node is the primary: 1 or 0.";
    REDUNDANCY_LOST = "bumpless_redundancy_lost", Gauge,
        "Whether the node's pair survives no failure: 1 or 0.";
    PATHS_DEGRADED = "bumpless_paths_degraded", Gauge,
        "Paths between the nodes that are silent while the partner lives.";
    STALE_OUTPUTS_REFUSED = "bumpless_stale_outputs_refused_total", Counter,
        "Outputs of a former primary that an actuator refused.";
    EVENTS = "bumpless_events_total", Counter,
        "Events by name.";
}
