//! Going to sleep: no change is slept through.

use std::sync::Arc;

use bumpless_election::seat::Reign;
use loom::thread;

use crate::seeing::check_seeing;
use crate::world::{HIGH, LOW, World};

/// What `wait_for_change` does before it sleeps: the count to sleep on, or `None` if there is a change.
fn lie_down(world: &World, seen: Reign) -> Option<u32> {
    loop {
        let (_, count) = world.line.changes();
        let now = world.line.look();
        if now != seen {
            return None;
        }
        if world.line.ask_to_be_woken(now) {
            return Some(count);
        }
    }
}

#[test]
fn who_lies_down_before_a_change_is_woken_by_it() {
    for sleeps_already in [false, true] {
        let name = format!("sleep, others asleep: {sleeps_already}");
        check_seeing(&name, 3, &["asleep", "saw it"], move |outcomes| {
            let world = World::led_by(LOW, 1);
            let seen = world.line.look();
            if sleeps_already {
                assert!(lie_down(&world, seen).is_some());
            }
            let sleeper = {
                let world = Arc::clone(&world);
                thread::spawn(move || lie_down(&world, seen))
            };
            let mut now = world.line.look();
            while !world.line.hand_over(now, HIGH) {
                now = world.line.look();
            }
            match sleeper.join().unwrap() {
                Some(count) => {
                    let (_, now) = world.line.changes();
                    assert_ne!(now, count, "nobody wakes it");
                    outcomes.saw("asleep");
                }
                None => outcomes.saw("saw it"),
            }
        });
    }
}
