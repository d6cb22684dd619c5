//! What the children do: one role for most, which does as it is told, and the loops of some scenarios.
//!
//! Contract: a role ends when its commands end. A member answers each line with one line: `done`, and
//! what came of it, or `refused`, the error's variant and its text.

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatError, HeartbeatTable, Label, Profile};

use bumpless_substrate::region::default_folder;
use bumpless_substrate::unusual;
use rustix::fs::Mode;
use rustix::process::{Gid, Uid};

use crate::lines::{Lines, Next};
use crate::{
    barrier, churn, elections, false_deaths, files, forks, leads, namespaces, observers, owners,
    rights, runs, silence,
};

/// The first argument of a child.
pub const ROLE_ARGUMENT: &str = "--role";

/// Plays the role that the arguments name.
pub fn play(arguments: &[String]) -> ExitCode {
    let (role, rest) = arguments.split_first().expect("a role");
    match role.as_str() {
        "member" => Member::serve_beside_the_first_thread(),
        "executed member" => {
            answer(&Ok(String::new()));
            Member::default().serve();
        }
        "dropping owner" => forks::dropping_owner(rest),
        "candidate" => elections::candidate_process(rest),
        "crowd" => elections::crowd(rest),
        "service" => runs::service(rest),
        "sole command" => leads::sole_command(rest),
        "attacher" => files::attacher(),
        "starter" => files::starter(rest),
        "full disk" => rights::full_disk(),
        "damaged" => observers::damaged(rest),
        "churner" => churn::churner(rest),
        "two-threaded owner" => churn::two_threaded_owner(rest),
        "heir" => churn::heir(rest),
        "healthy worker" => false_deaths::healthy_worker(rest),
        "watching process" => false_deaths::watching_process(rest),
        "busy" => false_deaths::busy(),
        "marker" => silence::marker(rest),
        "scanner" => silence::scanner(rest),
        "barrier member" => barrier::member(rest),
        "pausing judge" => silence::pausing_judge(rest),
        other => panic!("no role is called `{other}`"),
    }
    ExitCode::SUCCESS
}

/// An error as it is answered.
#[derive(Debug)]
pub struct Refusal {
    kind: String,
    text: String,
}

impl Refusal {
    /// The error's variant.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl<E: Debug + std::fmt::Display> From<E> for Refusal {
    /// The variants are cut out of the text for debugging: `Region(NotFound { .. })`.
    fn from(error: E) -> Self {
        let debug = format!("{error:?}");
        let end = debug.find([' ', ')']).unwrap_or(debug.len());
        Self {
            kind: debug[..end].replace('(', "."),
            text: error.to_string(),
        }
    }
}

type Reply = Result<String, Refusal>;

/// The lines of commands of this process.
pub fn commands() -> Lines {
    let stdin = std::io::stdin();
    let pipe = rustix::io::fcntl_dupfd_cloexec(&stdin, 3).expect("a copy of standard input");
    Lines::new(pipe)
}

/// Answers one command.
pub fn answer(reply: &Reply) {
    match reply {
        Ok(what) => println!("done {}", what.replace('\n', " ")),
        Err(Refusal { kind, text }) => println!("refused {kind} {}", text.replace('\n', " ")),
    }
}

/// A process that does with a table what it is told. It opens tables for the rest of its life.
#[derive(Default)]
struct Member {
    table: Option<&'static HeartbeatTable>,
    handles: Vec<Handle>,
    watchdog: Option<FailoverWatchdog<'static>>,
    report: ReclaimReport,
    beat_interval: Option<Duration>,
    /// Ends the process's first thread.
    first_thread: Option<Sender<()>>,
}

impl Member {
    /// Serves in a second thread, so that the first may end before it.
    fn serve_beside_the_first_thread() {
        let (first_thread, serving) = mpsc::channel();
        std::thread::spawn(move || {
            let mut member = Self {
                first_thread: Some(first_thread),
                ..Self::default()
            };
            member.serve();
            std::process::exit(0);
        });
        // An error: the member has panicked, and the process ends with this thread's return.
        if serving.recv().is_ok() {
            unusual::end_first_thread();
        }
    }

    fn serve(&mut self) {
        let mut commands = commands();
        loop {
            match commands.next(self.beat_interval) {
                Next::Line(line) if line == "leave" => return,
                Next::Line(line) => {
                    let words: Vec<&str> = line.split(' ').collect();
                    answer(&self.obey(&words));
                }
                // What a beat is told, the next command is told too.
                Next::Quiet => drop(self.handles.last().map(|handle| self.table().beat(*handle))),
                Next::Closed => return,
            }
        }
    }

    fn table(&self) -> &'static HeartbeatTable {
        self.table.expect("an open table")
    }

    fn handle(&self) -> Handle {
        *self.handles.last().expect("a registration")
    }

    fn obey(&mut self, words: &[&str]) -> Reply {
        match words {
            ["create", path, capacity] => self.have(HeartbeatTable::create(path, number(capacity))),
            ["reset", path, capacity] => self.have(HeartbeatTable::reset(path, number(capacity))),
            ["open", path, capacity] => self.have(HeartbeatTable::open(path, number(capacity))),
            ["attach", path] => self.have(HeartbeatTable::attach(path)),
            ["look", path] => self.have(HeartbeatTable::open_read_only(path)),
            ["register"] => self.register(Profile::default()),
            ["register", grace, label] => self.register(Profile {
                grace_epochs: number(grace) as u16,
                label: Label::new(label)?,
                ..Profile::default()
            }),
            ["fill"] => self.fill(),
            ["unregister"] => {
                self.table().unregister(self.handle())?;
                self.handles.pop();
                Ok(String::new())
            }
            ["beat"] => done(self.table().beat(self.handle())),
            ["beating", milliseconds] => {
                self.beat_interval = Some(Duration::from_millis(number(milliseconds) as u64));
                Ok(String::new())
            }
            ["mark", units @ ..] => self.each(units, HeartbeatTable::mark_in_flight),
            ["complete", units @ ..] => self.each(units, HeartbeatTable::clear_in_flight),
            ["idle"] => Ok(String::new()),
            ["register-in-a-thread"] => self.register_in_a_thread(),
            ["claim", slot] => Ok(namespaces::leave_claiming(self.table(), number(slot))),
            ["reopen", path, times] => owners::reopen(path, number(times)),
            ["exec"] => Err(owners::execute_anew().into()),
            ["dump-core", folder, mebibytes] => owners::dump_core(folder, number(mebibytes)),
            ["end-first-thread"] => {
                let first_thread = self.first_thread.as_ref();
                first_thread.expect("not in a fork child").send(())?;
                Ok(String::new())
            }
            ["fork"] => self.fork(),
            ["last-pid", pid] => {
                std::fs::write("/proc/sys/kernel/ns_last_pid", pid)?;
                Ok(String::new())
            }
            ["become", user] => become_user(number(user) as u32),
            ["umask", mask] => {
                rustix::process::umask(Mode::from_raw_mode(number(mask) as u32));
                Ok(String::new())
            }
            ["default-folder"] => Ok(default_folder()?.display().to_string()),
            ["tick"] => Ok(self.table().tick_global_epoch()?.to_string()),
            ["count"] => Ok(self.table().iter_live().count().to_string()),
            ["touch", mebibytes] => {
                // For the rest of the process's life.
                let memory = vec![1_u8; number(mebibytes) << 20];
                std::mem::forget(std::hint::black_box(memory));
                Ok(String::new())
            }
            ["see", slot] => Ok(format!("{:?}", self.table().observe(number(slot)))),
            ["watch", grace] => {
                let grace_epochs = number(grace) as u64;
                self.watchdog = Some(FailoverWatchdog::with_grace(self.table(), grace_epochs));
                Ok(String::new())
            }
            ["wait"] => {
                let watchdog = self.watchdog.as_ref().expect("a watchdog");
                watchdog.wait_for_change(Duration::from_millis(1));
                Ok(String::new())
            }
            ["scan"] => self.scan(),
            ["acknowledge"] => self.acknowledge(),
            ["verdicts"] => {
                let slots = self.report.dead_slots.iter().map(|(slot, _)| {
                    format!(
                        "{}: {:?} by {}",
                        slot.slot, slot.verdict, slot.evidence.source
                    )
                });
                Ok(slots.collect::<Vec<_>>().join(", "))
            }
            other => panic!("no command: {other:?}"),
        }
    }

    fn have(&mut self, opened: Result<HeartbeatTable, HeartbeatError>) -> Reply {
        let table = Box::leak(Box::new(opened?));
        self.table = Some(table);
        Ok(format!(
            "{} slots, creation id {:x}",
            table.capacity(),
            table.creation_id()
        ))
    }

    fn register(&mut self, profile: Profile) -> Reply {
        let handle = self.table().register_as(std::process::id(), profile)?;
        self.handles.push(handle);
        Ok(format!("{} {}", handle.slot(), handle.generation()))
    }

    fn register_in_a_thread(&mut self) -> Reply {
        let table = self.table();
        let thread = std::thread::spawn(move || table.register(std::process::id()));
        let handle = thread.join().expect("no panic")?;
        self.handles.push(handle);
        Ok(format!("{} {}", handle.slot(), handle.generation()))
    }

    /// From here on a fork child serves, which answers with its pid; when its commands end, the parent
    /// answers with its exit code, and serves again.
    fn fork(&mut self) -> Reply {
        let child = unusual::fork_and_run(|| {
            answer(&Ok(std::process::id().to_string()));
            self.serve();
            0
        })?;
        Ok(format!("ended {:?}", child.wait()?))
    }

    /// Registers until the table is full; how often, and what the table said then.
    fn fill(&mut self) -> Reply {
        let mut count = 0;
        loop {
            match self.register(Profile::default()) {
                Ok(_) => count += 1,
                Err(refusal) if refusal.kind == "TableFull" => {
                    return Ok(format!("{count} {}", refusal.text));
                }
                Err(other) => return Err(other),
            }
        }
    }

    fn each(
        &self,
        units: &[&str],
        operation: fn(&HeartbeatTable, Handle, usize) -> Result<(), HeartbeatError>,
    ) -> Reply {
        for unit in units {
            operation(self.table(), self.handle(), number(unit))?;
        }
        Ok(String::new())
    }

    fn scan(&mut self) -> Reply {
        let watchdog = self.watchdog.as_ref().expect("a watchdog");
        watchdog.scan_into(&mut self.report);
        let mut text = format!("{:?}", self.report.standing);
        for (slot, _) in &self.report.dead_slots {
            for unit in slot.units.iter() {
                text += &format!(" {}", slot.unit_name(unit));
            }
        }
        Ok(text)
    }

    fn acknowledge(&mut self) -> Reply {
        let watchdog = self.watchdog.as_ref().expect("a watchdog");
        let mut text = String::new();
        for (slot, _) in &self.report.dead_slots {
            text += &format!("{:?} ", watchdog.clear_dead_bitmap(*slot)?);
        }
        Ok(text)
    }
}

fn done(result: Result<(), HeartbeatError>) -> Reply {
    Ok(result.map(|()| String::new())?)
}

/// Becomes another user for good. The guard is gone then, but a child without a harness ends when its
/// commands do.
fn become_user(user: u32) -> Reply {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(String::new())
}

/// A number in a command.
pub fn number(word: &str) -> usize {
    word.parse()
        .unwrap_or_else(|_| panic!("no number: `{word}`"))
}

/// Registers as soon as a slot is free.
pub fn register_when_free(table: &HeartbeatTable) -> Handle {
    loop {
        match table.register(std::process::id()) {
            Ok(handle) => return handle,
            Err(HeartbeatError::TableFull { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}
