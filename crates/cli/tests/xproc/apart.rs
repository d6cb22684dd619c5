//! A pair whose machines count their time from different moments, and two of one kind in one folder.

use std::process::Command;

use crate::pair::{BUMPLESS, Pair};
use crate::scene::Scene;
use crate::setup::{Setup, words};
use crate::steps::{cycles_of, goes_on, ran};

const LASTS: u64 = 20;

/// The new primary is silent for no more cycles of its own.
const SILENT_CYCLES_MAX: usize = 20;

/// 172.
pub fn nodes_whose_clocks_began_at_other_times_are_one_pair(scene: &Scene) {
    let mut setup = Setup::loopback(0, 1, false);
    for (node, seconds) in [(1, "1000"), (2, "500000")] {
        setup.wrappers[node] = words(&["unshare", "--time", "--monotonic", seconds]);
    }
    let (mut pair, primary) = Pair::start(scene, "clocks", setup);
    let standby = 1 - primary;
    pair.kill(primary);
    pair.await_takeover(standby);
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
    let silent = ran(&cycles_of(&pair, standby), last.cycle, first.cycle);
    assert!(
        silent < SILENT_CYCLES_MAX,
        "{silent} cycles between {last:?} and {first:?}"
    );
    // The report would judge that by moments, which two clocks do not share.
    assert!(
        goes_on(&pair, last, first),
        "{last:?}, then {first:?}: no such step by the cycles that both ran"
    );
    pair.start_node(primary);
    let stays = pair.await_redundancy() == standby;
    pair.await_cycles(standby, LASTS);
    // As by the report, but by cycles: who is replaced without a fault has left some out.
    let left_out = pair
        .cycles(standby)
        .windows(2)
        .any(|two| two[1].number > two[0].number + 1);
    assert!(stays || left_out, "the new primary stays");
    scene.note(&format!(
        "{silent} cycles of the new primary, {} steps in {} cycles",
        first.value - last.value,
        first.cycle - last.cycle
    ));
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
