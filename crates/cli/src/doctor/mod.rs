//! `bumpless doctor`: what is wrong here, or with a table, what that means, and what to do.
//!
//! Contract: tables are opened to look only. What the kernel can do is tried out, in a folder of its own
//! that is deleted again. Exit code by the worst finding: 0 fine, 1 warning, 2 error.

mod finding;
mod host;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::out::{out, out_json};
use finding::{Finding, Level};

/// Check this machine, and tables, for what makes deaths be seen late or not at all.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless doctor
  bumpless doctor /dev/shm/bumpless-1000/lead.table
  bumpless doctor --json | jq '.[] | select(.level != \"fine\")'

Exit status: 0 all is fine; 1 there are warnings; 2 there are errors.")]
pub struct DoctorArguments {
    /// Tables to look at, besides the machine
    #[arg(value_name = "TABLE")]
    pub tables: Vec<PathBuf>,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The subcommand.
pub fn run(arguments: &DoctorArguments) -> ExitCode {
    let mut findings = host::check();
    for path in &arguments.tables {
        findings.extend(table::check(path));
    }
    let is_written = if arguments.json {
        out_json("doctor", &findings)
    } else {
        let text: String = findings.iter().map(Finding::text).collect();
        out("doctor", &text)
    };
    if !is_written {
        return ExitCode::from(2);
    }
    let worst = findings.iter().map(|finding| finding.level).max();
    ExitCode::from(match worst {
        None | Some(Level::Fine) => 0,
        Some(Level::Warning) => 1,
        Some(Level::Error) => 2,
    })
}
