//! The verdict line: each death is recorded once and acknowledged once.

use std::sync::Arc;

use bumpless_heartbeat::verdict_line::VerdictLine;
use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::cells::A;
use crate::seeing::{DIED, check_each_death, check_seeing};

fn dead(generation: u32) -> Claim {
    Claim::new(A, generation, ClaimState::Live)
}

#[test]
fn of_two_recorders_of_one_death_one_is_told() {
    check_seeing(
        "verdict, 2 recorders",
        3,
        &["main records", "child records"],
        |outcomes| {
            let line = Arc::new(VerdictLine::zeroed());
            let child = {
                let line = Arc::clone(&line);
                thread::spawn(move || line.record_death(dead(1)))
            };
            let main = line.record_death(dead(1));
            let child = child.join().unwrap();
            assert!(main != child, "recorded by both or by none");
            assert_eq!((line.deaths().waiting(), line.last_dead()), (1, dead(1)));
            outcomes.saw(if main {
                "main records"
            } else {
                "child records"
            });
        },
    );
}

/// Deaths of two generations: the earlier one may be passed over by the later one, never counted twice.
#[test]
fn deaths_of_two_generations_never_go_back() {
    check_seeing(
        "verdict, 2 generations",
        3,
        &["both", "the later only"],
        |outcomes| {
            let line = Arc::new(VerdictLine::zeroed());
            let earlier = {
                let line = Arc::clone(&line);
                thread::spawn(move || line.record_death(dead(1)))
            };
            assert!(line.record_death(dead(2)), "the later one is always told");
            let earlier = earlier.join().unwrap();
            let deaths = line.deaths();
            assert_eq!((deaths.generation(), line.last_dead()), (2, dead(2)));
            assert_eq!(deaths.waiting(), 1 + u32::from(earlier));
            outcomes.saw(if earlier { "both" } else { "the later only" });
        },
    );
}

#[test]
fn a_death_recorded_beside_an_acknowledgement_stays() {
    let wanted = ["recorded before", "recorded after"];
    check_seeing(
        "verdict, recorder and acknowledger",
        3,
        &wanted,
        |outcomes| {
            let line = Arc::new(VerdictLine::zeroed());
            line.record_death(dead(1));
            let acknowledger = {
                let line = Arc::clone(&line);
                thread::spawn(move || {
                    let shown = line.deaths().recorded();
                    (shown, line.acknowledge(shown))
                })
            };
            assert!(line.record_death(dead(2)));
            let (shown, acknowledged) = acknowledger.join().unwrap();
            assert_eq!(
                shown, acknowledged,
                "what was shown is what is acknowledged"
            );
            assert_eq!(
                line.deaths().waiting(),
                2 - acknowledged,
                "acknowledged unseen, or lost"
            );
            outcomes.saw(if shown == 2 {
                "recorded before"
            } else {
                "recorded after"
            });
        },
    );
}

/// Two watchdogs; one has a report with one death, the other with two.
#[test]
fn overlapping_acknowledgements_count_each_death_once() {
    let wanted = ["the long one takes all", "one each"];
    check_seeing("verdict, 2 acknowledgers", 3, &wanted, move |outcomes| {
        let line = Arc::new(VerdictLine::zeroed());
        line.record_death(dead(1));
        let short = line.deaths().recorded();
        line.record_death(dead(2));
        let long = line.deaths().recorded();
        let other = {
            let line = Arc::clone(&line);
            thread::spawn(move || line.acknowledge(short))
        };
        let main = line.acknowledge(long);
        let other = other.join().unwrap();
        assert_eq!(main + other, 2, "acknowledged twice, or lost");
        assert_eq!(line.deaths().waiting(), 0);
        outcomes.saw(if other == 0 { wanted[0] } else { wanted[1] });
    });
}

/// A recorder dies before any of its changes; the next recorder makes it good.
#[test]
fn a_recorder_that_dies_leaves_the_death_to_the_next() {
    let wanted = [DIED, "recorded by the dead one", "recorded by the next"];
    check_each_death("verdict, recorder dies", 2, &wanted, |outcomes, changes| {
        let line = Arc::new(VerdictLine::zeroed());
        let other = {
            let line = Arc::clone(&line);
            thread::spawn(move || line.record_death(dead(1)))
        };
        let first = die_before_change(changes, || line.record_death(dead(1)));
        if first.is_none() {
            outcomes.saw(DIED);
        }
        let other = other.join().unwrap();
        let later = line.record_death(dead(1));
        let told = [first == Some(true), other, later];
        assert_eq!(told.iter().filter(|told| **told).count(), 1, "{told:?}");
        assert_eq!((line.deaths().waiting(), line.last_dead()), (1, dead(1)));
        let by_next = first.is_none() && (other || later);
        outcomes.saw(if by_next {
            "recorded by the next"
        } else {
            "recorded by the dead one"
        });
    });
}
