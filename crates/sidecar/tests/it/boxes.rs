//! Boxes of a table and of atomics: the same answers as the inner ones', and each call counted.

use std::sync::Arc;

use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, Label, Profile, SlotRole, UnitSet};
use bumpless_sidecar::{
    AdaptiveInstance, AtomicOp, Event, EventKind, EventSink, FixedPolicy, HandshakeHeader,
    InstanceStats, Instruments, ObservationRing, Policy, Scanner, SidecarBox, TableOp,
};
use bumpless_substrate::shared_atomic::{SharedAtomicBool, SharedAtomicU32, SharedAtomicU64};
use bumpless_substrate::sync::Ordering;

use crate::scene::{Events, Scene, die, register};

#[test]
fn every_call_of_a_tables_box_is_counted_by_its_kind_and_answers_as_the_table_does() {
    let scene = Scene::new();
    let table = scene.table(4);
    let observed = SidecarBox::new(&table);
    let mut scanner = Scanner::new();
    let id = scanner.register(&observed);

    let me = observed.register(std::process::id()).expect("a slot");
    observed.mark_in_flight(me, 5_u8).expect("mine");
    assert!(matches!(
        observed.mark_in_flight(me, 128_u8),
        Err(HeartbeatError::UnitOutOfRange { unit: 128 })
    ));
    observed.clear_in_flight(me, 5_u8).expect("mine");
    for _ in 0..130 {
        observed.beat(me).expect("mine");
    }
    assert_eq!(observed.tick_global_epoch().expect("writable"), 1);
    assert_eq!(observed.snapshot(me), table.snapshot(me));
    observed.unregister(me).expect("mine");
    assert!(matches!(
        observed.beat(me),
        Err(HeartbeatError::StaleHandle { .. })
    ));

    let scanned = scanner.scan(7);
    // Beats are tallied, and the first of them is recorded as a sample; the one that failed is recorded too.
    assert_eq!((scanned.drained.taken, scanned.drained.skipped), (9, 0));
    let stats = scanner.stats(id).expect("registered");
    let count = |op: TableOp| (stats.op(op).count, stats.op(op).contended);
    assert_eq!(count(TableOp::Register), (1, 0));
    assert_eq!(count(TableOp::Mark), (2, 0));
    assert_eq!(count(TableOp::Complete), (1, 0));
    assert_eq!(count(TableOp::Beat), (131, 1));
    assert_eq!(count(TableOp::Tick), (1, 0));
    assert_eq!(count(TableOp::Observe), (1, 0));
    assert_eq!(count(TableOp::Unregister), (1, 0));
    assert_eq!((stats.observed(), stats.contended()), (138, 1));
    assert_eq!((stats.producers.count(), stats.scanned_ns), (1, 7));
    assert_eq!(stats.tallied, 130);
    // One in 256 is timed: the first record, and the first beat.
    let timed = |op: TableOp| stats.op(op).latency.timed;
    assert_eq!((timed(TableOp::Register), timed(TableOp::Beat)), (1, 1));
    let timed: u64 = stats.ops().map(|(_, op)| op.latency.timed).sum();
    assert_eq!(timed, 2);
    assert!(stats.op(TableOp::Register).latency.max_ns > 0);
}

#[test]
fn of_threads_that_beat_in_turn_each_is_seen_and_every_beat_is_counted_though_the_ring_is_full() {
    let scene = Scene::new();
    let table = scene.table(2);
    let instruments = Arc::new(Instruments::on_ring(ObservationRing::with_capacity(4)));
    let observed = SidecarBox::with_instruments(&table, instruments);
    let mut scanner = Scanner::new();
    let id = scanner.register(&observed);
    let handles = [0, 1].map(|_| table.register(std::process::id()).expect("a slot"));
    let beats: u64 = 10 * 256;
    let turn = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for (index, handle) in handles.into_iter().enumerate() {
            let (observed, turn) = (&observed, &turn);
            scope.spawn(move || {
                for step in 0..2 * beats {
                    if step % 2 == index as u64 {
                        observed.beat(handle).expect("mine");
                    }
                    turn.wait();
                }
            });
        }
    });
    scanner.scan(1);
    let stats = scanner.stats(id).expect("registered");
    assert_eq!(stats.op(TableOp::Beat).count, 2 * beats);
    assert_eq!(
        (stats.dropped, stats.skipped),
        (0, 0),
        "samples are not missed"
    );
    assert_eq!(stats.producers.count(), 2);
}

#[test]
fn registrations_are_told_and_a_slot_of_the_dead_is_told_as_recycled() {
    let (scene, events) = (Scene::new(), Events::default());
    let first = events.of(Arc::new(scene.table(1)));
    let profile = Profile {
        role: SlotRole::Coordinator,
        label: Label::new("resizer").expect("short"),
        ..Profile::default()
    };
    let dead = first
        .register_as(std::process::id(), profile)
        .expect("a slot");
    let told = events.take();
    assert_eq!(told.len(), 1);
    let table = first.inner();
    assert_eq!(
        (told[0].slot, told[0].generation, told[0].value),
        (0, dead.generation(), 1)
    );
    assert_eq!(
        (told[0].label.to_string(), told[0].pid),
        ("resizer".into(), std::process::id())
    );
    assert_eq!(told[0].table_id, table.creation_id());

    first.unregister(dead).expect("mine");
    let told = events.take();
    assert_eq!(
        (told[0].kind.name(), told[0].label.to_string()),
        ("unregistered", "resizer".into())
    );

    // Given back: used again, and not recycled.
    let next = first.register(std::process::id()).expect("a slot");
    assert_eq!(events.take_names(), ["registered"]);
    let cells = table.cells(0).expect("a slot");
    die(table, next);
    table.record_death(cells, cells.slot.claimed_by());
    first
        .unregister(next)
        .expect("this process lives, and gives it back");
    let again = first.register(std::process::id()).expect("a slot");
    let told = events.take();
    let names: Vec<_> = told.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names, ["unregistered", "recycled", "registered"]);
    assert_eq!(told[1].value, u64::from(next.generation()));
    assert_eq!(told[1].generation, again.generation());
}

#[test]
fn a_tag_is_taken_over_by_the_next_call_and_only_once() {
    let scene = Scene::new();
    let table = scene.table(2);
    let observed = SidecarBox::new(&table);
    let me = observed.register(std::process::id()).expect("a slot");
    let events = Events::default();
    let mut scanner = Scanner::new().with_events(events.sink());
    scanner.register_with(&observed, Box::new(FixedPolicy(9)));
    assert_eq!(scanner.scan(1).migrations, 1);
    assert_eq!(table.snapshot(me).expect("there").grace_epochs, 0);
    observed.beat(me).expect("mine");
    assert_eq!(table.snapshot(me).expect("there").grace_epochs, 9);

    // Who registers later gets it as well.
    let later = observed.register(std::process::id()).expect("a slot");
    assert_eq!(table.snapshot(later).expect("there").grace_epochs, 9);

    table.set_grace(me, 4).expect("mine");
    observed.beat(me).expect("mine");
    assert_eq!(table.snapshot(me).expect("there").grace_epochs, 4);
    assert_eq!(scanner.scan(2).migrations, 0);
    let told = events.take();
    assert_eq!((told.len(), told[0].kind), (1, EventKind::Migrated));
    assert_eq!((told[0].value, told[0].detail), (9, 0));
}

#[test]
fn a_full_ring_drops_and_counts_and_the_call_is_made_all_the_same() {
    let scene = Scene::new();
    let instruments = Arc::new(Instruments::on_ring(ObservationRing::with_capacity(8)));
    let observed = SidecarBox::with_instruments(scene.table(1), instruments);
    let mut scanner = Scanner::new();
    let id = scanner.register(&observed);
    let me = observed.register(std::process::id()).expect("a slot");
    for unit in 0..20_u8 {
        observed.mark_in_flight(me, unit).expect("mine");
    }
    scanner.scan(1);
    let stats = scanner.stats(id).expect("registered");
    assert_eq!((stats.observed(), stats.dropped), (8, 13));
    let units = observed
        .inner()
        .snapshot(me)
        .expect("there")
        .in_flight_bitmap;
    assert_eq!(units, UnitSet::from_bits((1 << 20) - 1));
}

#[test]
fn atomics_answer_as_the_inner_ones_and_a_lost_exchange_is_contended() {
    let scene = Scene::new();
    let (ordered, relaxed) = (Ordering::AcqRel, Ordering::Relaxed); // Relaxed, AcqRel: one thread, which pairs with nobody
    let number = SidecarBox::new(SharedAtomicU32::create(&scene.path("u32"), 5).expect("a file"));
    let wide = SidecarBox::new(SharedAtomicU64::create(&scene.path("u64"), 5).expect("a file"));
    let flag =
        SidecarBox::new(SharedAtomicBool::create(&scene.path("bool"), true).expect("a file"));
    let mut scanner = Scanner::new();
    let ids = [
        scanner.register(&number),
        scanner.register(&wide),
        scanner.register(&flag),
    ];
    assert_eq!(number.fetch_add(2, ordered), 5);
    assert_eq!(number.compare_exchange(5, 9, ordered, relaxed), Err(7));
    assert_eq!(number.compare_exchange(7, 9, ordered, relaxed), Ok(7));
    number.store(1, relaxed);
    assert_eq!((number.load(relaxed), number.swap(6, ordered)), (1, 1));
    assert_eq!(wide.fetch_sub(1, ordered), 5);
    assert_eq!(
        (wide.fetch_or(3, ordered), wide.fetch_xor(1, ordered)),
        (4, 7)
    );
    assert_eq!((wide.fetch_and(2, ordered), wide.load(relaxed)), (6, 2));
    assert!(flag.fetch_nand(true, ordered));
    assert!(!flag.load(relaxed));
    scanner.scan(1);
    let of = |index: usize| scanner.stats(ids[index]).expect("registered");
    let exchanges = of(0).op(AtomicOp::CompareExchange);
    assert_eq!((exchanges.count, exchanges.contended), (2, 1));
    assert_eq!(
        [of(0), of(1), of(2)].map(InstanceStats::observed),
        [6, 5, 2]
    );
}

/// Whatever has a header can be an instance: no lifetime of what is observed gets into the sidecar.
struct Bare(Arc<Instruments>);

impl AdaptiveInstance for Bare {
    fn instruments(&self) -> &Arc<Instruments> {
        &self.0
    }

    fn make_policy(&self) -> Box<dyn Policy> {
        Box::new(FixedPolicy(2))
    }

    fn apply_migration(&self, _: u32) {}
}

#[test]
fn an_instance_may_end_while_it_is_watched_and_its_last_observations_still_count() {
    let mut scanner = Scanner::new();
    let (id, header_tag) = {
        let bare = Bare(Arc::new(Instruments::new()));
        let id = scanner.register(&bare);
        bare.instruments().observe(3, true, 0);
        let header: &HandshakeHeader = bare.header();
        (id, header.tag())
    };
    let scanned = scanner.scan(1);
    assert_eq!((header_tag, scanned.migrations), (0, 1));
    let stats = scanner.stats(id).expect("registered");
    assert_eq!((stats.op(3_u16).contended, stats.observed()), (1, 1));
    assert!(scanner.unregister(id));
    assert!(!scanner.unregister(id));
}

#[test]
fn a_read_only_table_can_be_observed_as_well() {
    let scene = Scene::new();
    let table = scene.table(2);
    let me = register(&table);
    let looking = HeartbeatTable::open_read_only(scene.path("table")).expect("there");
    let observed = SidecarBox::new(looking);
    assert!(observed.snapshot(me.slot()).is_some());
    assert!(observed.register(std::process::id()).is_err());
    assert_eq!(observed.ring().counts().pushed, 2);
}

/// Takes what it is told, but for registrations.
#[derive(Debug)]
struct Fragile(Events);

impl EventSink for Fragile {
    fn record(&self, event: &Event) {
        assert!(event.kind != EventKind::Registered, "a sink with a mistake");
        self.0.sink().record(event);
    }
}

#[test]
fn a_sink_that_panics_loses_that_event_which_is_counted_and_the_call_is_made_all_the_same() {
    let (scene, events) = (Scene::new(), Events::default());
    let instruments = Instruments::new().with_events(Arc::new(Fragile(events.clone())));
    let observed = SidecarBox::with_instruments(scene.table(2), Arc::new(instruments));
    let mut scanner = Scanner::new();
    let id = scanner.register(&observed);
    let me = observed.register(std::process::id()).expect("a slot");
    observed.unregister(me).expect("mine");
    assert_eq!(events.take_names(), ["unregistered"]);
    scanner.scan(1);
    assert_eq!(scanner.stats(id).expect("registered").events_lost, 1);
}
