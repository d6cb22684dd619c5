//! A black box whose recorders are all killed.

use std::os::unix::fs::FileExt;

use bumpless_sidecar::{BlackBox, BlackBoxReader, Event, EventKind, SidecarError};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::{Access, RegionError};

use crate::peer::{self, Peer};
use crate::scene::Scene;

/// More than the recorders can say before the pipe to the test is full.
const CAPACITY: u32 = 1 << 16;

#[test]
fn after_the_death_of_all_it_reads_to_the_last_event_of_each() {
    const ROUNDS: usize = 5;
    const RECORDERS: usize = 3;
    if let Some(path) = peer::plays() {
        let black_box = BlackBox::attach(path).expect("a black box");
        let pid = std::process::id();
        for number in 1.. {
            let event = Event {
                pid,
                value: number,
                detail: 1,
                ..Event::new(EventKind::BarrierReleased, monotonic_ns())
            };
            black_box.record(event);
            peer::say(number);
        }
    }
    for round in 0..ROUNDS {
        let scene = Scene::new();
        let path = scene.path("events");
        drop(BlackBox::create(&path, CAPACITY, Access::Private).expect("a black box"));
        let this = after_the_death_of_all_it_reads_to_the_last_event_of_each;
        let mut recorders: Vec<Peer> = (0..RECORDERS).map(|_| Peer::start(this, &path)).collect();
        let mut heard = vec![String::new(); RECORDERS];
        for (recorder, heard) in recorders.iter_mut().zip(&mut heard) {
            for _ in 0..=40 * round {
                *heard = recorder.hear().expect("alive");
            }
        }
        recorders.iter_mut().for_each(Peer::kill);

        let reader = BlackBoxReader::open_read_only(&path).expect("nobody is needed for it");
        let history = reader.read_all();
        let recorded = history.events.len() as u64 + history.skipped;
        assert_eq!((recorded, history.overtaken), (reader.header().recorded, 0));
        assert!(history.skipped <= RECORDERS as u64, "{}", history.skipped);
        for (recorder, heard) in recorders.iter_mut().zip(heard) {
            let of_it = |event: &&Event| event.pid == recorder.pid();
            let events: Vec<Event> = history.events.iter().map(|found| found.event).collect();
            let numbers: Vec<u64> = events
                .iter()
                .filter(of_it)
                .map(|event| event.value)
                .collect();
            let said = std::iter::from_fn(|| recorder.hear()).last();
            let said: u64 = said.unwrap_or(heard).parse().expect("a number");
            assert!(
                numbers.iter().copied().eq(1..=numbers.len() as u64),
                "a gap"
            );
            let last = numbers.len() as u64;
            assert!(last == said || last == said + 1, "{last} of {said}");
        }
        assert!(history.events.is_sorted_by_key(|found| found.position));
    }
}

#[test]
fn a_follower_sees_what_is_recorded_after_it_came_and_how_much_it_missed() {
    let scene = Scene::new();
    let path = scene.path("events");
    let black_box = BlackBox::create(&path, 4, Access::Private).expect("a black box");
    let record = |number: u32| {
        black_box.record(Event {
            slot: number,
            ..Event::new(EventKind::Registered, number.into())
        });
    };
    record(1);
    let reader = BlackBoxReader::open_read_only(&path).expect("a black box");
    let (mut all, mut new) = (reader.from_the_start(), reader.from_now_on());
    (2..=3).for_each(record);
    let slots = |cursor: &mut _| {
        let next = || reader.next(cursor, 0, 1).map(|found| found.event.slot);
        std::iter::from_fn(next).collect::<Vec<u32>>()
    };
    assert_eq!(slots(&mut all), [1, 2, 3]);
    assert_eq!(slots(&mut new), [2, 3]);
    (4..=10).for_each(record);
    assert_eq!(slots(&mut new), [7, 8, 9, 10]);
    assert_eq!((new.overtaken, new.skipped, new.delivered), (3, 0, 6));
    let header = black_box.header();
    assert_eq!(header, reader.header());
    assert_eq!(
        (header.recorded, header.capacity, header.dropped),
        (10, 4, 0)
    );
    assert_eq!(header.path, path);
}

#[test]
fn what_is_no_black_box_is_an_error_that_says_so() {
    let scene = Scene::new();
    let path = scene.path("events");
    let none = BlackBoxReader::open_read_only(&path).unwrap_err();
    assert!(
        matches!(none, SidecarError::Region(RegionError::NotFound { .. })),
        "{none}"
    );
    let odd = BlackBox::create(&path, 3, Access::Private).unwrap_err();
    assert!(
        odd.to_string()
            .ends_with("capacity 3: a ring has a power of two of records, at most 1048576"),
        "{odd}"
    );
    drop(scene.table(1));
    let table = BlackBox::attach(scene.path("table")).unwrap_err();
    assert!(
        matches!(table, SidecarError::Region(RegionError::Kind { .. })),
        "{table}"
    );
}

#[test]
fn after_the_machine_was_started_anew_it_is_read_and_then_goes_on_and_says_where() {
    let scene = Scene::new();
    let path = scene.path("events");
    let black_box = BlackBox::create(&path, 4, Access::Private).expect("a black box");
    (1..=2).for_each(|number| black_box.record(Event::new(EventKind::Died, number)));
    let now = black_box.header().boot_id;
    drop(black_box);
    let file = std::fs::File::options().write(true).open(&path);
    let earlier = [0xb0; 16];
    let written = file.expect("a file").write_all_at(&earlier, 40);
    written.expect("writable");

    let reader = BlackBoxReader::open_read_only(&path).expect("nobody is needed for it");
    let header = reader.header();
    assert_eq!(
        (header.boot_id, header.is_of_this_boot),
        ([0xb0b0_b0b0_b0b0_b0b0; 2], false)
    );
    assert_eq!(reader.read_all().events.len(), 2);

    let black_box = BlackBox::create(&path, 4, Access::Private).expect("goes on");
    black_box.record(Event::new(EventKind::Died, monotonic_ns()));
    let reader = BlackBoxReader::open_read_only(&path).expect("a black box");
    let header = reader.header();
    assert_eq!((header.boot_id, header.is_of_this_boot), (now, true));
    let events = reader.read_all().events;
    let names: Vec<_> = events.iter().map(|it| it.event.kind.name()).collect();
    assert_eq!(names, ["died", "died", "rebooted", "died"]);
}
