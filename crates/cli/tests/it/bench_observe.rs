//! `bumpless bench observe`, run as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn bench_observe(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(["bench", "observe"]).args(arguments);
    command.output().expect("the program runs")
}

#[test]
fn every_beat_of_two_threads_is_in_the_sum_and_each_kind_has_its_figure() {
    let output = bench_observe(&["--blocks", "3", "--beats", "200000", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().last().expect("a line");
    let figures: Value = serde_json::from_str(line).expect("JSON");
    for what in ["beat", "scan", "tick"] {
        for kind in ["raw_ns", "idle_ns", "drained_ns", "shared_ns"] {
            let figure = figures[what][kind].as_f64();
            assert!(figure.is_some_and(|ns| ns > 0.0), "{what}.{kind}: {line}");
        }
    }
    let count = |which: &str| figures["storm"][which].as_u64().expect("a number");
    let counted = count("observed") + count("dropped") + count("skipped");
    assert_eq!(count("beats"), 200_000);
    assert!((200_000..=200_004).contains(&counted), "{line}");
}

#[test]
fn the_table_for_people_names_each_figure() {
    let output = bench_observe(&["--blocks", "1", "--beats", "1000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for figure in ["beat ", "scan ", "tick ", "cas ", "1000 beats"] {
        assert!(text.lines().any(|line| line.starts_with(figure)), "{text}");
    }
}
