//! A pair whose machines count their time from different moments, and two of one kind in one folder.

use std::process::Command;

use crate::pair::{BUMPLESS, Pair};
use crate::scene::Scene;
use crate::setup::{Setup, words};

const LASTS: u64 = 20;

/// Steps by which a late cycle may put the integrator back.
const LATE_STEPS: f64 = 4.0;

/// 172.
pub fn nodes_whose_clocks_began_at_other_times_are_one_pair(scene: &Scene) {
    let mut setup = Setup::loopback(0, 1, false);
    for (node, seconds) in [(1, "1000"), (2, "500000")] {
        setup.wrappers[node] = words(&["unshare", "--time", "--monotonic", seconds]);
    }
    let (mut pair, primary) = Pair::start(scene, "clocks", setup);
    let standby = 1 - primary;
    pair.kill(primary);
    pair.await_event(standby, "cause: Takeover");
    pair.start_node(primary);
    assert_eq!(pair.await_redundancy(), standby);
    pair.await_cycles(standby, LASTS);
    let accepted: Vec<_> = pair
        .offers()
        .into_iter()
        .filter(|offer| offer.is_accepted)
        .collect();
    let last_of_killed = accepted
        .iter()
        .rposition(|offer| offer.node == primary)
        .expect("its outputs");
    let [last, first] = &accepted[last_of_killed..][..2] else {
        panic!("no output after it: {accepted:?}");
    };
    let cycles = (first.cycle - last.cycle) as f64;
    let bump = (first.value - last.value - cycles).abs();
    assert!(
        cycles < 20.0 && bump <= LATE_STEPS,
        "{last:?}, then {first:?}"
    );
    scene.note(&format!("; {cycles} cycles, {bump} steps from the ideal"));
}

/// 173.
pub fn second_of_a_kind_in_a_folder_ends_and_harms_nothing(scene: &Scene) {
    let (pair, primary) = Pair::start(scene, "twice", Setup::loopback(0, 1, false));
    let elsewhere = Setup::loopback(1, 1, false);
    let node = &["node", "--id", &primary.to_string(), "--state-dir"].map(str::to_owned);
    let plant = &["plant", "--state-dir"].map(str::to_owned);
    let folder = pair.state_dir(primary);
    for (role, folder, places) in [
        (&node[..], &folder, &elsewhere.nodes[usize::from(primary)]),
        (
            &plant[..],
            &folder.with_file_name("plant"),
            &elsewhere.plant,
        ),
    ] {
        let mut command = Command::new(BUMPLESS);
        command.arg("standby").args(role).arg(folder).args(places);
        let output = command.output().expect("a process");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("another"),
            "{said}"
        );
    }
    assert_eq!(pair.order(primary, "clear-alarms"), "ok");
    pair.report();
}
