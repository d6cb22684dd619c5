//! The stage of one scenario: a folder of its own, a time limit, a table and its members.
//!
//! Contract: whatever happens, the folder goes when the scenario ends, and so do its children. A
//! scenario that takes too long is told so in its line, and ends the whole run: nothing can make a
//! thread that hangs return.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bumpless_heartbeat::HeartbeatTable;
use tempfile::TempDir;

use crate::child::Child;

/// How long one scenario may take: ten times the longest one on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The table that a failed wait prints.
static SHOWN_TABLE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// One scenario's surroundings.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
    notes: RefCell<String>,
    /// Dropped when the scenario ends, which the time limit's thread is waiting for.
    _running: Sender<()>,
}

impl Scene {
    pub fn set(title: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        }
        .expect("a folder");
        let (running, ended) = mpsc::channel();
        let (title, remains) = (title.to_owned(), folder.path().to_owned());
        std::thread::spawn(move || {
            if ended.recv_timeout(TIME_LIMIT) == Err(RecvTimeoutError::Timeout) {
                println!(
                    "{title} ... FAILED: not within {TIME_LIMIT:?}\n{}",
                    table_state()
                );
                // The children die with us; nobody else would remove the folder.
                let _ = std::fs::remove_dir_all(remains);
                std::process::exit(1);
            }
        });
        Self {
            folder,
            notes: RefCell::default(),
            _running: running,
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A figure to be printed in the scenario's line.
    pub fn note(&self, figure: &str) {
        *self.notes.borrow_mut() += &format!("; {figure}");
    }

    /// The figures noted so far.
    pub fn notes(&self) -> String {
        self.notes.borrow().clone()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the scenario's table lies.
    pub fn table_path(&self) -> PathBuf {
        self.path("table")
    }

    /// The scenario's table, made anew.
    pub fn table(&self, capacity: usize) -> HeartbeatTable {
        let path = self.table_path();
        *shown() = Some(path.clone());
        HeartbeatTable::create(path, capacity).expect("a table")
    }

    /// A process that has the scenario's table open.
    pub fn member(&self) -> Child {
        let mut member = Child::start("member", &[]);
        member.done(&format!("attach {}", self.table_path().display()));
        member
    }

    /// A process with the scenario's table open that is registered in it.
    pub fn worker(&self) -> Child {
        let mut worker = self.member();
        worker.done("register");
        worker
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        *shown() = None;
    }
}

/// What the scenario's table says of each slot that is or was in use.
pub fn table_state() -> String {
    let Some(path) = shown().clone() else {
        return "no table".to_owned();
    };
    let table = match HeartbeatTable::open_read_only(&path) {
        Ok(table) => table,
        Err(error) => return error.to_string(),
    };
    let mut state = format!("{}: epoch {}", path.display(), table.global_epoch());
    for slot in 0..table.capacity() {
        let Some(cells) = table.cells(slot) else {
            break;
        };
        let claim = cells.slot.peek_claim();
        if claim.generation() > 0 {
            let units = cells.slot.units(claim.generation());
            let deaths = cells.verdict.deaths();
            state += &format!("\nslot {slot}: {claim:?}, units {units:?}, {deaths:?}");
        }
    }
    state
}

fn shown() -> std::sync::MutexGuard<'static, Option<PathBuf>> {
    SHOWN_TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}
