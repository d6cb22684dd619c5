//! Other processes: this very test program again, told to play a part of one test.
//!
//! A test begins with `if peer::plays("part") { …; peer::done() }` for each part, and starts them with
//! [`Peer::start`]. What a part says ([`say`]) its test hears ([`Peer::hear`]).

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PART: &str = "FAILOVER_TEST_PART";
/// Marks a said line among what the test harness prints.
const MARK: &str = "@@";

/// Whether this process was started to play that part.
pub fn plays(part: &str) -> bool {
    std::env::var_os(PART).is_some_and(|value| value == part)
}

/// An argument that was given to the part with [`Peer::start`].
pub fn argument(name: &str) -> String {
    std::env::var(format!("{PART}_{name}")).expect("an argument")
}

/// The path of the table.
pub fn path() -> PathBuf {
    argument("path").into()
}

/// Ends a part.
pub fn done() -> ! {
    std::process::exit(0)
}

/// Tells the test one line.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone is no reason to panic.
    let _ = writeln!(out, "{MARK}{line}").and_then(|()| out.flush());
}

/// Waits for a line of the test's; None when the test has closed its end.
pub fn listen() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end().to_owned()),
    }
}

/// Waits until a condition holds, for at most a minute.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "waited 60 s until {what}");
        std::thread::yield_now();
    }
}

/// A process that plays a part; killed when dropped.
pub struct Peer {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a part of the test function given.
    pub fn start<F: Fn()>(_test: F, part: &str, arguments: &[(&str, &str)]) -> Self {
        let (_, test) = std::any::type_name::<F>().split_once("::").expect("a path");
        let mut command = Command::new(std::env::current_exe().expect("our own program"));
        command.args(["--exact", test, "--nocapture"]);
        command.env(PART, part);
        for (name, value) in arguments {
            command.env(format!("{PART}_{name}"), value);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdin = child.stdin.take().expect("its input");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// The next line that the part says; panics when it ends without one.
    #[track_caller]
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).expect("its output");
            assert_ne!(read, 0, "the peer ended without a word");
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return said.to_owned();
            }
        }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("its input");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL; it stays a zombie until [`Self::reap`] or the end of the test.
    pub fn kill(&mut self) {
        self.child.kill().expect("a living process");
    }

    pub fn reap(&mut self) {
        self.child.wait().expect("a process of ours");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
