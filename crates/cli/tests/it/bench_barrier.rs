//! `bumpless bench barrier`, run as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn bench_barrier(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(["bench", "barrier", "--rounds", "50", "--blocks", "4"]);
    command.args(arguments);
    command.output().expect("the program runs")
}

#[test]
fn the_last_line_is_the_barriers_figures_as_json() {
    let output = bench_barrier(&["--json"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().last().expect("a line");
    let figures: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(
        (&figures["rounds"], &figures["blocks"]),
        (&50.into(), &4.into())
    );
    for kind in ["futex_us", "barrier_us"] {
        let of = |which: &str| figures[kind][which].as_f64().expect("a number");
        assert!(0.0 < of("min") && of("min") <= of("p50"), "{line}");
        assert!(of("p50") <= of("p99"), "{line}");
    }
    assert!(figures["ratio"].as_f64() > Some(0.0), "{line}");
}

#[test]
fn the_table_for_people_names_both_kinds() {
    let output = bench_barrier(&[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for kind in ["futex  ", "barrier  ", "barrier / futex"] {
        assert_eq!(text.matches(kind).count(), 1, "{text}");
    }
}
