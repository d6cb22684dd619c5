//! Heartbeats as bytes, and what arrives of them.

use bumpless_standby::frame::{self, Frame, FrameError};

use super::{capture, pair};
use crate::sim::loops::Ramp;
use crate::sim::wire::Wire;
use crate::sim::{A, B, Setup, World};

/// 20. Each single bit of a heartbeat that would be the next one of a primary that is dead.
#[test]
fn no_bit_error_of_a_heartbeat_gets_through_or_counts_as_life() {
    let mut world = pair(20);
    let mut heartbeat = capture(&mut world, 49);
    world.crash(A);
    let mut frames = 0;
    for cycle in 50..53 {
        heartbeat.seq = world.seq(cycle);
        let mut bytes = Vec::new();
        frame::encode_heartbeat(&heartbeat, &mut bytes);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Frame::<i64>::Heartbeat(heartbeat)) = frame::decode(&bytes) {
                world.inject(B, 0, heartbeat);
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
            frames += 1;
        }
        world.run_to(cycle + 1);
    }
    world.run_to(60);
    assert!(frames > 3 * 8 * 100, "{frames}");
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 20. Every twentieth frame between the nodes has a few bits wrong.
#[test]
fn a_pair_whose_frames_are_damaged_now_and_then_runs_on() {
    let mut world = World::settled(Ramp::new(), Setup::new(20));
    world.wire = Some(Wire::with_errors(0.05, 0.0));
    world.run_to(20_000);
    assert_eq!(world.promotions(), 0);
    let refused = world.wire.as_ref().unwrap().refused;
    // Four frames a cycle.
    assert!((3_500..4_500).contains(&refused), "{refused}");
    assert_eq!(world.ledger.bump_max, 0.0);
    assert!(world.is_pair());
}

/// 43. A primary of the next version of the frame says nothing that this one understands.
#[test]
fn a_heartbeat_of_another_version_is_refused_and_is_no_life() {
    let mut world = pair(43);
    let mut heartbeat = capture(&mut world, 49);
    world.crash(A);
    for cycle in 50..60 {
        heartbeat.seq = world.seq(cycle);
        let mut bytes = Vec::new();
        frame::encode_heartbeat(&heartbeat, &mut bytes);
        bytes[4] += 1;
        match frame::decode::<i64>(&bytes) {
            Err(FrameError::Version { .. }) => {}
            other => panic!("{other:?}"),
        }
        world.run_to(cycle + 1);
    }
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
}
