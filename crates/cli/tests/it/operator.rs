//! What an operator sees of a pool under chaos, and whether it is what the pool itself says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use prometheus_parse::Scrape;
use serde_json::Value;

use crate::rig::{Rig, Running, await_that};

fn bumpless(rig: &Rig, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.current_dir(rig.at("")).args(words);
    command.output().expect("the program runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The table's view; none before it is there.
fn status(rig: &Rig) -> Option<Value> {
    let output = bumpless(rig, &["status", "--json", "table"]);
    let shown: Value = serde_json::from_slice(&output.stdout).ok()?;
    shown["tables"].get(0).cloned()
}

fn events(rig: &Rig) -> Vec<Value> {
    let output = bumpless(rig, &["events", "--json", "kept"]);
    assert!(output.status.success(), "{output:?}");
    let text = text(&output);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn count(events: &[Value], name: &str) -> u64 {
    events.iter().filter(|event| event["event"] == name).count() as u64
}

fn units(events: &[Value], name: &str) -> u64 {
    let named = events.iter().filter(|event| event["event"] == name);
    named
        .map(|event| event["units"].as_array().map_or(0, Vec::len) as u64)
        .sum()
}

/// `export` of the pool's table and black box.
struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    fn start(rig: &Rig) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.current_dir(rig.at("")).stderr(Stdio::piped());
        command.args(["export", "--listen", "127.0.0.1:0", "table", "kept"]);
        let mut child = command.spawn().expect("the program runs");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("piped");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        let address = line.split('/').nth(2).expect("an address").to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    fn scrape(&self) -> Scrape {
        let (head, body) = self.get("/metrics");
        assert!(
            head.contains(" 200 ") && head.contains("version=0.0.4"),
            "{head}"
        );
        let lines = body.lines().map(|line| Ok(line.to_owned()));
        Scrape::parse(lines.collect::<Vec<_>>().into_iter()).expect("the text format")
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of the sample with this label, if one is wanted.
fn sample(scrape: &Scrape, name: &str, label: Option<(&str, &str)>) -> u64 {
    let is_it = |sample: &&prometheus_parse::Sample| {
        sample.metric == name
            && label.is_none_or(|(name, value)| sample.labels.get(name) == Some(value))
    };
    let mut found = scrape.samples.iter().filter(is_it);
    let sample = found
        .next()
        .unwrap_or_else(|| panic!("no {name} {label:?}"));
    assert!(found.next().is_none(), "more than one {name} {label:?}");
    match sample.value {
        prometheus_parse::Value::Counter(value) | prometheus_parse::Value::Gauge(value) => {
            value as u64
        }
        ref other => panic!("{name}: {other:?}"),
    }
}

/// A whole batch of the walk, so that none waits for the end of the input.
const BATCH: usize = 256;

#[test]
fn what_status_and_events_show_of_a_pool_under_chaos_is_what_its_summary_says() {
    let rig = Rig::with_files(BATCH, 60_000);
    // The pool waits for more names while its input is open: then nothing changes any more.
    let words = "--workers 3 --chaos kill=60/s --grace 400 --period 5ms --events kept --json \
                 --manifest sums --files-from -";
    let mut command = rig.pool(words.split_whitespace());
    command.stdin(std::process::Stdio::piped());
    let mut running = Running::start(command);
    let exporter = Exporter::start(&rig);
    assert!(exporter.get("/elsewhere").0.contains(" 404 "));
    let mut input = running.input();
    input.write_all(b"tree\n").expect("the pool reads");
    // Where the machine is quicker than the kills, there is more to do until one met a unit in flight.
    let mut batches = 0;
    await_that("a death is seen from outside while the pool works", || {
        let Some(view) = status(&rig) else {
            return false;
        };
        let is_dead = view["totals"]["deaths"].as_u64() > Some(0);
        if is_dead && units(&events(&rig), "handed_back") > 0 {
            return true;
        }
        if view["totals"]["units_in_flight"] == 0 {
            batches += 1;
            for file in 0..BATCH {
                let name = format!("tree/more-{batches}/{file}");
                rig.file(name.clone(), name.repeat(4_000).as_bytes());
            }
            writeln!(input, "tree/more-{batches}").expect("the pool reads");
        }
        false
    });
    // All is done when every worker is idle, and so for many of the pool's scans: kills would show.
    let (mut last, mut since_epoch) = (Value::Null, 0);
    await_that("the pool comes to rest", || {
        let Some(view) = status(&rig) else {
            return false;
        };
        let (totals, epoch) = (view["totals"].clone(), view["epoch"].as_u64().unwrap_or(0));
        let is_idle = totals["units_in_flight"] == 0 && totals["live"] == 5;
        let is_still = is_idle && totals["registrations"] == last;
        if !is_still {
            since_epoch = epoch;
        }
        last = totals["registrations"].clone();
        is_still && epoch > since_epoch + 100
    });
    let view = status(&rig).expect("the table is there");
    let scrape = exporter.scrape();
    assert_eq!(view["primary"]["pid"], running.pid());
    assert_eq!(view["grace_epochs"], 400);
    drop(input);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.count("deaths") > 0 && said.count("handed_back") > 0,
        "{}",
        said.stderr
    );
    let events = events(&rig);
    // The coordinator and the watchdog have a slot each.
    assert_eq!(
        view["totals"]["registrations"],
        said.count("registered") + 2
    );
    assert_eq!(view["totals"]["deaths"], said.count("deaths"));
    assert_eq!(view["totals"]["deaths_unacknowledged"], 0);
    assert_eq!(count(&events, "registered"), said.count("registered"));
    assert_eq!(count(&events, "died"), said.count("deaths"));
    assert_eq!(count(&events, "died"), said.count("killed"));
    assert_eq!(count(&events, "unregistered"), 3);
    assert_eq!(count(&events, "lease_taken"), 1);
    assert_eq!(view["primary"]["term"], events[0]["term"]);
    let exported = |name: &str, label| sample(&scrape, name, label);
    let died = exported("bumpless_deaths_total", Some(("verdict", "died")));
    assert_eq!(died, said.count("deaths"));
    let died = exported("bumpless_events_total", Some(("event", "died")));
    assert_eq!(died, said.count("deaths"));
    let registrations = exported("bumpless_registrations_total", None);
    assert_eq!(registrations, said.count("registered") + 2);
    let handed_back = exported("bumpless_handed_back_units_total", None);
    assert_eq!(handed_back, said.count("handed_back"));
    assert_eq!(exported("bumpless_slots", Some(("state", "live"))), 5);
    assert_eq!(units(&events, "handed_back"), said.count("handed_back"));
    assert_eq!(units(&events, "acknowledged"), said.count("handed_back"));
    assert_eq!(rig.names(), ["kept", "kept.lock", "sums", "tree"]);
}
