//! Models of the handshake: operations that enter while coordinators change the tag.

use std::sync::Arc;

use bumpless_sidecar::HandshakeHeader;
use bumpless_substrate::sync::{AtomicU32, Ordering};
use loom::thread;

use crate::seeing::check_seeing;

/// More looks than a coordinator makes: each but the last follows a change of the count.
const LOOKS_MAX: u32 = 4;

#[test]
fn behind_a_drain_no_operation_of_the_ended_generation_is_inside() {
    let wanted = ["entered before", "entered behind", "was inside"];
    check_seeing("handshake, drain", 3, &wanted, move |outcomes| {
        let header = Arc::new(HandshakeHeader::new());
        // What the operation changes while it is inside in generation 0.
        let old_form = Arc::new(AtomicU32::new(0));
        let operation = {
            let (header, old_form) = (Arc::clone(&header), Arc::clone(&old_form));
            thread::spawn(move || {
                let inside = header.enter();
                // The tag is read inside.
                let tag = header.tag();
                if inside.generation() == 0 {
                    // Relaxed: the handshake is what orders it.
                    old_form.store(1, Ordering::Relaxed);
                }
                (inside.generation(), tag)
            })
        };
        let ended = header.migrate(1).expect("nobody else, and nobody before");
        let mut looks = 0;
        let drained = header.drain(ended, |_| {
            outcomes.saw("was inside");
            looks += 1;
            thread::yield_now();
            looks < LOOKS_MAX
        });
        // Relaxed: as above.
        let found = old_form.load(Ordering::Relaxed);
        let is_drained = drained.is_ok();
        let (generation, tag) = operation.join().expect("no panic");
        // Relaxed: the operation has ended.
        let at_last = old_form.load(Ordering::Relaxed);
        assert!(
            tag == 1 || generation == 0,
            "the new generation saw the old tag"
        );
        if is_drained {
            assert_eq!(
                found, at_last,
                "an operation went on in the old form behind the drain"
            );
        }
        outcomes.saw(match generation {
            0 => "entered before",
            _ => "entered behind",
        });
        assert_eq!(header.drain(0, |_| false), Ok(()), "it has left");
        assert_eq!(header.drain(1, |_| false), Ok(()), "it has left");
    });
}

#[test]
fn of_two_coordinators_each_gets_a_generation_of_its_own_or_is_told_who_is_inside() {
    let wanted = ["both", "one was held up"];
    check_seeing("handshake, coordinators", 3, &wanted, move |outcomes| {
        let header = Arc::new(HandshakeHeader::new());
        let other = {
            let header = Arc::clone(&header);
            thread::spawn(move || header.migrate(1))
        };
        let inside = header.enter();
        let mine = header.migrate(2);
        drop(inside);
        let theirs = other.join().expect("no panic");
        let look = header.look();
        match (mine, theirs) {
            (Ok(mine), Ok(theirs)) => {
                outcomes.saw("both");
                assert_ne!(mine, theirs, "one generation ended twice");
                assert_eq!(look.generation, 2);
                let last = if mine > theirs { 2 } else { 1 };
                assert_eq!(look.tag, last);
            }
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => {
                outcomes.saw("one was held up");
                assert_eq!(look.generation, 1);
            }
            (Err(_), Err(_)) => panic!("nobody got a tag"),
        }
        assert_eq!((header.still_inside(0), header.still_inside(1)), (0, 0));
    });
}
