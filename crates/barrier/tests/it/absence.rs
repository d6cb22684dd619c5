//! Members that die, are fenced, leave, or are not the caller's.

use std::thread;
use std::time::Duration;

use bumpless_barrier::{Absent, BarrierError, Presence};
use bumpless_heartbeat::HeartbeatError;

use crate::scene::{LONG, Scene, assert_refused, barrier, die, expect_whole, fence, register};

const SOON: Duration = Duration::from_millis(1);

#[test]
fn who_dies_is_not_waited_for_and_told_of_once() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    let dead = register(&table);
    std::mem::forget(barrier.join(dead).unwrap());
    assert_refused!(member.wait_timeout(SOON), BarrierError::TimedOut { .. });
    die(&table, dead);
    let released = member.wait_timeout(LONG).unwrap();
    let absent = Absent {
        slot: dead.slot() as u32,
        generation: dead.generation(),
        presence: Presence::Died,
    };
    assert_eq!((released.epoch, released.absent), (1, vec![absent]));
    let _again = member.wait_timeout(LONG).unwrap();
    assert_eq!(expect_whole(member.wait_timeout(LONG)), 3);
}

#[test]
fn a_death_or_a_fence_during_a_wait_releases_it() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    assert_eq!(expect_whole(member.wait()), 1);
    for (end, presence) in [
        (die as fn(&_, _), Presence::Died),
        (fence, Presence::Fenced),
    ] {
        let other = register(&table);
        std::mem::forget(barrier.join(other).unwrap());
        // Until the next epoch it is not waited for.
        let _ = member.wait_timeout(LONG).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| member.wait_timeout(LONG).unwrap());
            end(&table, other);
            let absent = waiting.join().unwrap().absent;
            assert_eq!(absent.last().map(|absent| absent.presence), Some(presence));
        });
    }
}

#[test]
fn a_dead_members_arrival_is_none_of_a_quorum() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    let dead = register(&table);
    let mut arrived = barrier.join(dead).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| arrived.wait_quorum_timeout(3, LONG));
        // Its arrival counts while it lives, and not enough.
        for _ in 0..3 {
            assert_refused!(
                member.wait_quorum_timeout(3, SOON),
                BarrierError::TimedOut { .. }
            );
        }
        fence(&table, dead);
        assert_refused!(
            member.wait_quorum_timeout(2, SOON),
            BarrierError::TimedOut { .. }
        );
        assert_refused!(
            waiting.join().unwrap(),
            BarrierError::Table(HeartbeatError::Fenced { .. })
        );
    });
    assert_eq!(member.wait_quorum_timeout(1, LONG).unwrap().epoch, 0);
}

#[test]
fn a_fenced_member_is_told_and_may_join_anew() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut other = barrier.join(register(&table)).unwrap();
    let fenced = register(&table);
    let mut member = barrier.join(fenced).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| member.wait_timeout(LONG));
        fence(&table, fenced);
        assert_refused!(
            waiting.join().unwrap(),
            BarrierError::Table(HeartbeatError::Fenced { .. })
        );
    });
    assert_refused!(
        member.wait(),
        BarrierError::Table(HeartbeatError::Fenced { .. })
    );
    assert_refused!(
        barrier.join(fenced),
        BarrierError::Table(HeartbeatError::Fenced { .. })
    );
    let released = other.wait_timeout(LONG).unwrap();
    assert_eq!(released.absent[0].presence, Presence::Fenced);
    drop(member);
    table.unregister(fenced).unwrap();
    let mut anew = barrier.join(register(&table)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| anew.wait_timeout(LONG).unwrap());
        let _alone = other.wait_timeout(LONG).unwrap();
        assert!(expect_whole(other.wait_timeout(LONG)) > released.epoch);
    });
}

#[test]
fn who_leaves_or_gives_its_slot_back_holds_nobody_up() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    let (leaving, other) = (register(&table), register(&table));
    let left = barrier.join(leaving).unwrap();
    std::mem::forget(barrier.join(other).unwrap());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| member.wait_timeout(LONG).unwrap());
        left.leave();
        table.unregister(other).unwrap();
        // Who gave its slot back may not be seen any more.
        let absent = waiting.join().unwrap().absent;
        assert!(
            absent
                .iter()
                .all(|absent| absent.presence == Presence::Left),
            "{absent:?}"
        );
    });
}

#[test]
fn a_slot_is_a_member_once_and_its_next_owner_is_another_one() {
    let scene = Scene::new();
    let table = scene.table(1);
    let barrier = barrier(&table);
    let first = register(&table);
    let member = barrier.join(first).unwrap();
    assert_refused!(
        barrier.join(first),
        BarrierError::AlreadyMember {
            slot: 0,
            generation: 1,
            ..
        }
    );
    table.unregister(first).unwrap();
    let second = register(&table);
    let mut next = barrier.join(second).unwrap();
    // The first one's leaving is none of the second one's.
    drop(member);
    assert!(expect_whole(next.wait_timeout(LONG)) > 0);
    assert_refused!(
        barrier.join(first),
        BarrierError::Table(HeartbeatError::StaleHandle { .. })
    );
}
