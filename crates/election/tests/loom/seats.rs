//! The seat alone: each hand-over is the next term, and a look is of one moment, over whole laps.

use std::sync::Arc;

use bumpless_election::seat::{Candidate, LeaderLine, Reign};
use bumpless_substrate::layout::Shared;
use loom::thread;

use crate::seeing::check_seeing;

fn named(slot: u32) -> Candidate {
    Candidate {
        slot,
        generation: 1,
    }
}

/// A line that slot 0 holds in this term.
fn held_in(term: u64) -> Arc<LeaderLine> {
    let line = LeaderLine::zeroed();
    line.begin(0, term - 1);
    assert!(line.hand_over(line.look(), named(0)));
    Arc::new(line)
}

/// Seats `to`, whoever leads; what it then sees, if it is still seated.
fn take(line: &LeaderLine, to: Candidate) -> (bool, Option<Reign>) {
    let taken = line.hand_over(line.look(), to);
    let now = line.look();
    (taken, (now.holder() == Some(to)).then_some(now))
}

/// Each term before, at and behind the end of half a lap, and of a whole one.
#[test]
fn two_claimers_beside_a_leader_that_steps_down_never_share_a_term() {
    for term in 1..=4 {
        let wanted = ["stepped down", "too late", "both", "one", "lost again"];
        check_seeing(&format!("seat, term {term}"), 2, &wanted, move |outcomes| {
            let line = held_in(term);
            let claimers = [1, 2].map(|slot| {
                let line = Arc::clone(&line);
                thread::spawn(move || take(&line, named(slot)))
            });
            let stepped_down = line.vacate(line.look());
            outcomes.saw(if stepped_down {
                "stepped down"
            } else {
                "too late"
            });
            let taken = claimers.map(|claimer| claimer.join().unwrap());
            let now = line.look();
            let hand_overs = taken.iter().filter(|(taken, _)| *taken).count() as u64;
            outcomes.saw(if hand_overs == 2 { "both" } else { "one" });
            assert_eq!(now.term(), term + hand_overs, "one term for each hand-over");
            let mut terms = Vec::new();
            for (taken, seated) in taken {
                match seated {
                    Some(reign) => {
                        assert!(taken && (term + 1..=now.term()).contains(&reign.term()));
                        terms.push(reign.term());
                    }
                    None if taken => outcomes.saw("lost again"),
                    None => {}
                }
            }
            assert!(
                terms.len() < 2 || terms[0] != terms[1],
                "two leaders of {terms:?}"
            );
        });
    }
}

/// The holder's slot says the term, whatever the reader meets.
#[test]
fn a_look_is_of_one_moment_however_many_half_laps_go_by() {
    for term in 1..=2_u32 {
        check_seeing(
            &format!("seat, looked at from term {term}"),
            2,
            &["first", "later", "last"],
            move |outcomes| {
                let line = LeaderLine::zeroed();
                line.begin(0, u64::from(term) - 1);
                assert!(line.hand_over(line.look(), named(term)));
                let line = Arc::new(line);
                let reader = {
                    let line = Arc::clone(&line);
                    thread::spawn(move || [line.look(), line.look()])
                };
                let last = term + 3;
                for next in term + 1..=last {
                    assert!(line.hand_over(line.look(), named(next)));
                }
                let looks = reader.join().unwrap();
                for look in looks {
                    let named = look.holder().expect("held all the time").slot;
                    assert_eq!(
                        u64::from(named),
                        look.term(),
                        "holder and term of two moments"
                    );
                    outcomes.saw(match named {
                        named if named == term => "first",
                        named if named == last => "last",
                        _ => "later",
                    });
                }
                assert!(looks[0].term() <= looks[1].term(), "a term went down");
            },
        );
    }
}

#[test]
fn who_closes_an_election_knows_its_last_term() {
    check_seeing("seat, closed", 3, &["before", "after"], |outcomes| {
        let line = held_in(3);
        let claimer = {
            let line = Arc::clone(&line);
            thread::spawn(move || line.hand_over(line.look(), named(1)))
        };
        let last = line.close();
        let taken = claimer.join().unwrap();
        assert_eq!(
            last.term(),
            if taken { 4 } else { 3 },
            "a term beyond the last"
        );
        assert!(line.look().is_closed() && line.look() == last);
        outcomes.saw(if taken { "before" } else { "after" });
    });
}
