//! Another process: this very test program again, told to play a part of one test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const PART: &str = "STANDBY_TEST_PART";
const FOLDER: &str = "STANDBY_TEST_FOLDER";
/// Marks a said line among what the test harness prints.
const MARK: &str = "@@";

/// The folder to play the part in, if this process was started to play that part.
pub fn plays(part: &str) -> Option<PathBuf> {
    let is_mine = std::env::var_os(PART).is_some_and(|value| value == part);
    is_mine.then(|| std::env::var_os(FOLDER).unwrap_or_default().into())
}

/// Tells the test one line.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // A test that is gone is no reason to panic.
    let _ = writeln!(out, "{MARK}{line}").and_then(|()| out.flush());
}

/// Ends a part.
pub fn done() -> ! {
    std::process::exit(0)
}

/// A process that plays a part; killed when dropped.
pub struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the test function given as `part` in `folder`, by way of `wrapper` if that names a program.
    pub fn start<F: Fn()>(wrapper: &[&str], _test: F, part: &str, folder: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let test = std::any::type_name::<F>().split_once("::").unwrap().1;
        let mut command = match wrapper {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command.args(["--exact", test, "--nocapture"]);
        command.env(PART, part).env(FOLDER, folder);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// The next line that it says; `None`: it ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness prints the name of the test on the same line.
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
