//! Rings in files, between processes.

use std::time::{Duration, Instant};

use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::{Observation, ObservationRing, SidecarError};
use bumpless_substrate::region::{Access, RegionError};
use bumpless_substrate::unusual::fork_and_run;

use crate::peer::{self, Peer};
use crate::scene::Scene;

fn numbered(value: u32) -> Observation {
    Observation {
        value,
        ..Observation::default()
    }
}

fn values(ring: &ObservationRing) -> Vec<u32> {
    let mut seen = Vec::new();
    ring.drain(0, &mut |found| seen.push(found.value));
    seen
}

#[test]
fn when_a_consumer_is_killed_the_next_one_goes_on() {
    if let Some(path) = peer::plays() {
        let ring = ObservationRing::open(path).expect("a ring");
        (0..3).for_each(|value| assert!(ring.push(numbered(value))));
        peer::say(format!("{:?}", values(&ring)));
        assert!(ring.push(numbered(3)));
        peer::say("pushed");
        peer::stay()
    }
    let scene = Scene::new();
    let path = scene.path("ring");
    let ring = ObservationRing::create_in_region(&path, 8, Access::Private).expect("a ring");
    let mut consumer = Peer::start(when_a_consumer_is_killed_the_next_one_goes_on, &path);
    assert_eq!(consumer.hear().expect("alive"), "[0, 1, 2]");
    assert_eq!(consumer.hear().expect("alive"), "pushed");
    let drained = ring.drain(0, &mut |_| panic!("it belongs to another process"));
    assert!(drained.is_elsewhere);
    consumer.kill();
    assert_eq!(values(&ring), [3]);
    let counts = ring.counts();
    assert_eq!(
        (counts.pushed, counts.delivered(), counts.pending),
        (4, 4, 0)
    );
    // And now it is this handle's.
    let other = ObservationRing::open(&path).expect("a ring");
    assert!(other.push(numbered(4)));
    assert!(other.drain(0, &mut |_| ()).is_elsewhere);
    assert_eq!(values(&ring), [4]);
}

#[test]
fn a_sleeping_consumer_is_woken_by_a_push_of_another_process() {
    const LONG: Duration = Duration::from_secs(60);
    if let Some(path) = peer::plays() {
        let ring = ObservationRing::open(path).expect("a ring");
        assert!(ring.push(numbered(1)));
        peer::stay()
    }
    let scene = Scene::new();
    let path = scene.path("ring");
    let ring = ObservationRing::create_in_region(&path, 8, Access::Private).expect("a ring");
    let began = Instant::now();
    let _peer = Peer::start(
        a_sleeping_consumer_is_woken_by_a_push_of_another_process,
        &path,
    );
    let mut seen = values(&ring);
    while seen.is_empty() {
        ring.wait(LONG);
        seen = values(&ring);
    }
    assert_eq!(seen, [1]);
    assert!(began.elapsed() < LONG / 2, "it slept through the push");
}

#[test]
fn a_flight_recorder_keeps_the_last_and_each_handle_reads_them_for_itself() {
    let scene = Scene::new();
    let path = scene.path("ring");
    let ring = ObservationRing::create_flight_recorder(&path, 4, Access::Private).expect("a ring");
    let other = ObservationRing::open(&path).expect("a ring");
    (0..6).for_each(|value| assert!(ring.push(numbered(value))));
    for handle in [&ring, &other] {
        let mut seen = Vec::new();
        let drained = handle.drain(0, &mut |found| seen.push(found.value));
        assert_eq!(
            (seen, drained.taken, drained.overtaken),
            (vec![2, 3, 4, 5], 4, 2)
        );
        assert_eq!(values(handle), []);
    }
    assert!(other.push(numbered(6)));
    assert_eq!((values(&ring), values(&other)), (vec![6], vec![6]));
    let counts = ring.counts();
    assert_eq!((counts.pushed, counts.dropped), (7, 0));
    assert!(ring.fall_asleep());
    assert!(other.push(numbered(7)));
    assert!(!ring.fall_asleep());
}

#[test]
fn whoever_only_looks_takes_nothing_away() {
    let scene = Scene::new();
    let path = scene.path("ring");
    let ring = ObservationRing::create_in_region(&path, 4, Access::Private).expect("a ring");
    (0..2).for_each(|value| assert!(ring.push(numbered(value))));
    let reader = ObservationRing::open_read_only(&path).expect("a ring");
    let mut cursor = reader.from_the_start();
    let look = |cursor: &mut _| {
        let next = || reader.next(cursor, 0, PATIENCE_NS).map(|found| found.value);
        std::iter::from_fn(next).collect::<Vec<u32>>()
    };
    assert_eq!(look(&mut cursor), [0, 1]);
    assert_eq!(values(&ring), [0, 1]);
    // Also what was drained is still there to look at.
    assert_eq!(look(&mut reader.from_the_start()), [0, 1]);
    assert_eq!(reader.counts(), ring.counts());
    assert_eq!(reader.counts().delivered(), 2);
}

#[test]
fn a_fork_child_pushes_into_a_file_and_not_into_a_copy_of_the_heap() {
    let scene = Scene::new();
    let path = scene.path("ring");
    let file = ObservationRing::create_in_region(&path, 8, Access::Private).expect("a ring");
    let heap = ObservationRing::with_capacity(8);
    let ours = file.producer_id();
    assert_eq!(heap.producer_id(), ours);
    assert_eq!(values(&file), []);
    let child = fork_and_run(|| {
        if !heap.is_inherited() || heap.push(numbered(1)) || heap.counts().pushed != 0 {
            return 1;
        }
        if file.is_inherited() || !file.drain(0, &mut |_| ()).is_elsewhere {
            return 2;
        }
        let theirs = file.producer_id();
        let own = ObservationRing::with_capacity(1);
        if theirs == ours || own.producer_id() != theirs || own.is_inherited() {
            return 3;
        }
        let observation = Observation {
            producer_id: theirs,
            ..numbered(2)
        };
        i32::from(!file.push(observation)) * 4
    })
    .expect("a child");
    let theirs = child.pid();
    assert_eq!(child.wait().expect("reaped"), Some(0));
    let mut seen = Vec::new();
    file.drain(0, &mut |found| seen.push((found.value, found.producer_id)));
    assert_eq!(seen, [(2, theirs)]);
    assert!(!heap.is_inherited());
}

#[test]
fn what_is_no_such_ring_is_an_error_that_says_what_it_is() {
    let scene = Scene::new();
    let path = scene.path("ring");
    for capacity in [0, 3, 1 << 21] {
        let odd = ObservationRing::create_in_region(&path, capacity, Access::Private).unwrap_err();
        assert!(matches!(odd, SidecarError::Capacity { found, .. } if found == capacity));
    }
    let none = ObservationRing::open(&path).unwrap_err();
    assert!(
        matches!(none, SidecarError::Region(RegionError::NotFound { .. })),
        "{none}"
    );
    drop(ObservationRing::create_in_region(&path, 4, Access::Private).expect("a ring"));
    let other = ObservationRing::create_flight_recorder(&path, 4, Access::Private).unwrap_err();
    assert!(
        matches!(
            other,
            SidecarError::Mode {
                found: 0,
                wanted: 1,
                ..
            }
        ),
        "{other}"
    );
    let bigger = ObservationRing::create_in_region(&path, 8, Access::Private).unwrap_err();
    assert!(
        matches!(
            bigger,
            SidecarError::Region(RegionError::CapacityDiffers { .. })
        ),
        "{bigger}"
    );
}
