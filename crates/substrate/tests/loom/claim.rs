//! The claim word: one owner at a time, and who sees it sees its fields.

use std::sync::Arc;

use bumpless_substrate::claim::{Claim, ClaimState, ClaimWord};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering, fence};
use loom::thread;

use crate::seeing::check_seeing;

const A: u32 = 10;
const B: u32 = 11;

bumpless_substrate::shared_struct! {
    /// A claim and what it guards.
    struct Record[size = 16, align = 8] {
        /// Who owns the record.
        0 => claim: ClaimWord,
        /// The owner's pid and generation, as its field.
        8 => field: AtomicU64,
    }
}

impl Record {
    fn set_field(&self, claim: Claim) {
        // Relaxed: what the claim word publishes.
        self.field.store(mark_of(claim), Ordering::Relaxed);
    }

    fn field(&self) -> u64 {
        // Relaxed: as above.
        self.field.load(Ordering::Relaxed)
    }

    /// Claims, fills and publishes; the owner's claim, or the claim in the way.
    fn take(&self, seen: Claim, pid: u32) -> Result<Claim, Claim> {
        let claiming = self.claim.claim(seen, pid)?;
        // As `SeqLock::begin`, the first step of filling a slot: CLAIMING before the new fields, for
        // those who look at the claim again behind them.
        fence(Ordering::Release);
        self.set_field(claiming);
        Ok(self
            .claim
            .publish(claiming)
            .expect("nobody else changes a CLAIMING record"))
    }
}

/// What an owner writes into its field: pid and generation without the state.
fn mark_of(claim: Claim) -> u64 {
    claim.bits() >> 4
}

#[test]
fn of_two_claimers_exactly_one_wins() {
    check_seeing(
        "claim, 2 claimers",
        3,
        &["main wins", "child wins"],
        |outcomes| {
            let record = Arc::new(Record::zeroed());
            let child = {
                let record = Arc::clone(&record);
                thread::spawn(move || record.take(Claim::FREE, B))
            };
            let main = record.take(Claim::FREE, A);
            let child = child.join().unwrap();
            let (owner, beaten) = match (main, child) {
                (Ok(owner), Err(beaten)) => (owner, beaten),
                (Err(beaten), Ok(owner)) => (owner, beaten),
                both => panic!("not exactly one owner: {both:?}"),
            };
            assert_eq!(record.claim.load(), owner);
            assert_eq!(owner.generation(), 1);
            assert_eq!(beaten.pid(), owner.pid(), "the loser learns who won");
            assert_eq!(record.field(), mark_of(owner), "the loser wrote");
            outcomes.saw(if owner.pid() == A {
                "main wins"
            } else {
                "child wins"
            });
        },
    );
}

#[test]
fn who_sees_live_sees_the_fields() {
    check_seeing(
        "claim, claimer and reader",
        3,
        &["free", "claiming", "live"],
        |outcomes| {
            let record = Arc::new(Record::zeroed());
            let reader = {
                let record = Arc::clone(&record);
                thread::spawn(move || (record.claim.load(), record.field()))
            };
            record.take(Claim::FREE, A).unwrap();
            let (claim, field) = reader.join().unwrap();
            match claim.state() {
                Some(ClaimState::Free) => outcomes.saw("free"),
                Some(ClaimState::Claiming) => outcomes.saw("claiming"),
                Some(ClaimState::Live) => {
                    assert_eq!(field, mark_of(claim), "LIVE before its fields");
                    outcomes.saw("live");
                }
                other => panic!("{other:?}"),
            }
        },
    );
}

/// The next claimer decides on a claim that it saw with no ordering: the claim's own
/// compare-and-swap must bring what the predecessor wrote.
#[test]
fn the_next_owner_sees_what_its_predecessor_wrote() {
    check_seeing(
        "claim, handover",
        3,
        &["taken over", "still owned"],
        |outcomes| {
            let record = Arc::new(Record::zeroed());
            let live = record.take(Claim::FREE, A).unwrap();
            let next = {
                let record = Arc::clone(&record);
                thread::spawn(move || {
                    let seen = record.claim.peek();
                    if seen.is_live() {
                        return None;
                    }
                    record
                        .claim
                        .claim(seen, B)
                        .ok()
                        .map(|claiming| (claiming, record.field()))
                })
            };
            // Relaxed: published by the release below.
            record.field.store(77, Ordering::Relaxed);
            record.claim.release(live).unwrap();
            match next.join().unwrap() {
                None => outcomes.saw("still owned"),
                Some((claiming, field)) => {
                    assert_eq!((claiming.generation(), field), (2, 77));
                    outcomes.saw("taken over");
                }
            }
        },
    );
}

/// As the table does it: the claim is loaded with ordering, then the predecessor's record read.
#[test]
fn who_sees_a_record_given_back_sees_its_last_state() {
    check_seeing(
        "claim, release and reader",
        3,
        &["released", "live"],
        |outcomes| {
            let record = Arc::new(Record::zeroed());
            let live = record.take(Claim::FREE, A).unwrap();
            let reader = {
                let record = Arc::clone(&record);
                thread::spawn(move || (record.claim.load(), record.field()))
            };
            // Relaxed: published by the release below.
            record.field.store(77, Ordering::Relaxed);
            let released = record.claim.release(live).unwrap();
            let (claim, field) = reader.join().unwrap();
            if claim == released {
                assert_eq!(field, 77, "RELEASED before the last store");
                outcomes.saw("released");
            } else {
                assert_eq!(claim, live);
                outcomes.saw("live");
            }
        },
    );
}

/// Owner A gives back, B takes over, across a reader on single words.
#[test]
fn a_turnover_is_never_a_mix_of_two_owners() {
    let wanted = ["A", "given back", "claiming", "B"];
    check_seeing("claim, turnover", 3, &wanted, |outcomes| {
        let record = Arc::new(Record::zeroed());
        let first = record.take(Claim::FREE, A).unwrap();
        let reader = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                let seen = record.claim.load();
                let field = record.field();
                // The second look of whoever decides on single words: the field is of this owner if
                // the claim still is.
                fence(Ordering::Acquire);
                (seen, field, record.claim.peek())
            })
        };
        let released = record.claim.release(first).unwrap();
        let second = record.take(released, B).unwrap();
        assert_eq!(second.generation(), 2);
        let (seen, field, again) = reader.join().unwrap();
        outcomes.saw(match seen.state() {
            Some(ClaimState::Live) if seen == first => "A",
            Some(ClaimState::Live) => "B",
            Some(ClaimState::Released) => "given back",
            _ => "claiming",
        });
        if seen.is_live() && again == seen {
            assert_eq!(field, mark_of(seen), "the fields of another owner");
        }
    });
}

/// One process claims, gives back and claims again while another thread of it holds the old handle.
#[test]
fn an_old_handle_never_fits_a_later_claim_of_the_same_process() {
    check_seeing(
        "claim, old handle",
        3,
        &["in time", "too late"],
        |outcomes| {
            let record = Arc::new(Record::zeroed());
            let old = record.take(Claim::FREE, A).unwrap();
            let other = {
                let record = Arc::clone(&record);
                thread::spawn(move || record.claim.release(old))
            };
            // The table's local lock lets only one of them in; here the word alone decides.
            let mine = record.claim.release(old);
            let again = record.take(Claim::new(A, 1, ClaimState::Released), A);
            let theirs = other.join().unwrap();
            let owner = again.expect("given back by one of the two");
            assert_ne!(owner, old, "a handle recurs");
            assert_eq!(record.claim.load(), owner, "released by an old handle");
            assert!(
                mine.is_ok() != theirs.is_ok(),
                "given back twice: {mine:?}, {theirs:?}"
            );
            outcomes.saw(if theirs.is_ok() {
                "in time"
            } else {
                "too late"
            });
        },
    );
}
