//! Whom a scan knows: every owner that claimed before it began, as long as claims are counted.

use std::sync::Arc;

use bumpless_failover::roster::Roster;
use loom::thread;

use crate::bits::{Bits, CAPACITY};
use crate::seeing::check_seeing;

/// A scan: the words and bits that it looks at.
fn scan(bits: &Bits, roster: &mut Roster) -> Vec<(u32, u64)> {
    let mut met = Vec::new();
    roster.update(bits.occupancy(), false);
    roster.look_at_each_word(bits.occupancy(), |word, bits, _| {
        met.push((word, bits));
        0
    });
    met
}

#[test]
fn whoever_has_claimed_before_a_scan_is_known_to_it() {
    let wanted = ["met at once", "met by the next"];
    check_seeing("roster, a claim", 2, &wanted, |outcomes| {
        let bits = Bits::zeroed();
        let mut roster = Roster::new(CAPACITY as usize);
        let registrant = {
            let bits = Arc::clone(&bits);
            thread::spawn(move || bits.occupancy().set(70))
        };
        let first = scan(&bits, &mut roster);
        // Only now may the slot be anything but free.
        registrant.join().unwrap();
        assert_eq!(
            scan(&bits, &mut roster),
            [(1, 1 << 6)],
            "an owner is hidden"
        );
        outcomes.saw(if first.is_empty() {
            "met by the next"
        } else {
            "met at once"
        });
    });
}

#[test]
fn of_two_who_claim_in_the_same_word_none_is_hidden_by_the_other() {
    let wanted = ["none", "one", "both"];
    check_seeing("roster, 2 claims", 2, &wanted, |outcomes| {
        let bits = Bits::zeroed();
        let mut roster = Roster::new(CAPACITY as usize);
        let registrants = [4, 5].map(|slot| {
            let bits = Arc::clone(&bits);
            thread::spawn(move || bits.occupancy().set(slot))
        });
        let first = scan(&bits, &mut roster);
        for registrant in registrants {
            registrant.join().unwrap();
        }
        assert_eq!(
            scan(&bits, &mut roster),
            [(0, 0b11_0000)],
            "an owner is hidden"
        );
        let found: u32 = first.iter().map(|(_, bits)| bits.count_ones()).sum();
        outcomes.saw(["none", "one", "both"][found as usize]);
    });
}
