//! `bumpless status`: tables and tags as they are now, for people or as one line of JSON.
//!
//! Contract: looks, and changes nothing; see `look`. Exit code: 0 all shown; 1 something could not be.

mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_substrate::region::default_folder;
use clap::Args;
use serde::Serialize;

use crate::look::{Kind, LookError, TableView, TagView, kinds_in};
use crate::out::{out, out_json};

/// Show tables and standby tags as they are now, without their noticing.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless status
  bumpless status /dev/shm/bumpless-1000/lead.table
  bumpless status --json | jq '.tables[].totals'

The verdict of a slot is what a watchdog would say now. Lags are counted in epochs: while no watchdog
ticks, they stand still. Exit status: 0 all shown; 1 something could not be.")]
pub struct StatusArguments {
    /// Tables, tags, or folders of them [default: the folder of this user]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Every slot: also those beyond 256 of a table, and of dead owners for which all is done
    #[arg(long)]
    pub all: bool,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What is shown.
#[derive(Debug, Default, Serialize)]
struct Shown {
    tables: Vec<TableView>,
    tags: Vec<TagView>,
    #[serde(skip)]
    failed: Vec<LookError>,
}

/// The subcommand.
pub fn run(arguments: &StatusArguments) -> ExitCode {
    let mut shown = Shown::default();
    if arguments.paths.is_empty() {
        match default_folder() {
            Ok(folder) => shown.add_folder(&folder),
            Err(error) => shown.failed.push(error.into()),
        }
    }
    for path in &arguments.paths {
        shown.add(path);
    }
    let is_written = if arguments.json {
        out_json("status", &shown)
    } else if shown.is_nothing() && !shown.failed.is_empty() {
        // There is something, and why it is not shown is told below.
        true
    } else {
        let text = text::all(&shown.tables, &shown.tags, arguments.all);
        out("status", &text)
    };
    for error in &shown.failed {
        tell!("bumpless status: {error}");
    }
    ExitCode::from(u8::from(!shown.failed.is_empty() || !is_written))
}

impl Shown {
    fn is_nothing(&self) -> bool {
        self.tables.is_empty() && self.tags.is_empty()
    }

    fn add(&mut self, path: &Path) {
        if path.is_dir() {
            return self.add_folder(path);
        }
        match Kind::at(path) {
            Ok(kind) => self.add_region(path, kind, true),
            Err(error) => self.failed.push(error),
        }
    }

    fn add_folder(&mut self, folder: &Path) {
        match kinds_in(folder) {
            Ok((found, failed)) => {
                for (path, kind) in found {
                    self.add_region(&path, kind, false);
                }
                self.failed.extend(failed);
            }
            Err(error) => self.failed.push(error),
        }
    }

    /// One that was named must be something to show.
    fn add_region(&mut self, path: &Path, kind: Kind, was_named: bool) {
        let failed = match kind {
            Kind::Table => TableView::at(path).map(|view| self.tables.push(view)).err(),
            Kind::Tag => TagView::at(path).map(|view| self.tags.push(view)).err(),
            kind => was_named.then(|| LookError::Kind {
                path: path.to_owned(),
                found: kind.word().to_owned(),
            }),
        };
        self.failed.extend(failed);
    }
}
