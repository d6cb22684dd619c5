//! The user's own controllers in a standby pair: in a shell, in Python, killed, hanging; and a loop around the plant.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::child::await_until;
use crate::pair::{LIMIT, Offer, Pair};
use crate::scene::Scene;
use crate::setup::{Setup, words};
use crate::takeovers::summary;

const LASTS: u64 = 20;

/// So little of 100 do the outputs of a loop at rest differ.
const AT_REST: f64 = 5.0;

/// An integrator; it hangs once its file `HANG` is there. The last program to run is the one that hangs,
/// so that it ends with its node.
const SHELL: &str = r#"while read -r cycle measured state; do
    if [ -e "$HANG" ]; then exec sleep 1000; fi
    if [ "$state" = - ]; then state=0; fi
    state=$((state + 1))
    echo "$state $state"
done"#;

/// The same, in another language and with another encoding of its state.
const PYTHON: &str = r#"
import sys
for line in sys.stdin:
    cycle, measured, state = line.split()
    total = 0 if state == "-" else int(state, 16)
    total += 1
    print(float(total), format(total, "x"), flush=True)
"#;

/// 154.
pub fn primary_whose_controller_hangs_is_replaced(scene: &Scene) {
    let hang = [0, 1].map(|node| scene.path(&format!("hang{node}")));
    let (mut pair, primary) = start(scene, "hang", &["sh", "-c", SHELL], &hang);
    let standby = 1 - primary;
    pair.note("hang", primary);
    std::fs::write(&hang[usize::from(primary)], "").expect("written");
    pair.await_takeover(standby);
    pair.await_cycles(standby, LASTS);
    assert!(pair.is_running(primary), "it waits for its controller");
    // One request is enough, also for a node that waits for its controller.
    pair.signal(primary, "end", Signal::TERM);
    pair.await_ended(primary);
    let (figures, _) = pair.report();
    scene.note(&summary(&figures));
}

/// 155.
pub fn node_ends_with_its_controller_and_the_output_goes_on(scene: &Scene) {
    for (name, program) in [
        ("shell", ["sh", "-c", SHELL]),
        ("python", ["python3", "-c", PYTHON]),
    ] {
        let none = [0, 1].map(|node| scene.path(&format!("never{node}")));
        let (mut pair, primary) = start(scene, name, &program, &none);
        let standby = 1 - primary;
        let killed_ns = pair.note("kill", primary);
        kill_child_of(pair.pid(primary));
        pair.await_ended(primary);
        pair.await_takeover(standby);
        pair.await_cycles(standby, LASTS);
        let (figures, pair) = pair.report();
        let mut offers = pair.offers().into_iter();
        let first = offers.find(|offer| offer.node == standby && offer.at_ns > killed_ns);
        let first = first.expect("an output");
        assert!(first.value > LASTS as f64, "it started anew: {first:?}");
        scene.note(&format!("{name}: {}", summary(&figures)));
    }
}

/// 171.
pub fn loop_around_the_plant_is_continued_without_a_jump(scene: &Scene) {
    let mut setup = Setup::loopback(0, 1, false);
    for node in &mut setup.nodes {
        node.extend(words(&["--controller", "pid"]));
    }
    let (mut pair, _) = Pair::start(scene, "pid", setup);
    // The first ones bring a plant at rest to its setpoint.
    let mut settled_ns = 0;
    await_until(LIMIT, "a loop at rest", || {
        let offers = pair.offers().into_iter().rev();
        let last: Vec<_> = offers
            .filter(|offer| offer.is_accepted)
            .take(LASTS as usize)
            .collect();
        let values = || last.iter().map(|offer| offer.value);
        let spread = values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min);
        settled_ns = last.last().map_or(0, |first| first.at_ns);
        last.len() == LASTS as usize && spread < AT_REST
    });
    let primary = pair.await_redundancy();
    let standby = 1 - primary;
    pair.kill(primary);
    pair.await_takeover(standby);
    pair.await_cycles(standby, LASTS);
    let offers = pair.offers().into_iter();
    let settled: Vec<_> = offers
        .filter(|offer| offer.is_accepted && offer.at_ns >= settled_ns)
        .collect();
    let jump = |two: &[Offer]| (two[1].value - two[0].value).abs();
    let greatest = settled.windows(2).map(jump).fold(0.0, f64::max);
    assert!(greatest < 40.0, "a jump of {greatest} in {settled:?}");
    scene.note(&format!("; greatest jump {greatest:.1} of 100"));
}

/// A pair with this controller, in which a primary has driven for a while.
fn start(scene: &Scene, name: &str, program: &[&str], hang: &[PathBuf; 2]) -> (Pair, u8) {
    let mut setup = Setup::loopback(0, 1, false);
    let quoted: Vec<String> = program
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    for node in &mut setup.nodes {
        node.extend(words(&["--exec", &quoted.join(" ")]));
    }
    setup.environment = [0, 1].map(|node: usize| vec![("HANG".to_owned(), hang[node].clone())]);
    let (mut pair, _) = Pair::start(scene, name, setup);
    // By its own count: where the machine is late, a node leaves cycles out.
    await_until(LIMIT, "a primary that has driven for a while", || {
        let mut offers = pair.offers().into_iter();
        let last = offers.rfind(|offer| offer.is_accepted);
        last.is_some_and(|offer| offer.value > 2.0 * LASTS as f64)
    });
    let primary = pair.await_redundancy();
    (pair, primary)
}

/// SIGKILL to the only child of a process of ours, which does not know of it yet and so holds its pid.
fn kill_child_of(pid: u32) {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the children of a child of ours");
    let child = children.trim().parse().ok();
    let child = child
        .and_then(rustix::process::Pid::from_raw)
        .expect("one child");
    rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("killed");
}
