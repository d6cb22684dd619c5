//! What a push costs, beside what it cannot be without: a beat, and one locked instruction.
//!
//! `cargo run --release -p bumpless-sidecar --example ring_cost [ROUNDS]`
//!
//! Each round does a batch of each in turn; the ring is drained between the batches. Shown are the quickest
//! and the middle round; unit: ns for one operation.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bumpless_heartbeat::HeartbeatTable;
use bumpless_sidecar::{
    AdaptiveInstance as _, BlackBox, Event, EventKind, Observation, ObservationRing, SidecarBox,
};
use bumpless_substrate::region::Access;

/// Operations in a batch: fewer than fit in a ring.
const BATCH: u32 = 2_000;
const CAPACITY: u32 = 4_096;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let rounds = match std::env::args().nth(1) {
        Some(rounds) => rounds.parse()?,
        None => 20,
    };
    let folder = tempfile::tempdir()?;
    let table = HeartbeatTable::create(folder.path().join("table"), 4)?;
    let me = table.register(std::process::id())?;
    let boxed = SidecarBox::new(&table);
    let heap = ObservationRing::with_capacity(CAPACITY as usize);
    let file = folder.path().join("ring");
    let file = ObservationRing::create_in_region(file, CAPACITY, Access::Private)?;
    let events = BlackBox::create(folder.path().join("events"), 1_024, Access::Private)?;
    let word = AtomicU64::new(0);
    let push = |ring: &ObservationRing, value| {
        ring.push(Observation {
            instance_id: 1,
            op_kind: 2,
            producer_id: ring.producer_id(),
            value,
            ..Observation::default()
        })
    };
    let swap = || {
        let seen = word.load(Ordering::Relaxed);
        word.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let mut cases: Vec<Case<'_>> = vec![
        Case::new("beat", |_| table.beat(me).is_ok()),
        Case::new("compare-and-swap", |_| swap()),
        Case::new("beat and compare-and-swap", |_| {
            swap() && table.beat(me).is_ok()
        }),
        Case::new("push, heap", |value| push(&heap, value)).drained(&heap),
        Case::new("beat and push, heap", |value| {
            table.beat(me).is_ok() && push(&heap, value)
        })
        .drained(&heap),
        Case::new("beat in a box", |_| boxed.beat(me).is_ok()).drained(boxed.ring()),
        Case::new("push, file", |value| push(&file, value)).drained(&file),
        Case::new("event in a black box", |value| {
            events.record(Event {
                slot: value,
                ..Event::new(EventKind::Died, 1)
            });
            true
        }),
    ];
    for _ in 0..rounds {
        cases.iter_mut().for_each(Case::round);
    }
    cases.iter_mut().for_each(Case::tell);
    Ok(())
}

/// Something that is measured.
struct Case<'c> {
    name: &'static str,
    operation: Box<dyn FnMut(u32) -> bool + 'c>,
    drained: Option<&'c ObservationRing>,
    ns: Vec<f64>,
}

impl<'c> Case<'c> {
    fn new(name: &'static str, mut operation: impl FnMut(u32) -> bool + 'c) -> Self {
        Self {
            name,
            operation: Box::new(move |times| (0..times).all(&mut operation)),
            drained: None,
            ns: Vec::new(),
        }
    }

    fn drained(self, ring: &'c ObservationRing) -> Self {
        let drained = Some(ring);
        Self { drained, ..self }
    }

    fn round(&mut self) {
        let begin = Instant::now();
        let is_done = (self.operation)(BATCH);
        let took = begin.elapsed().as_nanos() as f64 / f64::from(BATCH);
        if let Some(ring) = self.drained {
            ring.drain(0, &mut |_| ());
        }
        if is_done {
            self.ns.push(took);
        }
    }

    fn tell(&mut self) {
        self.ns.sort_by(f64::total_cmp);
        let best = self.ns.first().copied().unwrap_or(f64::NAN);
        let middle = self.ns.get(self.ns.len() / 2).copied().unwrap_or(f64::NAN);
        println!("{:<28} {best:>7.2} {middle:>7.2}", self.name);
    }
}
