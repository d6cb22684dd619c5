//! Other processes: this very test program again, told to play a part of one test.
//!
//! A test begins with `if peer::plays("part") { …; peer::done() }` for each part, and starts them
//! with [`Peer::start`]. What a part says ([`say`]) its test hears ([`Peer::hear`]).

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use bumpless_substrate::identity::ProcessIdentity;

const PART: &str = "SUBSTRATE_TEST_PART";
/// Marks a said line among what the test harness prints.
const MARK: &str = "@@";

/// Whether this process was started to play that part.
pub fn plays(part: &str) -> bool {
    std::env::var_os(PART).is_some_and(|value| value == part)
}

/// An argument that was given to the part with [`Peer::start`].
pub fn argument(name: &str) -> String {
    std::env::var(format!("{PART}_{name}")).unwrap()
}

/// Ends a part.
pub fn done() -> ! {
    std::process::exit(0)
}

/// Tells the test one line.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone is no reason to panic: some tests kill it.
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

/// The command that plays a part of the test function given.
pub fn command<F: Fn()>(_test: F, part: &str, arguments: &[(&str, &OsStr)]) -> Command {
    command_through(&[], std::any::type_name::<F>(), part, arguments)
}

fn command_through(
    wrapper: &[&str],
    test: &str,
    part: &str,
    arguments: &[(&str, &OsStr)],
) -> Command {
    let program = std::env::current_exe().unwrap();
    let test = test.split_once("::").unwrap().1;
    let mut command = match wrapper {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.args(["--exact", test, "--nocapture"]);
    command.env(PART, part);
    for (name, value) in arguments {
        command.env(format!("{PART}_{name}"), value);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A process that plays a part; killed when dropped.
pub struct Peer {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start<F: Fn()>(test: F, part: &str, arguments: &[(&str, &OsStr)]) -> Self {
        Self::spawn(&mut command(test, part, arguments))
    }

    /// As `start`, by way of another program, such as `unshare`.
    pub fn start_through<F: Fn()>(
        wrapper: &[&str],
        _test: F,
        part: &str,
        arguments: &[(&str, &OsStr)],
    ) -> Self {
        Self::spawn(&mut command_through(
            wrapper,
            std::any::type_name::<F>(),
            part,
            arguments,
        ))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// The next line that the part says; panics when it ends without one.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the peer ended without a word");
            if let Some((_, said)) = line.trim_end().split_once(MARK) {
                return said.to_owned();
            }
        }
    }

    /// Hears an identity as [`say_identity`] says it.
    pub fn hear_identity(&mut self) -> ProcessIdentity {
        let said = self.hear();
        let numbers: Vec<u64> = said.split(' ').map(|n| n.parse().unwrap()).collect();
        let [pid, start_ticks, pid_namespace, time_namespace] = numbers[..] else {
            panic!("heard {said:?}, wanted four numbers");
        };
        ProcessIdentity {
            pid: pid.try_into().unwrap(),
            start_ticks,
            pid_namespace,
            time_namespace,
        }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes the peer's standard input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and waited for.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Hangs up and waits for the end.
    pub fn wait(mut self) -> ExitStatus {
        self.hang_up();
        self.child.wait().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the test who we are.
pub fn say_identity() {
    let us = bumpless_substrate::identity::current().unwrap();
    say(format!(
        "{} {} {} {}",
        us.pid, us.start_ticks, us.pid_namespace, us.time_namespace
    ));
}
