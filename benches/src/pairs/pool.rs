//! The pool of the tool against `xargs`, on the same files, both with two processes.
//!
//! 50,000 files of 0 to 16 KiB in memory, the same for both. The pool writes a manifest, `xargs` what its
//! `sha256sum` prints: both end as a file of as many lines.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::folder::Folder;
use crate::pair::{Goal, Pair, Stage};
use crate::tool::tool;

const FILES: usize = 50_000;
const FILES_IN_A_FOLDER: usize = 500;

pub const PAIRS: &[Pair] = &[Pair {
    name: "pool of 2 workers, 50,000 files",
    beside: "xargs -P2 -n64 sha256sum",
    goal: Goal::AtMost(1.0),
    run: beside_xargs,
}];

fn beside_xargs(stage: &mut dyn Stage) -> Result<()> {
    let tool = tool()?;
    let folder = Folder::in_memory()?;
    let tree = folder.path().join("files");
    write_files(&tree)?;
    let (by_pool, by_xargs) = (folder.path().join("pool"), folder.path().join("xargs"));
    stage.compare(
        &mut |times| {
            let mut pool = Command::new(&tool);
            pool.args(["pool", "--workers", "2", "--manifest"])
                .arg(&by_pool)
                .arg(&tree)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            timed(times, &mut pool, &by_pool)
        },
        &mut |times| {
            let mut shell = Command::new("sh");
            shell
                .args([
                    "-c",
                    "find \"$0\" -type f -print0 | xargs -0 -P2 -n64 sha256sum",
                ])
                .arg(&tree)
                .stdout(File::create(&by_xargs)?);
            timed(times, &mut shell, &by_xargs)
        },
    )
}

/// Runs it once, whatever was asked for: once is long enough. It must leave a line for each file.
fn timed(times: u64, command: &mut Command, written: &Path) -> Result<f64> {
    let started = Instant::now();
    let status = command.status().context("cannot start it")?;
    let ns = started.elapsed().as_nanos() as f64;
    ensure!(status.success(), "{command:?}: {status}");
    let lines = fs::read(written)?
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    ensure!(lines == FILES, "{command:?}: {lines} of {FILES} files");
    Ok(ns * times as f64)
}

/// Sizes from a small generator: most files small, some of 16 KiB.
fn write_files(tree: &Path) -> Result<()> {
    let mut state = 1_u64;
    let bytes: Vec<u8> = (0..16_384_u32).map(|byte| (byte % 251) as u8).collect();
    for file in 0..FILES {
        let folder = tree.join(format!("{}", file / FILES_IN_A_FOLDER));
        if file.is_multiple_of(FILES_IN_A_FOLDER) {
            fs::create_dir_all(&folder)?;
        }
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bits = state >> 40;
        let len = (bits as usize & 0x3fff) >> (bits >> 14 & 7);
        fs::write(folder.join(format!("{file}")), &bytes[..len])?;
    }
    Ok(())
}
