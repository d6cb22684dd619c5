//! The account of all files: each ends exactly once, as accepted or as failed.
//!
//! ```text
//!            ┌────────── give back ──────────┐
//!            ▼                               │
//!   add ─▶ WAITING ─ next ─▶ GIVEN(ticket) ──┼─ accept(ticket) ─▶ ACCEPTED
//!            │                               └─ fail(ticket) ───▶ FAILED
//!            └─ fail_waiting ─▶ FAILED
//! ```
//! Contract: every transition names the ticket under which the file was given. One that does not fit
//! changes no file and is counted as doubled; a file in neither end state at the end is lost.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Waiting,
    Given(u64),
    Accepted,
    Failed,
}

#[derive(Debug)]
struct FileRecord {
    path: PathBuf,
    state: FileState,
    digest: [u8; 32],
}

/// All files, in the order of the walk.
#[derive(Debug, Default)]
pub struct Ledger {
    files: Vec<FileRecord>,
    waiting: VecDeque<u32>,
    last_ticket: u64,
    accepted: u64,
    failed: u64,
    doubled: u64,
}

impl Ledger {
    /// A new file waits at the end of the queue.
    pub fn add(&mut self, path: PathBuf) {
        let file = self.push(path, FileState::Waiting);
        self.waiting.push_back(file);
    }

    /// Something that could not even be looked at: failed from the start.
    pub fn add_failed(&mut self, path: PathBuf) {
        self.push(path, FileState::Failed);
        self.failed += 1;
    }

    fn push(&mut self, path: PathBuf, state: FileState) -> u32 {
        let file = self.files.len() as u32;
        self.files.push(FileRecord {
            path,
            state,
            digest: [0; 32],
        });
        file
    }

    /// Takes the first file of the queue, under a new ticket.
    pub fn next(&mut self) -> Option<(u32, u64)> {
        let file = self.waiting.pop_front()?;
        self.last_ticket += 1;
        self.record(file)?.state = FileState::Given(self.last_ticket);
        Some((file, self.last_ticket))
    }

    /// Puts files back to the front of the queue, in the order given.
    pub fn give_back(&mut self, given: &[(u32, u64)]) {
        for &(file, ticket) in given.iter().rev() {
            if self.move_to(file, ticket, FileState::Waiting) {
                self.waiting.push_front(file);
            }
        }
    }

    /// Accepts a file; its digest is zero for a command.
    pub fn accept(&mut self, file: u32, ticket: u64, digest: [u8; 32]) -> bool {
        let fits = self.move_to(file, ticket, FileState::Accepted);
        if fits {
            self.accepted += 1;
            if let Some(record) = self.record(file) {
                record.digest = digest;
            }
        }
        fits
    }

    /// Fails a file for good.
    pub fn fail(&mut self, file: u32, ticket: u64) -> bool {
        let fits = self.move_to(file, ticket, FileState::Failed);
        self.failed += u64::from(fits);
        fits
    }

    fn move_to(&mut self, file: u32, ticket: u64, state: FileState) -> bool {
        let fits = self.record(file).is_some_and(|record| {
            let fits = record.state == FileState::Given(ticket);
            if fits {
                record.state = state;
            }
            fits
        });
        self.doubled += u64::from(!fits);
        fits
    }

    fn record(&mut self, file: u32) -> Option<&mut FileRecord> {
        self.files.get_mut(file as usize)
    }

    /// A file's path.
    #[must_use]
    pub fn path(&self, file: u32) -> &Path {
        self.files
            .get(file as usize)
            .map_or(Path::new(""), |record| &record.path)
    }

    /// Files and digests accepted, in the order of the walk.
    pub fn accepted_files(&self) -> impl Iterator<Item = (&[u8; 32], &Path)> {
        let accepted = self
            .files
            .iter()
            .filter(|record| record.state == FileState::Accepted);
        accepted.map(|record| (&record.digest, record.path.as_path()))
    }

    /// How many there are.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many were accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// How many failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Whether every file has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.accepted + self.failed >= self.files()
    }

    /// Files that have no end, counted anew from their states; and transitions that did not fit.
    #[must_use]
    pub fn lost_and_doubled(&self) -> (u64, u64) {
        let ends = [FileState::Accepted, FileState::Failed];
        let ended = self
            .files
            .iter()
            .filter(|record| ends.contains(&record.state));
        (self.files() - ended.count() as u64, self.doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(names: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        names.iter().for_each(|name| ledger.add(name.into()));
        ledger
    }

    #[test]
    fn a_file_given_back_comes_first_and_under_another_ticket() {
        let mut ledger = ledger(&["a", "b", "c"]);
        let (a, b) = (ledger.next().unwrap(), ledger.next().unwrap());
        ledger.give_back(&[a, b]);
        let again = [ledger.next().unwrap(), ledger.next().unwrap()];
        assert_eq!(again.map(|(file, _)| file), [0, 1]);
        assert!(again[0].1 > b.1);
        // What the first holder says now does not count.
        assert!(!ledger.accept(a.0, a.1, [1; 32]));
        assert!(ledger.accept(0, again[0].1, [2; 32]));
        assert_eq!(ledger.lost_and_doubled(), (2, 1));
    }

    #[test]
    fn a_file_ends_once() {
        let mut ledger = ledger(&["a", "b"]);
        ledger.add_failed("gone".into());
        let (a, ticket) = ledger.next().unwrap();
        assert!(ledger.accept(a, ticket, [7; 32]));
        assert!(!ledger.accept(a, ticket, [7; 32]));
        assert!(!ledger.fail(a, ticket));
        assert!(!ledger.is_done());
        let (b, ticket) = ledger.next().unwrap();
        assert!(ledger.fail(b, ticket));
        assert!(ledger.is_done() && ledger.next().is_none());
        assert_eq!(
            (ledger.files(), ledger.accepted(), ledger.failed()),
            (3, 1, 2)
        );
        assert_eq!(ledger.lost_and_doubled(), (0, 2));
        let accepted: Vec<_> = ledger.accepted_files().collect();
        assert_eq!(accepted, [(&[7; 32], Path::new("a"))]);
    }
}
