//! The report for machines: its fields are what `docs/performance.md` says, and so they stay.

use serde_json::Value;

use crate::program::{measured, program, text};

fn fields(value: &Value) -> Vec<&str> {
    let fields = value.as_object().unwrap().keys();
    let mut fields: Vec<&str> = fields.map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn every_field_of_a_ratio_is_there_under_its_name() {
    let report = measured(&["--ms", "1", "a loop of trailing zeros"]);
    let wanted = ["across", "caveats", "machine", "missed", "ratios"];
    assert_eq!(fields(&report), wanted);
    let wanted = ["clock_ns", "cores", "kernel", "load", "processor"];
    assert_eq!(fields(&report["machine"]), wanted);
    let ratios = report["ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), 2);
    let wanted = [
        "a_ns", "b_ns", "beside", "goal", "missed", "name", "ratio", "rounds", "spread",
    ];
    assert_eq!(fields(&ratios[0]), wanted);
    assert_eq!(fields(&ratios[0]["goal"]), ["kind", "limit"]);
    assert_eq!(ratios[0]["goal"]["kind"], "at_most");
    let missed = ratios.iter().filter(|ratio| ratio["missed"] == true);
    assert_eq!(report["missed"], missed.count());
}

#[test]
fn every_field_of_a_duration_is_there_under_its_name() {
    let report = measured(&["--ms", "1", "across processes: clock"]);
    let wanted = ["max_ns", "p50_ns", "p99_ns", "samples", "what"];
    assert_eq!(fields(&report["across"][0]), wanted);
}

#[test]
fn help_names_the_drawings_and_a_filter_that_nothing_has_is_an_error() {
    let help = program(&["--help"]).output().unwrap();
    assert!(help.status.success() && text(&help).contains("--plot"));
    let nothing = program(&["--ms", "1", "no such pair"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(1));
    assert!(
        text(&nothing).contains("nothing has `no such pair`"),
        "{}",
        text(&nothing)
    );
}
