//! Sleeping until the leader is another one, or gone.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_substrate::futex::wake;

use crate::scene::{Scene, die, fence, follow, lead, open, register};

/// Far more than any wait here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A wait for a change that begins before `change` is made and sees it; how long it took from there.
fn time_of(table: &HeartbeatTable, change: impl FnOnce()) -> Duration {
    let election = open(table);
    let seen = election.current_leader();
    std::thread::scope(|scope| {
        let (told, began) = mpsc::channel();
        let sleeper = scope.spawn(move || {
            told.send(()).expect("somebody listens");
            let now = election.wait_for_change(seen, PATIENCE).expect("no error");
            assert_ne!(now, seen);
            Instant::now()
        });
        began.recv().expect("a sleeper");
        let made = Instant::now();
        change();
        sleeper
            .join()
            .expect("it saw the change")
            .saturating_duration_since(made)
    })
}

fn leading(table: &HeartbeatTable) -> [Handle; 2] {
    let handles = [(); 2].map(|()| register(table));
    lead(&open(table), handles[0]);
    follow(&open(table), handles[1]);
    handles
}

#[test]
fn a_hand_over_and_a_stepping_down_wake_who_sleeps() {
    let scene = Scene::new();
    let table = scene.table(2);
    let [leader, next] = leading(&table);
    let election = open(&table);
    for (change, handle) in [
        ("step down", leader),
        ("claim", next),
        ("step down", next),
        ("claim", leader),
    ] {
        let took = time_of(&table, || match change {
            "claim" => drop(lead(&election, handle)),
            _ => assert!(election.step_down(handle).unwrap()),
        });
        assert!(took < PATIENCE / 2, "{change}: {took:?}");
    }
}

#[test]
fn a_death_and_a_fence_are_seen_by_who_sleeps() {
    let scene = Scene::new();
    for fenced in [false, true] {
        let table = HeartbeatTable::create(scene.path(&format!("table-{fenced}")), 2).unwrap();
        let [leader, _] = leading(&table);
        let took = time_of(&table, || {
            if fenced {
                fence(&table, leader);
            } else {
                die(&table, leader);
                wake(table.cells(leader.slot()).unwrap().slot.keeper_word(), 1);
            }
        });
        assert!(took < PATIENCE / 2, "fenced: {fenced}, {took:?}");
    }
}

#[test]
fn what_has_changed_already_is_not_slept_through_and_time_ends() {
    let scene = Scene::new();
    let table = scene.table(2);
    let [leader, next] = leading(&table);
    let election = open(&table);
    let seen = election.current_leader();
    let began = Instant::now();
    let patience = Duration::from_millis(30);
    assert_eq!(election.wait_for_change(seen, patience).unwrap(), seen);
    assert!(began.elapsed() >= patience);
    election.step_down(leader).unwrap();
    assert_eq!(election.wait_for_change(seen, PATIENCE).unwrap(), None);
    lead(&election, next);
    let now = election.wait_for_change(seen, Duration::MAX).unwrap();
    assert_eq!(now.map(|leader| (leader.slot, leader.term)), Some((1, 2)));
    assert!(began.elapsed() < PATIENCE);
}
