//! The lead: stands, beats, starts a job when it leads, passes signals on.
//!
//! Contract: one thread decides everything, and beats each time it comes round, at least once in a
//! period: so a lead whose decisions hang does not beat, and is fenced. The other threads only wait, each
//! for one thing, and tell.
//!
//! ```text
//!   ┌▶ wait for news, one period at most ─ beat ──▶ no job: claim ── mine ──▶ start a job
//!   │                                      │ fenced: register anew
//!   │    news: the leader is another one; a signal; the job has ended ── still in its term ──▶ end
//!   └───────────────────────────────────────────────────────────────────────────┘
//! ```

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use bumpless_election::{ElectionError, LeaderToken, Leadership, SharedLeaderElection};
use bumpless_failover::Stop;
use bumpless_heartbeat::{Handle, HeartbeatError};
use bumpless_substrate::guard::become_subreaper;
use rustix::process::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::args::LeadArguments;
use super::error::LeadError;
use super::site::{PERIOD, Site};
use crate::kept::{code_of, code_of_signal, orphans};

/// What the waiting threads tell.
#[derive(Debug)]
enum News {
    /// The leader is another one, or gone.
    Leader,
    /// A signal to pass on.
    Signal(i32),
    /// The job has ended.
    Ended(std::io::Result<ExitStatus>),
}

/// A command that runs in a term.
#[derive(Debug)]
struct Job {
    term: u64,
    pipe: Option<ChildStdin>,
}

/// Leads, or waits to, until the command has ended; its exit code.
///
/// # Errors
/// [`LeadError`].
pub fn run(arguments: &LeadArguments) -> Result<u8, LeadError> {
    let site: &Site = Box::leak(Box::new(Site::open(arguments.table.as_deref())?));
    let election = SharedLeaderElection::open(&site.table, &arguments.name)?;
    let election: &SharedLeaderElection<'_> = Box::leak(Box::new(election));
    become_subreaper()?;
    let (sender, news) = channel();
    pass_signals_on(&sender)?;
    tell_of_leaders(election, &sender);
    let mut candidate = Candidate {
        arguments,
        site,
        election,
        handle: site.register(&arguments.name)?,
        job: None,
        spared: orphans::children(),
        sender,
    };
    let stop = Stop::new();
    thread::scope(|scope| {
        scope.spawn(|| site.watch(&stop));
        let ended = candidate.stand(&news);
        candidate.leave();
        stop.request();
        ended
    })
}

fn pass_signals_on(sender: &Sender<News>) -> Result<(), LeadError> {
    let handlers = Signals::new([SIGTERM, SIGINT]);
    let mut signals = handlers.map_err(LeadError::file("handle", "SIGTERM and SIGINT"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            // Nobody listens when the process is about to end.
            let _ = sender.send(News::Signal(signal));
        }
    });
    Ok(())
}

fn tell_of_leaders(election: &'static SharedLeaderElection<'static>, sender: &Sender<News>) {
    let sender = sender.clone();
    thread::spawn(move || {
        let mut seen = election.current_leader();
        // Whoever claims is told of an election that is over, too.
        while let Ok(now) = election.wait_for_change(seen, 20 * PERIOD) {
            if now != seen && sender.send(News::Leader).is_err() {
                return;
            }
            seen = now;
        }
    });
}

struct Candidate<'a> {
    arguments: &'a LeadArguments,
    site: &'static Site,
    election: &'static SharedLeaderElection<'static>,
    handle: Handle,
    job: Option<Job>,
    /// Children that this process had from the start.
    spared: Vec<Pid>,
    sender: Sender<News>,
}

impl Candidate<'_> {
    fn stand(&mut self, news: &Receiver<News>) -> Result<u8, LeadError> {
        loop {
            let token = self.beat()?;
            if self.job.is_none()
                && let Some(token) = self.claim(token)?
            {
                self.start(token)?;
            }
            match news.recv_timeout(PERIOD) {
                Ok(News::Signal(signal)) => match &mut self.job {
                    Some(Job {
                        pipe: Some(pipe), ..
                    }) => {
                        // A job that has ended has told so, or is about to.
                        let _ = pipe.write_all(&[signal as u8]);
                    }
                    _ => return Ok(code_of_signal(signal)),
                },
                Ok(News::Ended(status)) => {
                    let status = status.map_err(LeadError::file("wait for", "the job"))?;
                    let term = self.job.take().map(|job| job.term);
                    if self.beat()?.map(LeaderToken::term) == term {
                        return Ok(code_of(status));
                    }
                }
                // This sender is one: they are never all gone.
                Ok(News::Leader)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// The beat, and the token if this process leads. Who was fenced registers anew, and is a candidate
    /// like others.
    fn beat(&mut self) -> Result<Option<LeaderToken>, LeadError> {
        match self.election.beat_as_leader(self.handle) {
            Ok(token) => Ok(token),
            Err(ElectionError::Table(HeartbeatError::Fenced { .. })) => {
                self.site.table.unregister(self.handle)?;
                self.handle = self.site.register(&self.arguments.name)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The token, if this process leads now.
    fn claim(&self, token: Option<LeaderToken>) -> Result<Option<LeaderToken>, LeadError> {
        if token.is_some() {
            return Ok(token);
        }
        match self.election.try_claim_leadership(self.handle) {
            Ok(Leadership::Mine(token)) => Ok(Some(token)),
            Ok(Leadership::Theirs(_)) => Ok(None),
            // Since the beat. The next beat answers the one, the next claim the other.
            Err(
                ElectionError::Table(HeartbeatError::Fenced { .. })
                | ElectionError::Contended { .. },
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts a job: this very program, whatever its file was replaced by.
    fn start(&mut self, token: LeaderToken) -> Result<(), LeadError> {
        let LeadArguments {
            name,
            grace,
            command: words,
            ..
        } = self.arguments;
        let grace_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
        let mut command = Command::new("/proc/self/exe");
        command.arg0("bumpless").args(["lead-job", "--table"]);
        command.arg(self.site.table.path());
        // One word: a name may begin with a dash.
        command.arg(format!("--name={name}"));
        command.args(["--term", &token.term().to_string()]);
        command.args(["--grace-ns", &grace_ns.to_string()]);
        command.arg("--").args(words);
        command.env("BUMPLESS_TERM", token.term().to_string());
        command.env("BUMPLESS_ELECTION", name);
        command.env("BUMPLESS_LEADER_SLOT", token.slot().to_string());
        // A terminal's signals are for the lead, which passes them on.
        command.stdin(Stdio::piped()).process_group(0);
        let mut process = command
            .spawn()
            .map_err(LeadError::file("start", "the job"))?;
        self.job = Some(Job {
            term: token.term(),
            pipe: process.stdin.take(),
        });
        let (sender, spared) = (self.sender.clone(), self.spared.clone());
        thread::spawn(move || {
            let status = process.wait();
            if !status.as_ref().is_ok_and(|status| status.code().is_some()) {
                orphans::end(&spared);
            }
            // Nobody listens when the process is about to end.
            let _ = sender.send(News::Ended(status));
        });
        Ok(())
    }

    /// Gives all back. What fails needs nothing from us any more.
    fn leave(&mut self) {
        let _ = self.election.step_down(self.handle);
        let _ = self.site.table.unregister(self.handle);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        lead: LeadArguments,
    }

    #[test]
    fn who_is_fenced_between_its_beat_and_its_claim_registers_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        drop(bumpless_heartbeat::HeartbeatTable::create(&path, 8).expect("a table"));
        let site: &Site = Box::leak(Box::new(Site::open(Some(&path)).expect("the table")));
        let election = SharedLeaderElection::open(&site.table, "job").expect("an election");
        let Line { lead: arguments } = Line::parse_from(["lead", "--name", "job", "true"]);
        let mut candidate = Candidate {
            arguments: &arguments,
            site,
            election: Box::leak(Box::new(election)),
            handle: site.register("job").expect("a slot"),
            job: None,
            spared: Vec::new(),
            sender: channel().0,
        };
        let before = candidate.handle;
        let token = candidate.beat().expect("a beat");
        let cells = site.table.cells(before.slot()).expect("a slot");
        let _ = cells.slot.fence(before.generation());
        assert_eq!(candidate.claim(token).expect("no error"), None);
        let token = candidate.beat().expect("registered anew");
        assert_ne!(candidate.handle, before);
        assert!(candidate.claim(token).expect("a claim").is_some());
    }
}
