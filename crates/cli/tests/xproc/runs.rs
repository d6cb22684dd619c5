//! `bumpless run` and programs that speak sd_notify: one in Rust, one in Python.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, SlotRef, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, Signal, kill_process};

use crate::child::await_until;
use crate::lines::{Lines, Next};
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(30);

/// A second and more, at a scan each 10 ms.
const GRACE_EPOCHS: u64 = 100;

/// A service in Python, as its users write them.
const PYTHON: &str = r#"
import os, socket, sys, time
address = os.environ["NOTIFY_SOCKET"]
every = int(os.environ["WATCHDOG_USEC"]) / 2e6
speaker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
speaker.connect(address)
speaker.send(b"READY=1\nSTATUS=serving")
open("ready", "w").close()
while not os.path.exists("hang"):
    speaker.send(b"WATCHDOG=1")
    time.sleep(min(every, 0.02))
os.rename("hang", "hung")
while True:
    time.sleep(1000)
"#;

/// Why Python's scenario cannot run.
pub fn python_missing() -> Option<String> {
    let mut python = Command::new("python3");
    python.arg("--version").stdout(Stdio::null());
    let ran = python.stderr(Stdio::null()).status();
    (!ran.is_ok_and(|status| status.success())).then(|| "no python3".to_owned())
}

/// A service in Rust: on time, until it is told to hang; then it says all that is no progress. Where it was
/// told so before, it tells that it is stopping, and ends.
pub fn service(arguments: &[String]) {
    let folder = Path::new(&arguments[0]);
    let address = std::env::var("NOTIFY_SOCKET").expect("a socket");
    let speaker = UnixDatagram::unbound().expect("a socket");
    speaker.connect(&address).expect("the socket");
    let say = |what: &[u8]| {
        speaker.send(what).expect("said");
    };
    say(b"READY=1");
    if folder.join("hung").exists() {
        say(b"STOPPING=1");
        return;
    }
    std::fs::write(folder.join("ready"), &address).expect("a file");
    await_until(LIMIT, "to be told to hang", || {
        say(b"WATCHDOG=1");
        folder.join("hang").exists()
    });
    std::fs::rename(folder.join("hang"), folder.join("hung")).expect("the file");
    for junk in [
        &b""[..],
        b"WATCHDOG",
        b"\xffWATCHDOG=1",
        b"STATUS=WATCHDOG=1",
        &[b'\n'; 8192],
    ] {
        say(junk);
    }
    loop {
        std::thread::park();
    }
}

/// A `bumpless run --notify`, and what it says on standard error.
struct Run(Process, Lines);

impl Run {
    fn start(scene: &Scene, arguments: &[&str], words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(["run", "--notify", "--progress-within", "500ms", "--table"]);
        command.arg(scene.table_path()).args(arguments);
        command.arg("--").args(words).current_dir(scene.folder());
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = spawn_guarded(&mut command, None).expect("a run");
        let said = process.stderr.take().expect("a pipe");
        Self(process, Lines::new(said.into()))
    }

    /// Awaits a line with this in it; the lines before it.
    #[track_caller]
    fn await_said(&mut self, what: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            match self.1.next(Some(LIMIT)) {
                Next::Line(line) if line.contains(what) => return before,
                Next::Line(line) => before.push(line),
                other => panic!("{other:?} instead of `{what}` after {before:?}"),
            }
        }
    }

    fn code(&mut self) -> Option<i32> {
        self.0.wait().expect("a child of ours").code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Scans each 10 ms, and at once when somebody dies, until there is a verdict.
fn await_verdict(watchdog: &FailoverWatchdog<'_>) -> SlotRef {
    let mut found = None;
    await_until(LIMIT, "a verdict", || {
        watchdog.wait_for_change(Duration::from_millis(10));
        let report = watchdog.scan();
        found = report.dead_slots.first().map(|(slot, _)| *slot);
        found.is_some()
    });
    let slot = found.expect("awaited");
    watchdog.clear_dead_bitmap(slot).expect("acknowledged");
    slot
}

/// Two graces of scans, in which nobody is to be accused. Where the machine lets an owner wait, the scans wait
/// for it: in the middle of its grace, until it has beaten again.
fn expect_no_verdict(watchdog: &FailoverWatchdog<'_>) {
    for _ in 0..2 * GRACE_EPOCHS {
        watchdog.wait_for_change(Duration::from_millis(10));
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        if report.largest_lag_epochs > GRACE_EPOCHS / 2 {
            let epoch = report.new_global_epoch;
            await_until(LIMIT, "a beat of each owner", || {
                let mut live = watchdog.table().iter_live();
                live.all(|(_, seen)| seen.last_seen_epoch >= epoch)
            });
        }
    }
}

fn is_silent(slot: SlotRef) -> bool {
    matches!(slot.verdict, Verdict::Silent { .. })
}

/// 70.
pub fn service_that_tells_no_progress_any_more_is_fenced_and_started_again(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let program = std::env::current_exe().expect("this program");
    let (program, folder) = (program.to_str().expect("text"), scene.folder());
    let role = [program, crate::roles::ROLE_ARGUMENT, "service"];
    let words = [&role[..], &[folder.to_str().expect("text")]].concat();
    let mut run = Run::start(scene, &["--restart", "on-failure"], &words);
    await_until(LIMIT, "a service that is ready", || {
        scene.path("ready").exists()
    });
    expect_no_verdict(&watchdog);
    let address = std::fs::read_to_string(scene.path("ready")).expect("an address");
    std::fs::write(scene.path("hang"), "").expect("a file");
    await_until(LIMIT, "a service that hangs", || {
        scene.path("hung").exists()
    });
    let hung = Instant::now();
    // All that it says is heard before anybody looks.
    let before = run.await_said("status: WATCHDOG=1");
    let junk = |line: &String| line.contains("notification ignored");
    assert!(before.iter().any(junk), "{before:?}");
    // Not of the command's group: nothing that we say is progress.
    let foreign = UnixDatagram::unbound().expect("a socket");
    let mut verdict = None;
    await_until(LIMIT, "a verdict", || {
        let _ = foreign.send_to(b"WATCHDOG=1", &address);
        watchdog.wait_for_change(Duration::from_millis(10));
        let report = watchdog.scan();
        verdict = report.dead_slots.first().map(|(slot, _)| *slot);
        verdict.is_some()
    });
    let slot = verdict.expect("awaited");
    assert!(is_silent(slot), "{slot}");
    watchdog.clear_dead_bitmap(slot).expect("acknowledged");
    scene.note(&format!("fenced after {:.1?}", hung.elapsed()));
    run.await_said("fenced: ending the command");
    run.await_said("fenced: again in 200ms");
    run.await_said("the command says that it is stopping");
    assert_eq!(run.code(), Some(0));
    assert!(watchdog.scan().is_empty(), "given back");
}

/// 71.
pub fn python_service_is_watched_killed_and_passed_on(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let words = ["python3", "-c", PYTHON];
    let mut run = Run::start(scene, &[], &words);
    run.await_said("status: serving");
    await_until(LIMIT, "a service that is ready", || {
        scene.path("ready").exists()
    });
    expect_no_verdict(&watchdog);
    std::fs::write(scene.path("hang"), "").expect("a file");
    let slot = await_verdict(&watchdog);
    assert!(is_silent(slot), "{slot}");
    assert_eq!(run.code(), Some(128 + 15));
    // And one that is killed while it is on time.
    let run = Run::start(scene, &[], &words);
    await_until(LIMIT, "a service that is registered", || {
        others_in(&table).next().is_some()
    });
    kill_process(Pid::from_child(&run.0), Signal::KILL).expect("a child of ours");
    let killed = Instant::now();
    let slot = await_verdict(&watchdog);
    assert_eq!(slot.verdict, Verdict::Died);
    scene.note(&format!(
        "a killed run told dead, its program gone, after {:.1?}",
        killed.elapsed()
    ));
}

fn others_in(table: &HeartbeatTable) -> impl Iterator<Item = usize> + '_ {
    let own = std::process::id();
    let live = table.iter_live();
    live.filter_map(move |(slot, seen)| (seen.pid != own).then_some(slot))
}
