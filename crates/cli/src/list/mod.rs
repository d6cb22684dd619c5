//! `bumpless list`: what lies in the folder of this user; `bumpless rm`: away with what nobody uses.
//!
//! Contract: `list` changes nothing. `rm` deletes a region only on the kernel's word that nobody has it open
//! for writing, and keeps it so until it is gone; there is no way to force it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_substrate::region::{Region, default_folder};
use clap::Args;

use crate::look::{Found, LookError, look_in, path_line};
use crate::out::{out, out_json, plain};

/// List the tables, elections, barriers, tags and rings of a folder.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless list
  bumpless list --json /dev/shm/bumpless-1000 | jq -r '.[] | select(.usage == \"unused\").path'

USE says whether somebody has the region open for writing; who only looks is not seen. LIVE counts the
registered processes that nothing says are gone. A region from before the machine's last start is marked
`old boot`. Exit status: 0 all listed; 1 something could not be read.")]
pub struct ListArguments {
    /// Which folder [default: the one of this user]
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Delete regions that nobody has open.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless rm /dev/shm/bumpless-1000/old.table
  bumpless rm --unused

A region is deleted, with its lock file, only when the kernel says that no process has it open for
writing. Units that dead owners left in a table, and that nobody took over, are lost with it: look at
`bumpless status` first. Exit status: 0 all deleted; 1 something was not.")]
pub struct RmArguments {
    /// The regions
    #[arg(value_name = "PATH", required_unless_present = "unused")]
    pub paths: Vec<PathBuf>,

    /// Every region of this user's folder that nobody has open
    #[arg(long, conflicts_with = "paths")]
    pub unused: bool,
}

/// The subcommand `list`.
pub fn list(arguments: &ListArguments) -> ExitCode {
    let looked = folder_or_default(arguments.folder.as_deref()).and_then(|dir| look_in(&dir));
    let (found, failed) = looked.unwrap_or_else(|error| (Vec::new(), vec![error]));
    let is_written = if arguments.json {
        out_json("list", &found)
    } else {
        out("list", &as_text(&found, failed.is_empty()))
    };
    told("list", &failed, is_written)
}

/// The subcommand `rm`.
pub fn rm(arguments: &RmArguments) -> ExitCode {
    let (mut paths, mut failed) = (arguments.paths.clone(), Vec::new());
    if arguments.unused {
        match folder_or_default(None).and_then(|dir| look_in(&dir)) {
            Ok((found, unreadable)) => {
                let unused = found.into_iter().filter(|region| region.usage == "unused");
                paths.extend(unused.map(|region| region.path));
                failed.extend(unreadable);
            }
            Err(error) => failed.push(error),
        }
    }
    let mut is_written = true;
    for path in paths {
        match Region::remove_unused(&path) {
            Ok(()) => is_written &= out("rm", &format!("deleted {}\n", path_line(&path))),
            Err(error) => failed.push(error.into()),
        }
    }
    told("rm", &failed, is_written)
}

fn told(command: &str, failed: &[LookError], is_written: bool) -> ExitCode {
    for error in failed {
        tell!("bumpless {command}: {error}");
    }
    ExitCode::from(u8::from(!failed.is_empty() || !is_written))
}

fn folder_or_default(folder: Option<&Path>) -> Result<PathBuf, LookError> {
    match folder {
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(default_folder()?),
    }
}

/// A folder that was not read to its end may hold some.
fn as_text(found: &[Found], is_all: bool) -> String {
    if found.is_empty() {
        return if is_all { "no regions\n" } else { "" }.to_owned();
    }
    let mut text = "KIND     OWNER      MODE       BYTES LIVE USE     PATH\n".to_owned();
    for region in found {
        let owner = match &region.owner {
            Some(name) => plain(name),
            None => region.owner_uid.to_string(),
        };
        let live = region.live_processes;
        let live = live.map_or("-".to_owned(), |live| live.to_string());
        let usage = if region.is_of_this_boot {
            region.usage.replace('_', " ")
        } else {
            "old boot".to_owned()
        };
        text += &format!(
            "{:8} {owner:10} {} {:11} {live:>4} {usage:7} {}\n",
            region.kind.word(),
            region.mode,
            region.bytes,
            path_line(&region.path)
        );
    }
    text
}
