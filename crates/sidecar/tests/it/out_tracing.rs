//! `tracing`, with a subscriber that keeps what it is told.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bumpless_heartbeat::UnitSet;
use bumpless_sidecar::out::tracing::{TARGET, ToTracing};
use bumpless_sidecar::{Event, EventKind, EventSink};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// Keeps each event as a line.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().expect("whole").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn each_event_is_one_line_with_its_name_its_time_and_what_it_says() {
    let kept = Kept::default();
    tracing::subscriber::with_default(kept.clone(), || {
        let handed_back = Event {
            slot: 3,
            generation: 2,
            ..Event::new(EventKind::HandedBack, 17)
        };
        ToTracing.record(&handed_back.with_units(UnitSet::from_bits(0b101)));
        ToTracing.record(&Event::new(EventKind::RedundancyRestored, 18));
    });
    let lines = kept.0.lock().expect("whole");
    assert_eq!(TARGET, "bumpless");
    let wanted = [
        "WARN bumpless event=\"handed_back\" time_ns=17 fields=slot=3 generation=2 units={0, 2}",
        "INFO bumpless event=\"redundancy_restored\" time_ns=18 fields=",
    ];
    assert_eq!(*lines, wanted);
}
