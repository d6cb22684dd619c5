//! `bumpless bench death`, run as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn bench_death(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_bumpless");
    let mut command = Command::new(program);
    command.args(["bench", "death"]).args(arguments);
    command.output().expect("the program runs")
}

#[test]
fn the_last_line_is_the_figures_as_json_in_their_places() {
    let arguments = ["--runs", "2", "--others", "2", "--rss", "1MiB", "--json"];
    let output = bench_death(&arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().last().expect("a line");
    let figures: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(figures["rss"], 1 << 20);
    assert_eq!(figures["others"], 2);
    assert_eq!(figures["runs"], 2);
    for detector in ["robust", "pidfd", "beats"] {
        let of = |what: &str, which: &str| {
            figures[detector][what][which]
                .as_f64()
                .unwrap_or_else(|| panic!("no {detector}.{what}.{which} in {line}"))
        };
        for which in ["min", "p50", "p99"] {
            assert!(of("seen_us", which) > 0.0, "{line}");
            assert!(
                of("seen_us", which) <= of("handed_back_us", which),
                "{line}"
            );
        }
        assert!(of("seen_us", "min") <= of("seen_us", "p50"), "{line}");
        assert!(of("seen_us", "p50") <= of("seen_us", "p99"), "{line}");
    }
    // Of four scans without a beat one may lie before the kill, and one may come early.
    let least = figures["beats"]["handed_back_us"]["min"].as_f64();
    assert!(least > Some(10_000.0), "{line}");
}

#[test]
fn the_table_for_people_names_each_detector() {
    let output = bench_death(&["--runs", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for detector in ["robust ", "pidfd ", "beats "] {
        assert_eq!(text.matches(detector).count(), 1, "{text}");
    }
}

#[test]
fn memory_that_the_machine_does_not_have_is_an_error_that_names_it() {
    let output = bench_death(&["--runs", "1", "--rss", "4000000GiB"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("cannot touch 4294967296000000 bytes"),
        "{said}"
    );
    assert!(said.contains("ended before it was ready"), "{said}");
}

/// The folder of a measurement that has its table mapped.
fn folder_of(process: u32) -> Option<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("a process");
    let tables = maps.lines().filter_map(|line| line.split_once('/'));
    let table = tables.map(|(_, path)| format!("/{path}"));
    let table = table.into_iter().find(|path| path.contains("/bench-"))?;
    Path::new(&table).parent().map(Path::to_owned)
}

#[test]
fn what_a_killed_measurement_left_is_taken_away_by_the_next_one() {
    let mut killed = Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .args(["bench", "death", "--runs", "10000"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    let started = Instant::now();
    let folder = loop {
        if let Some(folder) = folder_of(killed.id()) {
            break folder;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no table");
        std::thread::yield_now();
    };
    killed.kill().expect("killed");
    killed.wait().expect("reaped");
    let output = bench_death(&["--runs", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!folder.exists(), "{}", folder.display());
}
