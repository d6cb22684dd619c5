//! Children of the harness: started, told what to do, killed, stopped, reaped.
//!
//! Contract: a child is this very program with a role. It is guarded (it dies with the harness), it
//! answers each command with one line, and it is killed and reaped when dropped. An answer that does
//! not come in time fails the scenario and says what was asked.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_substrate::guard;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::lines::{Lines, Next};

/// How long an answer may take: far more than any does, also on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// A child process in a role.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    commands: Option<std::process::ChildStdin>,
    answers: Lines,
    role: &'static str,
    asked: String,
    /// The process in the role, when another program started it for us.
    behind: Option<Pid>,
}

/// What a child answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done, and this came of it.
    Done(String),
    /// Refused: the error's variant, and its text.
    Refused { kind: String, text: String },
}

impl Child {
    /// This program in `role`.
    pub fn start(role: &'static str, arguments: &[OsString]) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        Self::start_by(Command::new(program), role, arguments)
    }

    /// A member that another program starts, such as one that makes namespaces.
    pub fn member_through(wrapper: &[&str]) -> Self {
        let [program, rest @ ..] = wrapper else {
            panic!("no program");
        };
        let mut command = Command::new(program);
        // Such programs complain when what they have started is killed.
        command.args(rest).stderr(Stdio::null());
        command.arg(std::env::current_exe().expect("the path of this program"));
        let mut child = Self::start_by(command, "member", &[]);
        child.done("idle");
        child.behind = child.only_child();
        child
    }

    fn start_by(mut command: Command, role: &'static str, arguments: &[OsString]) -> Self {
        command.arg(crate::roles::ROLE_ARGUMENT).arg(role);
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = guard::spawn_guarded(&mut command, None).expect("a child");
        let answers = process.stdout.take().expect("a pipe");
        Self {
            commands: process.stdin.take(),
            answers: Lines::new(answers.into()),
            process,
            role,
            asked: "to start".to_owned(),
            behind: None,
        }
    }

    /// The child of this child, if it has one; of more than one this says nothing.
    fn only_child(&self) -> Option<Pid> {
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.expect("the children of a child of ours");
        children.trim().parse().ok().and_then(Pid::from_raw)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The id of the process in the role, here.
    pub fn outer_pid(&self) -> i32 {
        self.behind.unwrap_or(self.id()).as_raw_nonzero().get()
    }

    /// Says what to do, and does not wait for the answer.
    pub fn tell(&mut self, command: &str) {
        command.clone_into(&mut self.asked);
        let pipe = self.commands.as_mut().expect("an open pipe");
        let told = pipe.write_all(format!("{command}\n").as_bytes());
        told.unwrap_or_else(|error| panic!("tell {} `{command}`: {error}", self.name()));
    }

    /// The next answer.
    pub fn answer(&mut self) -> Answer {
        match self.answers.next(Some(ANSWER_LIMIT)) {
            Next::Line(line) => Answer::parse(&line),
            other => panic!("{} was asked `{}`: {other:?}", self.name(), self.asked),
        }
    }

    /// The next answer, if it is there by now.
    pub fn answer_so_far(&mut self) -> Option<Answer> {
        match self.answers.next(Some(Duration::ZERO)) {
            Next::Line(line) => Some(Answer::parse(&line)),
            Next::Quiet => None,
            Next::Closed => panic!("{} has ended; last asked `{}`", self.name(), self.asked),
        }
    }

    /// Says what to do, and awaits the answer.
    pub fn ask(&mut self, command: &str) -> Answer {
        self.tell(command);
        self.answer()
    }

    /// Says what to do, which must succeed; what came of it.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        match self.ask(command) {
            Answer::Done(what) => what,
            refused => panic!("{} was asked `{command}`: {refused:?}", self.name()),
        }
    }

    /// Says what to do, which must be refused with an error of this kind; its text.
    #[track_caller]
    pub fn refused(&mut self, command: &str, wanted: &str) -> String {
        match self.ask(command) {
            Answer::Refused { kind, text } if kind == wanted => text,
            other => panic!(
                "{} was asked `{command}`: {other:?}, not {wanted}",
                self.name()
            ),
        }
    }

    /// Sends a signal to the process in the role.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.behind.unwrap_or(self.id()), signal)
            .unwrap_or_else(|errno| panic!("send {signal:?} to {}: {errno}", self.name()));
    }

    /// SIGKILL. Returns when the process has ended; it stays a zombie until dropped.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.await_ended();
    }

    /// Returns when the process has ended.
    pub fn await_ended(&self) {
        self.await_state(WaitIdOptions::EXITED);
    }

    /// SIGSTOP. Returns when all of it stands still.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        self.await_stopped();
    }

    /// Returns when the process has been stopped.
    pub fn await_stopped(&self) {
        self.await_state(WaitIdOptions::STOPPED);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The state letter in the process's stat file.
    pub fn state_letter(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("a stat");
        let (_, rest) = stat.rsplit_once(") ").expect("a name in parentheses");
        rest.chars().next().expect("a state")
    }

    fn await_state(&self, state: WaitIdOptions) {
        let what = format!("{state:?} of {}", self.name());
        await_until(ANSWER_LIMIT, &what, || self.is_in(state));
    }

    fn is_in(&self, state: WaitIdOptions) -> bool {
        let options = state | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let found = rustix::process::waitid(WaitId::Pid(self.id()), options);
        found.expect("a child of ours").is_some()
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn name(&self) -> String {
        format!("{} {}", self.role, self.pid())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.behind.is_some() && !self.is_in(WaitIdOptions::EXITED) {
            // Whoever started it then reaps it, and ends.
            self.signal(Signal::KILL);
            self.await_ended();
        }
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    fn parse(line: &str) -> Self {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "done" => Self::Done(rest.to_owned()),
            "refused" => {
                let (kind, text) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::Refused {
                    kind: kind.to_owned(),
                    text: text.to_owned(),
                }
            }
            _ => panic!("no answer: `{line}`"),
        }
    }
}

/// Looks until `condition` holds; fails, saying what was awaited, when it does not in time.
#[track_caller]
pub fn await_until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(20);
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "not within {limit:?}: {what}\n{}",
            crate::scene::table_state()
        );
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}
