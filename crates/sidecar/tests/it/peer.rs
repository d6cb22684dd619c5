//! Another process: this very test program again, told to play a part of one test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const PATH: &str = "SIDECAR_TEST_PATH";
/// Marks a said line among what the test harness prints.
const MARK: &str = "@@";

/// The file to play the part with, if this process was started to play the part of the calling test.
pub fn plays() -> Option<PathBuf> {
    std::env::var_os(PATH).map(PathBuf::from)
}

/// Tells the test one line.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // A test that is gone is no reason to panic.
    let _ = writeln!(out, "{MARK}{line}").and_then(|()| out.flush());
}

/// Stays until it is killed, or the test is gone.
pub fn stay() -> ! {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0)
}

/// A process that plays a part; killed when dropped.
pub struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the part of the test function given.
    pub fn start<F: Fn()>(_test: F, path: &Path) -> Self {
        let (_, test) = std::any::type_name::<F>().split_once("::").expect("a path");
        let mut command = Command::new(std::env::current_exe().expect("our own program"));
        command
            .args(["--exact", test, "--nocapture"])
            .env(PATH, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, stdout }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it said as a whole; `None`: it ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            self.stdout.read_line(&mut line).expect("its output");
            let whole = line.strip_suffix('\n')?;
            if let Some((_, said)) = whole.split_once(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    /// SIGKILL; what it had said can still be heard.
    pub fn kill(&mut self) {
        self.child.kill().expect("a living process");
        self.child.wait().expect("a process of ours");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
