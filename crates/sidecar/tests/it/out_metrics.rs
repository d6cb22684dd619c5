//! The `metrics` facade, with a recorder that keeps what it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bumpless_failover::FailoverWatchdog;
use bumpless_sidecar::metric_names;
use bumpless_sidecar::out::metrics::{ToMetrics, describe, publish_stats, publish_table};
use bumpless_sidecar::{Event, EventKind, EventSink, Instruments, Scanner, SidecarBox};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};

use crate::scene::{Scene, register};

type Values = Arc<Mutex<BTreeMap<String, f64>>>;

/// Keeps the value of each metric under `name{label=value}`, and the help texts.
#[derive(Default)]
struct Kept {
    values: Values,
    helps: Mutex<BTreeMap<String, String>>,
}

struct Cell(Values, String);

impl Cell {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.0.lock().expect("whole");
        let value = values.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Cell {
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }

    fn absolute(&self, to: u64) {
        self.change(|value| value.max(to as f64));
    }
}

impl GaugeFn for Cell {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

impl Kept {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let labels = labels.join(",");
        Arc::new(Cell(
            Arc::clone(&self.values),
            format!("{}{{{labels}}}", key.name()),
        ))
    }

    fn describe(&self, name: &KeyName, help: &SharedString) {
        let mut helps = self.helps.lock().expect("whole");
        helps.insert(name.as_str().to_owned(), help.to_string());
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.values.lock().expect("whole").get(name).copied()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn events_a_table_and_statistics_become_figures_under_the_listed_names() {
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        describe();
        let scene = Scene::new();
        let table = scene.table(8);
        let late = register(&table);
        table.mark_in_flight(late, 3_u8).expect("mine");
        table.mark_in_flight(late, 4_u8).expect("mine");
        let instruments = Instruments::new().with_events(Arc::new(ToMetrics));
        let watchdog = SidecarBox::with_instruments(
            FailoverWatchdog::with_grace(&table, 3),
            Arc::new(instruments),
        );
        let mut scanner = Scanner::new();
        let id = scanner.register(&watchdog);
        for _ in 0..6 {
            let _ = watchdog.scan();
        }
        publish_table(&table);
        scanner.scan(1);
        let stats = scanner.stats(id).expect("registered");
        publish_stats::<FailoverWatchdog<'_>>("main", stats);
        for kind in [
            EventKind::Promoted,
            EventKind::RedundancyLost,
            EventKind::PathDegraded,
            EventKind::PathDegraded,
            EventKind::PathRestored,
        ] {
            let event = Event {
                slot: 1,
                ..Event::new(kind, 0)
            };
            ToMetrics.record(&event);
        }
    });
    for (name, value) in [
        ("bumpless_deaths_total{verdict=silent}", 1.0),
        ("bumpless_handed_back_units_total{}", 2.0),
        ("bumpless_fenced_total{}", 1.0),
        ("bumpless_watchdog_primary{}", 1.0),
        ("bumpless_slots{state=live}", 1.0),
        ("bumpless_slots{state=fenced}", 1.0),
        ("bumpless_slots{state=vacant}", 6.0),
        ("bumpless_units_in_flight{}", 2.0),
        ("bumpless_global_epoch{}", 6.0),
        ("bumpless_beat_lag_epochs{}", 0.0),
        (
            "bumpless_operations_total{instance=main,operation=scan}",
            6.0,
        ),
        (
            "bumpless_observations_lost_total{instance=main,reason=dropped}",
            0.0,
        ),
        ("bumpless_standby_role{node=1}", 1.0),
        ("bumpless_redundancy_lost{node=1}", 1.0),
        ("bumpless_paths_degraded{node=1}", 1.0),
    ] {
        assert_eq!(kept.get(name), Some(value), "{name}");
    }
    let helps = kept.helps.lock().expect("whole");
    assert_eq!(helps.len(), metric_names::ALL.len());
    for metric in metric_names::ALL {
        assert_eq!(
            helps.get(metric.name).map(String::as_str),
            Some(metric.help)
        );
    }
    // Nothing goes out under a name that is not in the list.
    let values = kept.values.lock().expect("whole");
    for name in values.keys() {
        let name = name.split('{').next().expect("a name");
        assert!(helps.contains_key(name), "{name}");
    }
}
