//! A command of the user's for one file, in a worker.
//!
//! Contract: the command runs in a process group of its own, dies with its worker, and its pid stands
//! in the lane from before it executes until it is over, so that the parent can end what a dead
//! worker left. Its output is recorded in a folder of this attempt alone; the parent gives that
//! folder the file's name when the attempt is accepted.
//!
//! ```text
//!   DIR/.attempt-TICKET/{stdout,stderr,status}  ── accepted (parent) ──▶  DIR/N/
//!                                               ── handed back (parent) ─▶ deleted
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use bumpless_substrate::guard::{GuardError, spawn_guarded};
use bumpless_substrate::region::Region;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::entry::Outcome;
use super::lane::Lane;
use super::manifest::push_escaped;

/// How commands are run and where their output goes.
#[derive(Debug)]
pub struct Exec<'a> {
    /// The command's words.
    pub words: &'a [OsString],
    /// The user's folder for output.
    pub output_dir: &'a Path,
    /// The worker's lane.
    pub lane: &'a Lane,
    /// Where in the lane the command's pid goes.
    pub pid_place: (Arc<Region>, u64),
}

/// The folder of one attempt.
#[must_use]
pub fn attempt_dir(output_dir: &Path, ticket: u64) -> PathBuf {
    output_dir.join(format!(".attempt-{ticket}"))
}

impl Exec<'_> {
    /// Runs the command for `path` to its end, and records what came out.
    pub fn run(&self, path: &OsStr, ticket: u64) -> Outcome {
        let folder = attempt_dir(self.output_dir, ticket);
        let not_recorded =
            |error: &std::io::Error| Outcome::NotRecorded(error.raw_os_error().unwrap_or(0));
        let streams = std::fs::create_dir(&folder).and_then(|()| {
            let stdout = File::create(folder.join("stdout"))?;
            Ok((stdout, File::create(folder.join("stderr"))?))
        });
        let (stdout, stderr) = match streams {
            Ok(streams) => streams,
            Err(error) => return not_recorded(&error),
        };
        let words = substitute(self.words, path);
        let Some((program, rest)) = words.split_first() else {
            return Outcome::NotStarted(Errno::NOENT.raw_os_error());
        };
        let mut command = Command::new(program);
        command
            .args(rest)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        let outcome = match spawn_guarded(&mut command, Some(self.pid_place.clone())) {
            Ok(child) => match self.wait(child) {
                Ok(status) => ended(status),
                Err(error) => return not_recorded(&error),
            },
            Err(GuardError::Spawn { error, .. }) => {
                Outcome::NotStarted(error.raw_os_error().unwrap_or(0))
            }
            Err(_) => Outcome::NotStarted(0),
        };
        match record(&folder, outcome, path) {
            Ok(()) => outcome,
            Err(error) => not_recorded(&error),
        }
    }

    fn wait(&self, mut child: Child) -> std::io::Result<ExitStatus> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It is over, and its pid still its own, while the lane forgets it.
            let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while waitid(WaitId::Pid(pid), over).is_err_and(|errno| errno == Errno::INTR) {}
        }
        self.lane.forget_exec();
        child.wait()
    }
}

fn ended(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code),
        (None, signal) => Outcome::Signaled(signal.unwrap_or(0)),
    }
}

/// `status`: how it ended, then the path as a manifest writes it.
fn record(folder: &Path, outcome: Outcome, path: &OsStr) -> std::io::Result<()> {
    let mut text = format!("{}\n", super::outcome::described(outcome)).into_bytes();
    push_escaped(&mut text, path.as_bytes());
    text.push(b'\n');
    File::create(folder.join("status"))?.write_all(&text)
}

/// Each `{}` is replaced by the path; without any, the path is the last word.
fn substitute(words: &[OsString], path: &OsStr) -> Vec<OsString> {
    let mut replaced = false;
    let mut full: Vec<OsString> = words
        .iter()
        .map(|word| {
            let mut bytes = Vec::new();
            let mut rest = word.as_bytes();
            while let Some(at) = rest.windows(2).position(|pair| pair == b"{}") {
                bytes.extend_from_slice(&rest[..at]);
                bytes.extend_from_slice(path.as_bytes());
                rest = &rest[at + 2..];
                replaced = true;
            }
            bytes.extend_from_slice(rest);
            OsString::from_vec(bytes)
        })
        .collect();
    if !replaced {
        full.push(path.to_owned());
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    fn substituted(words: &[&str], path: &[u8]) -> Vec<OsString> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        substitute(&words, OsStr::from_bytes(path))
    }

    #[test]
    fn braces_are_the_path_wherever_they_stand_and_else_it_comes_last() {
        assert_eq!(
            substituted(&["cp", "{}", "{}.bak"], b"a b"),
            ["cp", "a b", "a b.bak"]
        );
        assert_eq!(substituted(&["wc", "-c"], b"x"), ["wc", "-c", "x"]);
        assert_eq!(substituted(&["{}{}", "}{"], b"{}"), ["{}{}", "}{"]);
        let odd = substituted(&["p", "<{}>"], b"\xff\n");
        assert_eq!(odd[1].as_bytes(), b"<\xff\n>");
    }
}
