//! Given, when, then: what a pair does in each situation, with its numbers.
//!
//! A cycle is 10 ms; a takeover comes after 3 silent ones; A (id 0) drives, B (id 1) is qualified; two paths,
//! each with 2 ms one way. Cycles are counted from where the pair had settled, so "at c50" is cycle 50.
//! What each number means here is in `docs/standby.md`.

mod bounds;
mod checkpoint;
mod cut;
mod failure;
mod forged;
mod inputs;
mod long;
mod modes;
mod orders;
mod policy;
mod power;
mod start;
mod time;
mod vrrp;
mod wire;

use std::cell::RefCell;
use std::rc::Rc;

use bumpless_standby::event::{Alarm, Event};
use bumpless_standby::message::Heartbeat;

use crate::sim::loops::{Plant, Ramp};
use crate::sim::{A, Setup, World};

fn pair(seed: u64) -> World<Ramp> {
    World::settled(Ramp::new(), Setup::new(seed))
}

fn raised(alarm: Alarm) -> impl Fn(&Event) -> bool {
    move |event| *event == Event::AlarmRaised { alarm }
}

fn is_promotion(event: &Event) -> bool {
    matches!(event, Event::Promoted { .. })
}

/// Runs through this cycle, and returns the heartbeat that A sent in it.
fn capture<P: Plant>(world: &mut World<P>, cycle: u64) -> Heartbeat {
    let captured = Rc::new(RefCell::new(None));
    let into = captured.clone();
    world.tap = Some(Box::new(move |tapped| {
        if (tapped.from, tapped.cycle) == (A, cycle) {
            *into.borrow_mut() = Some(tapped.heartbeat.clone());
        }
        true
    }));
    world.run_to(cycle + 1);
    world.tap = None;
    captured.take().expect("A sends in every cycle")
}
