//! `bumpless bench lead`, run as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn bench_lead(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(["bench", "lead"]).args(arguments);
    command.output().expect("the program runs")
}

#[test]
fn the_last_line_is_the_figures_as_json_in_their_places() {
    let output = bench_lead(&["--runs", "3", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().last().expect("a line");
    let figures: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(figures["runs"], 3);
    for what in ["claim_ns", "held_ns", "cas_ns", "takeover_us"] {
        let [min, p50, p99] = ["min", "p50", "p99"].map(|which| {
            let figure = figures[what][which].as_f64();
            figure.unwrap_or_else(|| panic!("no {what}.{which} in {line}"))
        });
        assert!(0.0 < min && min <= p50 && p50 <= p99, "{what}: {line}");
    }
    let p50 = |what: &str| figures[what]["p50"].as_f64();
    assert!(p50("cas_ns") < p50("claim_ns"), "{line}");
}

#[test]
fn the_table_for_people_names_each_figure() {
    let output = bench_lead(&["--runs", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for figure in ["claim ", "held ", "cas ", "takeover "] {
        assert!(text.lines().any(|line| line.starts_with(figure)), "{text}");
    }
}
