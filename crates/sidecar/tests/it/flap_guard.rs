//! The flap guard on simulated roles: it costs nothing while they are calm, and calms them when they are not.

use bumpless_sidecar::{FlapGuard, FlapLimits, InstanceStats, NodeOp, Observation, Policy};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = 10_000_000;
const MISS_LIMIT: u32 = 3;

fn guard() -> FlapGuard {
    FlapGuard::new(FlapLimits::default())
}

#[test]
fn a_takeover_an_hour_and_a_switch_test_a_day_never_raise_it() {
    let mut guard = guard();
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut now_ns = 0;
    for _ in 0..10_000 {
        now_ns += random.random_range(600..7_200) * SECOND_NS;
        // There and back.
        guard.note_change(now_ns);
        guard.note_change(now_ns + SECOND_NS);
        assert_eq!(guard.hold_off_cycles(now_ns + 2 * SECOND_NS), 0);
    }
}

#[test]
fn changes_a_second_apart_raise_it_within_four_and_calm_lets_it_fall_to_nothing() {
    let mut guard = guard();
    let hold_offs: Vec<u32> = (0..40)
        .map(|second| {
            guard.note_change(second * SECOND_NS);
            guard.hold_off_cycles(second * SECOND_NS)
        })
        .collect();
    assert_eq!(hold_offs[..3], [0, 0, 0]);
    assert!(hold_offs[3] > 0 && hold_offs.is_sorted(), "{hold_offs:?}");
    assert_eq!(hold_offs[39], FlapLimits::default().hold_off_cycles_max);
    let falling: Vec<u32> = (1..20)
        .map(|half_minute| guard.hold_off_cycles((40 + 30 * half_minute) * SECOND_NS))
        .collect();
    assert!(falling.iter().rev().is_sorted(), "{falling:?}");
    assert_eq!(falling.last(), Some(&0));
}

/// A standby behind a link that falls silent now and then, for a while: how often it took over in an hour,
/// and in how many cycles it would have seen a real death at the end.
fn takeovers(guarded: bool, silence: impl Fn(&mut Pcg64Mcg) -> u32) -> (u32, u32) {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let (mut guard, mut now_ns, mut changes) = (guard(), 0, 0);
    while now_ns < 3_600 * SECOND_NS {
        now_ns += random.random_range(1..10) * SECOND_NS;
        let silent_cycles = silence(&mut random);
        let hold_off = if guarded {
            guard.hold_off_cycles(now_ns)
        } else {
            0
        };
        if silent_cycles > MISS_LIMIT + hold_off {
            changes += 1;
            guard.note_change(now_ns);
        }
        now_ns += u64::from(silent_cycles) * PERIOD_NS;
    }
    let hold_off = if guarded {
        guard.hold_off_cycles(now_ns)
    } else {
        0
    };
    (changes, MISS_LIMIT + hold_off)
}

#[test]
fn on_a_link_with_short_gaps_it_takes_more_than_half_of_the_changes_away_and_costs_a_tenth_of_a_second()
 {
    let gaps = |random: &mut Pcg64Mcg| random.random_range(0..16);
    let (without, _) = takeovers(false, gaps);
    let (with, detection_cycles) = takeovers(true, gaps);
    println!("| gaps of 0 to 15 cycles | {without} | {with} | {detection_cycles} |");
    assert!(without > 400, "{without}");
    assert!(with * 2 < without, "{with} of {without}");
    assert!(u64::from(detection_cycles) * PERIOD_NS < SECOND_NS / 5);
}

#[test]
fn real_deaths_are_still_taken_over_when_roles_flap_at_the_limit() {
    let dead = |_: &mut Pcg64Mcg| 1_000;
    let (without, _) = takeovers(false, dead);
    let (with, detection_cycles) = takeovers(true, dead);
    println!("| always for 10 s | {without} | {with} | {detection_cycles} |");
    assert_eq!(with, without);
    let limit = MISS_LIMIT + FlapLimits::default().hold_off_cycles_max;
    assert!(detection_cycles <= limit, "{detection_cycles}");
}

#[test]
fn as_a_policy_it_reads_changes_from_the_statistics_and_asks_once() {
    let mut guard = guard();
    let mut stats = InstanceStats::default();
    for second in 0..6 {
        stats.scanned_ns = second * SECOND_NS;
        stats.add(&Observation {
            op_kind: NodeOp::RoleChange.into(),
            ..Observation::default()
        });
        let _ = guard.decide(&stats, 0);
    }
    let asked = guard.decide(&stats, 0).expect("six changes in six seconds");
    assert_eq!(guard.decide(&stats, asked), None);
    stats.scanned_ns += 3_600 * SECOND_NS;
    assert_eq!(guard.decide(&stats, asked), Some(0));
}
