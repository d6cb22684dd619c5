//! The occupancy hint: a slot in use has its bit, whoever sets and clears others beside it.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use crate::bits::Bits;
use crate::seeing::check_seeing;

#[test]
fn registrants_of_neighbouring_slots_do_not_hide_each_other() {
    let wanted = ["none", "some", "all"];
    check_seeing(
        "occupancy, 2 registrants and scan",
        2,
        &wanted,
        |outcomes| {
            let bits = Bits::zeroed();
            let child = {
                let bits = Arc::clone(&bits);
                thread::spawn(move || bits.occupancy().set(5))
            };
            let scan = {
                let bits = Arc::clone(&bits);
                thread::spawn(move || bits.found())
            };
            bits.occupancy().set(4);
            bits.occupancy().set(70);
            child.join().unwrap();
            let seen = scan.join().unwrap();
            assert!(
                seen.iter().all(|slot| [4, 5, 70].contains(slot)),
                "{seen:?}"
            );
            assert_eq!(bits.found(), [4, 5, 70], "a slot in use is hidden");
            outcomes.saw(match seen.len() {
                0 => "none",
                3 => "all",
                _ => "some",
            });
        },
    );
}

/// The byte lock of slot 4 orders its last owner's clearing and its next owner's setting.
#[test]
fn a_slot_given_back_and_taken_again_has_its_bit() {
    let wanted = ["taken after", "taken before"];
    check_seeing("occupancy, turnover", 3, &wanted, |outcomes| {
        let bits = Bits::zeroed();
        bits.occupancy().set(4);
        let is_owned = Arc::new(Mutex::new(true));
        let next = {
            let (bits, is_owned) = (Arc::clone(&bits), Arc::clone(&is_owned));
            thread::spawn(move || {
                let mut is_owned = is_owned.lock().unwrap();
                let taken = !*is_owned;
                if taken {
                    bits.occupancy().set(4);
                    *is_owned = true;
                }
                taken
            })
        };
        let neighbour = {
            let bits = Arc::clone(&bits);
            thread::spawn(move || bits.occupancy().set(5))
        };
        {
            let mut is_owned = is_owned.lock().unwrap();
            bits.occupancy().clear(4);
            *is_owned = false;
        }
        neighbour.join().unwrap();
        let taken = next.join().unwrap();
        let wanted: &[u32] = if taken { &[4, 5] } else { &[5] };
        assert_eq!(bits.found(), wanted);
        outcomes.saw(if taken { "taken after" } else { "taken before" });
    });
}
