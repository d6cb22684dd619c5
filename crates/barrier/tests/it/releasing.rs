//! Who is released when, and who waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_barrier::{BarrierError, EpochBarrier};
use bumpless_heartbeat::HeartbeatTable;

use crate::scene::{LONG, Scene, assert_refused, barrier, expect_whole, register};

#[test]
fn a_member_alone_is_released_at_once_in_each_epoch() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    for epoch in 1..100 {
        assert_eq!(expect_whole(member.wait_timeout(LONG)), epoch);
        assert_eq!(barrier.epoch(), epoch + 1);
    }
}

#[test]
fn nobody_is_released_before_all_have_arrived() {
    const MEMBERS: usize = 4;
    const EPOCHS: u64 = 300;
    let scene = Scene::new();
    let table = scene.table(MEMBERS);
    let barrier = barrier(&table);
    let joined: Vec<_> = (0..MEMBERS)
        .map(|_| barrier.join(register(&table)).unwrap())
        .collect();
    let arrived: [AtomicU64; MEMBERS] = Default::default();
    thread::scope(|scope| {
        for (own, mut member) in joined.into_iter().enumerate() {
            let arrived = &arrived;
            scope.spawn(move || {
                for epoch in 1..=EPOCHS {
                    // Relaxed: the barrier is what orders these, and what is tested.
                    arrived[own].store(epoch, Ordering::Relaxed);
                    assert_eq!(expect_whole(member.wait_timeout(LONG)), epoch);
                    for other in arrived {
                        let other = other.load(Ordering::Relaxed);
                        assert!(
                            other == epoch || other == epoch + 1,
                            "in epoch {other} when {epoch} is released"
                        );
                    }
                }
                // Those who come after it do not wait for it.
                drop(member);
            });
        }
    });
    assert_eq!(barrier.epoch(), EPOCHS + 1);
}

#[test]
fn an_arrival_that_timed_out_releases_nobody() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut first = barrier.join(register(&table)).unwrap();
    let mut second = barrier.join(register(&table)).unwrap();
    let soon = Duration::from_millis(1);
    for _ in 0..3 {
        assert_refused!(
            first.wait_timeout(soon),
            BarrierError::TimedOut { epoch: 1, ref absent, .. } if absent.len() == 1
        );
        assert_refused!(
            second.wait_timeout(soon),
            BarrierError::TimedOut { epoch: 1, ref absent, .. } if absent.len() == 1
        );
    }
    assert_refused!(
        first.wait_quorum_timeout(2, Duration::ZERO),
        BarrierError::TimedOut { epoch: 1, .. }
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| expect_whole(first.wait_timeout(LONG)));
        assert_eq!(expect_whole(second.wait_timeout(LONG)), 1);
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

#[test]
fn a_member_that_joins_during_an_epoch_is_waited_for_from_the_next() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut first = barrier.join(register(&table)).unwrap();
    assert_eq!(expect_whole(first.wait()), 1);
    let mut second = barrier.join(register(&table)).unwrap();
    assert_eq!((first.first_epoch(), second.first_epoch()), (1, 3));
    assert_eq!(expect_whole(first.wait_timeout(LONG)), 2);
    assert_refused!(
        first.wait_timeout(Duration::ZERO),
        BarrierError::TimedOut { epoch: 3, .. }
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| expect_whole(second.wait_timeout(LONG)));
        assert_eq!(expect_whole(first.wait_timeout(LONG)), 3);
        assert_eq!(waiting.join().unwrap(), 3);
    });
}

#[test]
fn who_joined_waits_for_its_first_epoch_and_for_those_before_it() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut first = barrier.join(register(&table)).unwrap();
    assert_eq!(expect_whole(first.wait()), 1);
    let mut second = barrier.join(register(&table)).unwrap();
    // It has arrived in epoch 3, and epoch 2 is the first one's.
    assert_refused!(
        second.wait_timeout(Duration::from_millis(1)),
        BarrierError::TimedOut { epoch: 3, .. }
    );
    assert_eq!(barrier.epoch(), 2);
    drop(first);
    assert_eq!(expect_whole(second.wait_timeout(LONG)), 3);
}

#[test]
fn a_quorum_is_so_many_arrivals_and_waits_for_members_yet_to_join() {
    let scene = Scene::new();
    let table = scene.table(8);
    let barrier = &barrier(&table);
    let table = &table;
    thread::scope(|scope| {
        let start = || {
            scope.spawn(move || {
                let mut member = barrier.join(register(table)).unwrap();
                let first = member.wait_quorum_timeout(3, LONG).unwrap().epoch;
                // All three have joined: from here on each epoch takes all.
                let then = expect_whole(member.wait_timeout(LONG));
                (first, then)
            })
        };
        let threads = [start(), start(), start()];
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (0, 1));
        }
    });
}

#[test]
fn who_was_not_there_for_the_quorum_is_named_and_arrives_in_the_next_epoch() {
    let scene = Scene::new();
    let table = scene.table(8);
    let barrier = barrier(&table);
    let mut members: Vec<_> = (0..3)
        .map(|_| barrier.join(register(&table)).unwrap())
        .collect();
    let mut late = members.pop().unwrap();
    thread::scope(|scope| {
        let waiting: Vec<_> = members
            .iter_mut()
            .map(|member| {
                scope.spawn(|| {
                    // Nobody is waited for in epoch 0, and who has joined may arrive in it.
                    assert_eq!(member.wait_quorum_timeout(2, LONG).unwrap().epoch, 0);
                    member.wait_quorum_timeout(2, LONG).unwrap()
                })
            })
            .collect();
        for waiting in waiting {
            let released = waiting.join().unwrap();
            assert_eq!(released.epoch, 1);
            assert!(released.absent.iter().any(|absent| {
                absent.slot as usize == late.handle().slot()
                    && absent.presence == bumpless_barrier::Presence::Live
            }));
        }
    });
    assert_refused!(
        late.wait_quorum_timeout(3, Duration::ZERO),
        BarrierError::TimedOut { epoch: 2, .. }
    );
    assert_eq!(late.wait_quorum_timeout(1, LONG).unwrap().epoch, 2);
}

#[test]
fn a_quorum_of_nobody_or_of_more_than_the_table_has_is_refused() {
    let scene = Scene::new();
    let table = scene.table(4);
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    for quorum in [0, 5, usize::MAX] {
        assert_refused!(
            member.wait_quorum(quorum),
            BarrierError::Quorum { found, limit: 4, .. } if found == quorum
        );
    }
    assert_eq!(expect_whole(member.wait_quorum(1)), 0);
}

#[test]
fn two_barriers_of_a_table_and_two_tables_do_not_meet() {
    let scene = Scene::new();
    let table = scene.table(4);
    let (one, other) = (
        barrier(&table),
        EpochBarrier::create(&table, "other").unwrap(),
    );
    let me = register(&table);
    let (mut in_one, _in_other) = (one.join(me).unwrap(), other.join(me).unwrap());
    assert_eq!(expect_whole(in_one.wait()), 1);
    assert_eq!((one.epoch(), other.epoch()), (2, 0));
    let next = HeartbeatTable::reset(scene.path("table"), 4).unwrap();
    let anew = barrier(&next);
    assert_eq!(anew.epoch(), 0);
    assert_ne!(anew.path(), one.path());
}
