//! From SIGKILL until the units are handed back, as `bumpless bench death` measures it.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use bumpless_substrate::guard::spawn_guarded;
use serde::Deserialize;

use super::Durations;
use crate::tool::tool;

/// Each kill waits some periods of 10 ms, and there are three detectors.
const KILL_MS: u128 = 100;

/// What the tool prints, as far as it is told here.
#[derive(Deserialize)]
struct Figures {
    runs: usize,
    robust: Detector,
    pidfd: Detector,
    beats: Detector,
}

#[derive(Deserialize)]
struct Detector {
    handed_back_us: Spread,
}

#[derive(Deserialize)]
struct Spread {
    p50: f64,
    p99: f64,
    max: f64,
}

/// As many kills as fit in that time, at least ten for each detector.
pub fn measure(time: Duration) -> Result<[Durations; 3]> {
    let runs = (time.as_millis() / KILL_MS).max(10).to_string();
    let tool = tool()?;
    let mut command = Command::new(&tool);
    command
        .args(["bench", "death", "--json", "--runs", &runs])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let output = spawn_guarded(&mut command, None)?.wait_with_output()?;
    ensure!(output.status.success(), "bench death: {}", output.status);
    let Figures {
        runs,
        robust,
        pidfd,
        beats,
    } = serde_json::from_slice(&output.stdout)?;
    let durations = |by: &str, detector: Detector| {
        let ns = |us: f64| (us * 1_000.0) as u64;
        let Spread { p50, p99, max } = detector.handed_back_us;
        Durations {
            what: format!("SIGKILL until the units are handed back, by {by}"),
            samples: runs,
            p50_ns: ns(p50),
            p99_ns: ns(p99),
            max_ns: ns(max),
        }
    };
    Ok([
        durations("the kernel's certificate", robust),
        durations("pidfd", pidfd),
        durations("missed beats, 10 ms each, grace 3", beats),
    ])
}
