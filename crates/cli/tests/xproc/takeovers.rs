//! Takeovers of a standby pair whose processes are killed, stopped and kept apart for real.

use std::ops::Range;
use std::process::Command;

use bumpless_substrate::clock::monotonic_ns;
use rustix::process::Signal;
use serde_json::Value;

use crate::child::await_until;
use crate::pair::{
    BUMPLESS, LIMIT, PERIOD_NS, Pair, assert_stayed, assert_taken_over, late_takeovers,
};
use crate::scene::Scene;
use crate::setup::Setup;

/// Cycles that a state lasts, so that what follows from it is seen.
const LASTS: u64 = 20;

/// A path that is silent for a little longer is told to be degraded.
const ALARM_CYCLES: u64 = 8;

/// Orders to a primary, of which a busy machine brings some too late: where its partner has just been killed,
/// each has about 30 ms.
const ORDERS_MAX: u32 = 50;

/// 102.
pub fn killed_primary_is_replaced_and_its_output_goes_on(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "kill", Setup::loopback(0, 1, false));
    let standby = 1 - primary;
    let was_late = was_late_since(&pair, 0);
    pair.kill(primary);
    pair.await_takeover(standby);
    let promoted = pair.await_event(standby, "cause: Takeover");
    let alarmed = pair.await_event(standby, "alarm: RedundancyLost");
    // In another one only where the machine was late before: the primary was not heard for a while, or the role
    // had changed and come back.
    let is_with_it = alarmed == promoted || was_late;
    assert!(
        is_with_it,
        "takeover in cycle {promoted}, alarm in {alarmed}"
    );
    pair.await_cycles(standby, LASTS);
    let dead = status(&pair, primary);
    assert_eq!(dead["is_alive"], false, "{dead}");
    // Where the plant is late, it drives nothing for a while.
    let mut alive = Value::Null;
    await_until(LIMIT, "a node that drives alone", || {
        alive = status(&pair, standby);
        alive["state"] == "solo"
    });
    assert_eq!(alive["is_alive"], true, "{alive}");
    assert_eq!(alive["redundancy"], "lost");
    assert!(
        alive["active_alarms"]
            .to_string()
            .contains("RedundancyLost"),
        "{alive}"
    );
    let (figures, pair) = pair.report();
    assert_taken_over(&figures);
    assert_stayed(dead["state"] == "primary", &figures);
    let first = pair
        .offers()
        .into_iter()
        .find(|offer| offer.node == standby);
    assert!(first.expect("an output").is_accepted);
    scene.note(&summary(&figures));
}

/// 104.
pub fn stopped_primary_that_goes_on_drives_nothing(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "stop", Setup::loopback(0, 1, false));
    let standby = 1 - primary;
    pair.signal(primary, "stop", Signal::STOP);
    pair.await_takeover(standby);
    pair.await_cycles(standby, 5 * LASTS);
    pair.signal(primary, "continue", Signal::CONT);
    pair.await_event(primary, "Demoted");
    pair.await_redundancy();
    pair.await_cycles(standby, LASTS);
    let (figures, pair) = pair.report();
    let demoted = ticks_to_demotion(&pair, primary, &figures);
    assert!(demoted <= 2, "{demoted} ticks until it knew");
    scene.note(&format!("{}; demoted in tick {demoted}", summary(&figures)));
}

/// 105.
pub fn zombie_that_hears_no_partner_is_demoted_by_the_plant(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "zombie", Setup::loopback(0, 1, true));
    let standby = 1 - primary;
    pair.proxy("deaf", primary, &format!("cut {standby}>{primary}/0"));
    pair.await_event(primary, "PartnerLost");
    pair.signal(primary, "stop", Signal::STOP);
    pair.await_takeover(standby);
    pair.await_cycles(standby, LASTS);
    pair.signal(primary, "continue", Signal::CONT);
    pair.await_event(primary, "cause: Refused");
    pair.await_cycles(standby, LASTS);
    let (figures, pair) = pair.report();
    let demoted = ticks_to_demotion(&pair, primary, &figures);
    assert!(demoted <= 3, "{demoted} ticks until it knew");
    scene.note(&format!("{}; demoted in tick {demoted}", summary(&figures)));
}

/// 107 and 108.
pub fn cut_pair_has_one_writer_and_is_one_again_when_healed(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "cut", Setup::loopback(0, 2, true));
    let standby = 1 - primary;
    let ways = "0>1/0 1>0/0 0>1/1 1>0/1";
    pair.await_cycles(primary, LASTS);
    let cut_ns = pair.proxy("cut", primary, &format!("cut {ways}"));
    pair.await_takeover(standby);
    pair.await_event(primary, "Demoted");
    pair.await_cycles(standby, LASTS);
    pair.proxy("heal", primary, &format!("heal {ways}"));
    let stays = pair.await_redundancy() == standby;
    pair.await_cycles(standby, LASTS);
    let (figures, pair) = pair.report();
    assert_stayed(stays, &figures);
    let shared = figures["shared_cycles"].as_u64().expect("a count");
    // A late node, or a late output of the new primary, lets the old one drive for as much longer.
    let until_ns = cut_ns + 2 * LASTS * PERIOD_NS;
    let late = [0, 1].map(|node| late_cycles(&pair, node, cut_ns..until_ns));
    let on_their_way = cycles_on_the_way(&pair, standby, cut_ns..until_ns);
    let excused = late_takeovers(&figures) + late[0] + late[1] + on_their_way;
    assert!(
        shared <= 1 + excused,
        "{shared} cycles with outputs of both, {excused} late\n{figures}"
    );
    let demoted = ticks_after_refusal(&pair, primary);
    assert!(demoted <= 1, "{demoted} ticks after the refusal");
    scene.note(&format!(
        "{}; {} us from the refusal, qualified {} us after the heal",
        summary(&figures),
        figures["demoted_after_nack_us"],
        figures["qualified_after_heal_us"]
    ));
}

/// 109.
pub fn primary_that_is_not_heard_is_replaced_once(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "mute", Setup::loopback(0, 1, true));
    let standby = 1 - primary;
    pair.proxy("cut", primary, &format!("cut {primary}>{standby}/0"));
    pair.await_takeover(standby);
    pair.await_event(primary, "Demoted");
    pair.await_cycles(standby, 5 * LASTS);
    let (figures, pair) = pair.report();
    let back = promotions(&pair, primary).len() - 1;
    let excused = late_takeovers(&figures);
    assert!(back as u64 <= excused, "it took the role back\n{figures}");
    scene.note(&summary(&figures));
}

/// 110.
pub fn primary_that_does_not_hear_keeps_its_role_and_both_say_so(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "deaf", Setup::loopback(0, 1, true));
    let standby = 1 - primary;
    let at_ns = pair.proxy("deaf", primary, &format!("cut {standby}>{primary}/0"));
    expect_alarm(&pair, primary, "alarm: Path0Degraded", at_ns);
    expect_alarm(&pair, standby, "alarm: Path0Degraded", at_ns);
    pair.await_cycles(primary, LASTS);
    let (figures, _) = pair.report();
    scene.note(&summary(&figures));
}

/// 111.
pub fn dead_path_of_two_is_named_and_changes_nothing(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "path", Setup::loopback(0, 2, true));
    let standby = 1 - primary;
    let at_ns = pair.proxy("cut-one", primary, "cut 0>1/1 1>0/1");
    for node in [primary, standby] {
        expect_alarm(&pair, node, "alarm: Path1Degraded", at_ns);
        let other = "alarm: Path0Degraded";
        let told = pair.events(node);
        let names_other =
            |event: &Value| event["detail"].as_str().is_some_and(|d| d.contains(other));
        // Unless the partner, or what is between, stood still for so long.
        assert!(
            !told.iter().any(names_other) || longest_gap_ns(&pair, 0) > ALARM_CYCLES * PERIOD_NS,
            "{told:?}"
        );
    }
    pair.await_cycles(primary, LASTS);
    let (figures, _) = pair.report();
    scene.note(&summary(&figures));
}

/// 145.
pub fn switch_over_loses_no_cycle_and_is_refused_without_a_standby(scene: &Scene) {
    let (mut pair, _) = Pair::start(scene, "switch", Setup::loopback(0, 1, false));
    let (mut primary, mut ordered_ns) = (0, 0);
    let is_done = (0..ORDERS_MAX).any(|_| {
        let since_ns = monotonic_ns();
        primary = pair.await_redundancy();
        ordered_ns = monotonic_ns();
        let told = switched_over(&pair, primary);
        // Where the machine was late meanwhile the role changed, or the standby did not answer in time.
        assert!(told.is_ok() || was_late_since(&pair, since_ns), "{told:?}");
        told.is_ok()
    });
    assert!(is_done, "no order came in time");
    let standby = 1 - primary;
    pair.await_event(primary, "SwitchOver {");
    let stays = pair.await_redundancy() == standby;
    pair.await_cycles(standby, LASTS);
    expect_no_lost_cycle(&pair, ordered_ns);

    // The partner dies in the middle: the primary keeps the role.
    let mut kept = false;
    for _ in 0..ORDERS_MAX {
        let driver = pair.await_redundancy();
        let other = 1 - driver;
        pair.await_cycles(driver, LASTS);
        pair.signal(other, "died", Signal::KILL);
        // Refused when the machine let it be silent for the timeout before the order came.
        kept = pair.order(driver, "switch-over") == "ok";
        if kept {
            pair.await_event(driver, "SwitchOverFailed");
            pair.await_cycles(driver, LASTS);
            await_until(LIMIT, "a node that drives alone", || {
                pair.state(driver) == "solo"
            });
            let refused = pair.order(driver, "switch-over");
            assert_ne!(refused, "ok", "a switch-over to nobody");
            break;
        }
        pair.start_node(other);
    }
    assert!(kept, "no order reached a primary in time");
    let (figures, _) = pair.report();
    assert_stayed(stays, &figures);
    scene.note(&summary(&figures));
}

/// 147.
pub fn standby_that_was_stopped_listens_before_it_judges(scene: &Scene) {
    let (mut pair, primary) = Pair::start(scene, "pause", Setup::loopback(0, 1, false));
    let standby = 1 - primary;
    let noticed = |pair: &Pair| {
        let told = pair.events(standby).into_iter();
        told.filter(|event| event["event"] == "OwnPause").count()
    };
    for _ in 0..5 {
        pair.await_cycles(primary, LASTS);
        let before = noticed(&pair);
        pair.signal(standby, "pause", Signal::STOP);
        pair.await_cycles(primary, 5);
        pair.signal(standby, "resume", Signal::CONT);
        // Each by itself: where the machine lets it wait, two would be one.
        await_until(LIMIT, "a pause that is noticed", || noticed(&pair) > before);
    }
    pair.await_cycles(standby, LASTS);
    let (figures, _) = pair.report();
    scene.note(&summary(&figures));
}

/// Orders a switch-over, as an operator does, and awaits what comes of it.
fn switched_over(pair: &Pair, primary: u8) -> Result<(), String> {
    let told = |node: u8, what: &str| {
        let events = pair.events(node).into_iter();
        events
            .filter(|event| event["detail"].as_str().is_some_and(|d| d.contains(what)))
            .count()
    };
    let done = || told(1 - primary, "cause: SwitchOver");
    let failed = || told(primary, "SwitchOverFailed");
    let before = (done(), failed());
    let mut command = Command::new(BUMPLESS);
    command.args(["standby", "switch-over", "--state-dir"]);
    let ordered = command.arg(pair.state_dir(primary)).output().expect("run");
    if !ordered.status.success() {
        return Err(String::from_utf8_lossy(&ordered.stderr).into_owned());
    }
    await_until(LIMIT, "the switch-over, or its failure", || {
        (done(), failed()) != before
    });
    match done() > before.0 {
        true => Ok(()),
        false => Err("SwitchOverFailed".to_owned()),
    }
}

/// Whether a node began a cycle late, or the plant looked late.
fn was_late_since(pair: &Pair, since_ns: u64) -> bool {
    longest_gap_ns(pair, since_ns) > PERIOD_NS * 3 / 2
}

/// The longest time between two cycles of a node, or two looks of the plant.
fn longest_gap_ns(pair: &Pair, since_ns: u64) -> u64 {
    let cycles = [0, 1].map(|node| -> Vec<u64> {
        let cycles = pair.cycles(node).into_iter();
        cycles.map(|cycle| cycle.begin_ns).collect()
    });
    let offers: Vec<u64> = pair.offers().iter().map(|offer| offer.at_ns).collect();
    let gaps = cycles.iter().chain([&offers]).flat_map(|at| at.windows(2));
    let since = gaps.filter(|two| two[1] >= since_ns);
    since.map(|two| two[1] - two[0]).max().unwrap_or(0)
}

/// A line for the scenario's notes.
pub fn summary(figures: &Value) -> String {
    let ms = |name: &str| {
        figures[name]
            .as_f64()
            .map_or("-".to_owned(), |us| format!("{:.1} ms", us / 1e3))
    };
    format!(
        "takeover {}, missing {}, bump {}, late {}+{}+{}",
        ms("takeover_us"),
        figures["missing_cycles"],
        figures["bump"],
        figures["primary_late"],
        figures["plant_late"],
        figures["partly_late"]
    )
}

/// What a node's tag says.
fn status(pair: &Pair, node: u8) -> Value {
    let mut command = Command::new(BUMPLESS);
    command.args(["standby", "status", "--json", "--state-dir"]);
    let output = command.arg(pair.state_dir(node)).output().expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"))
}

fn promotions(pair: &Pair, node: u8) -> Vec<Value> {
    let told = pair.events(node).into_iter();
    told.filter(|event| event["event"] == "Promoted").collect()
}

/// Ticks of a stopped node from its going on until it said that it is demoted, the first one counted as 1, but
/// for those in which the machine was late. None, where the machine was late before the stop, and it was demoted
/// then.
fn ticks_to_demotion(pair: &Pair, node: u8, figures: &Value) -> usize {
    let told = pair.events(node);
    let demoted = told.iter().rfind(|told| told["event"] == "Demoted");
    let at_ns = demoted
        .and_then(|told| told["at_ns"].as_u64())
        .expect("an event");
    let cycles = pair.cycles(node);
    let paused = cycles
        .windows(2)
        .rfind(|pair| pair[1].begin_ns <= at_ns && pair[1].number > pair[0].number + LASTS);
    let Some([_, resumed]) = paused else {
        assert!(late_takeovers(figures) > 0, "no pause: {figures}");
        return 0;
    };
    let resumed_ns = resumed.begin_ns;
    let ticks = cycles.iter().map(|cycle| cycle.begin_ns);
    let ticks = ticks
        .filter(|begin_ns| (resumed_ns..=at_ns).contains(begin_ns))
        .count();
    ticks.saturating_sub(late_cycles(pair, node, resumed_ns..at_ns) as usize)
}

/// By how many cycles the partner of a node, or the plant, was late, in all: what they were to tell it came
/// later by so many.
fn late_cycles(pair: &Pair, node: u8, during_ns: Range<u64>) -> u64 {
    let partner = pair.cycles(1 - node).into_iter();
    let moments = [
        partner.map(|cycle| cycle.begin_ns).collect::<Vec<_>>(),
        pair.offers().iter().map(|offer| offer.at_ns).collect(),
    ];
    let gaps = moments.iter().flat_map(|moments| moments.windows(2));
    let gaps = gaps.filter(|two| two[1] > during_ns.start && two[0] < during_ns.end);
    let late = gaps.map(|two| (two[1] - two[0]).saturating_sub(PERIOD_NS / 2) / PERIOD_NS);
    late.sum()
}

/// How many cycles an output of a node was on its way to the plant, at most.
fn cycles_on_the_way(pair: &Pair, node: u8, during_ns: Range<u64>) -> u64 {
    let cycles = pair.cycles(node);
    let offers = pair.offers().into_iter();
    let offers = offers.filter(|offer| offer.node == node && during_ns.contains(&offer.at_ns));
    let times_ns = offers.filter_map(|offer| {
        let sent = cycles.iter().find(|cycle| cycle.number == offer.cycle)?;
        Some(offer.at_ns.saturating_sub(sent.begin_ns))
    });
    times_ns.max().unwrap_or(0) / PERIOD_NS
}

/// Ticks of a node between the plant's first refusal and its demotion, but for those in which the machine was
/// late.
fn ticks_after_refusal(pair: &Pair, node: u8) -> usize {
    let offers = pair.offers();
    let refused = offers
        .iter()
        .find(|offer| offer.node == node && !offer.is_accepted);
    let Some(refused) = refused else {
        return 0;
    };
    let told = pair.events(node);
    let demoted = told.iter().find(|told| told["event"] == "Demoted");
    let at_ns = demoted
        .and_then(|told| told["at_ns"].as_u64())
        .expect("an event");
    let cycles = pair.cycles(node);
    let ticks = cycles.iter().map(|cycle| cycle.begin_ns);
    let ticks = ticks
        .filter(|begin_ns| *begin_ns > refused.at_ns && *begin_ns < at_ns)
        .count();
    ticks.saturating_sub(late_cycles(pair, node, refused.at_ns..at_ns) as usize)
}

/// A path's silence is told within ten cycles: the node's own, and those that its partner left out.
fn expect_alarm(pair: &Pair, node: u8, alarm: &str, since_ns: u64) {
    let cycle = pair.await_event(node, alarm);
    let since = |of: u8| {
        let cycles = pair.cycles(of).into_iter();
        cycles.filter(move |ran| ran.begin_ns > since_ns && ran.number <= cycle)
    };
    let own = since(node).count();
    let partner = since(1 - node);
    let first = since(node).next().map_or(cycle, |first| first.number);
    let left_out = (cycle - first + 1).saturating_sub(partner.count() as u64) as usize;
    assert!(
        own <= 11 + left_out,
        "{alarm} of node {node} after {own} cycles"
    );
}

/// Around the first change of the writer behind an order every cycle has an accepted output, but for those
/// that a node left out as it was late.
fn expect_no_lost_cycle(pair: &Pair, ordered_ns: u64) {
    let ran = [0, 1].map(|node| -> Vec<u64> {
        let cycles = pair.cycles(node).into_iter();
        cycles.map(|cycle| cycle.number).collect()
    });
    let offers = pair.offers().into_iter();
    let accepted: Vec<_> = offers.filter(|offer| offer.is_accepted).collect();
    let change = accepted
        .windows(2)
        .find(|step| step[1].at_ns >= ordered_ns && step[0].node != step[1].node);
    let [last, first] = change.expect("a change of the writer") else {
        panic!("a window of two");
    };
    let lost =
        (last.cycle + 1..first.cycle).find(|cycle| ran.iter().all(|ran| ran.contains(cycle)));
    assert_eq!(lost, None, "no output between {last:?} and {first:?}");
}
