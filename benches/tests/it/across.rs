//! What takes two processes, but for the deaths, which the tool measures.

use serde_json::Value;

use crate::program::measured;

/// The rows of one measurement, by what they are of; each must be in order.
fn rows(name: &str) -> Vec<String> {
    let report = measured(&["--ms", "20", name]);
    assert_eq!(report["ratios"], Value::Array(Vec::new()));
    let rows = report["across"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let number = |field: &str| row[field].as_u64().unwrap();
            let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(number);
            assert!(number("samples") > 1 && max > 0, "{row}");
            assert!(p50 <= p99 && p99 <= max, "{row}");
            row["what"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn beats_and_stores_are_seen_by_a_child() {
    let wanted = [
        "a beat until another process has seen it",
        "a store until another process has seen it",
    ];
    assert_eq!(rows("across processes: beats, stores"), wanted);
}

#[test]
fn two_children_mark_and_complete() {
    let wanted = [
        "mark and complete, two processes at once",
        "two locked CAS, two processes at once",
    ];
    assert_eq!(rows("across processes: mark, complete"), wanted);
}

#[test]
fn a_word_goes_to_a_child_and_back() {
    let wanted = ["futex ping-pong of two processes"];
    assert_eq!(rows("across processes: futex"), wanted);
}

#[test]
fn a_datagram_goes_to_a_child_and_back() {
    assert_eq!(rows("across processes: UDP"), ["UDP round trip, loopback"]);
}

#[test]
fn what_needs_no_child_is_told_beside_them() {
    let wanted = ["lock and unlock of a byte (fcntl)"];
    assert_eq!(rows("across processes: lock of a byte"), wanted);
    assert_eq!(rows("across processes: clock"), ["a look at the clock"]);
}
