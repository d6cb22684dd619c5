//! The pool against itself. The grace is so short that a busy machine is late, too: no file is to be blamed for
//! that, however often.

use std::time::{Duration, Instant};

use crate::rig::{Rig, Said};

/// A pool works until each kind of event has happened: how much of it a pool meets is up to the machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a pool again and again, each one sound, until each of these counts is above 0 in one of them.
fn work_until_met(fields: &[&str], mut pool: impl FnMut() -> Said) {
    let began = Instant::now();
    let mut met = vec![0; fields.len()];
    while met.contains(&0) {
        assert!(
            began.elapsed() < LIMIT,
            "not in {LIMIT:?}: {fields:?} {met:?}"
        );
        let said = pool();
        for (met, field) in met.iter_mut().zip(fields) {
            *met += said.count(field);
        }
    }
}

#[test]
fn under_chaos_every_file_is_accepted_once_and_late_results_are_refused() {
    let rig = Rig::with_files(1500, 30_000);
    work_until_met(&["killed", "stopped", "reassigned", "refused"], || {
        let said = rig.run_words(
            "--workers 4 --chaos kill=60/s,stop=30/s --grace 8 --period 5ms --max-attempts 1000000 \
             --manifest sums --json tree",
        );
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_eq!((said.count("files"), said.count("accepted")), (1500, 1500));
        assert_eq!(rig.complaints("sums"), "");
        assert_eq!(rig.names(), ["sums", "tree"]);
        said
    });
}

#[test]
fn under_chaos_every_commands_output_is_recorded_once_and_no_two_runs_overlap() {
    let rig = Rig::with_files(12, 10);
    // Each run of a file looks whether the process of its last one is still there.
    let script = rig.file(
        "run.sh",
        b"last=$1.last\n[ -f $last ] && kill -0 $(cat $last) 2>/dev/null && echo $1 >> overlaps\n\
          echo $$ > $last\nfor i in 1 2 3 4 5; do sleep 0.02; done\nrm $last\necho done $1\n",
    );
    let exec = format!("sh {} {{}}", script.display());
    let list = rig.at("list");
    let names: Vec<String> = (0..12)
        .map(|file| format!("tree/000/{file:02}\n"))
        .collect();
    std::fs::write(&list, names.concat()).unwrap();
    // Many commands come to their end between two kills, and the workers beat in time, also where the machine is
    // ten times as slow.
    let chaos = "--workers 3 --chaos kill=2/s,stop=1/s --grace 40 --period 5ms \
                 --max-attempts 1000000 --json";
    let fixed = [
        "--output-dir",
        "out",
        "--exec",
        &exec,
        "--files-from",
        "list",
    ];
    work_until_met(&["killed", "reassigned"], || {
        let said = rig.run(chaos.split(' ').chain(fixed));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_eq!(said.count("accepted"), 12);
        assert!(!rig.at("overlaps").exists());
        let mut recorded = std::fs::read_dir(rig.at("out")).unwrap().count();
        for file in 1..=12 {
            let output = std::fs::read_to_string(rig.at(format!("out/{file}/stdout"))).unwrap();
            assert_eq!(output, format!("done tree/000/{:02}\n", file - 1));
            recorded -= 1;
        }
        assert_eq!(recorded, 0, "attempts that do not count are deleted");
        std::fs::remove_dir_all(rig.at("out")).unwrap();
        said
    });
}
