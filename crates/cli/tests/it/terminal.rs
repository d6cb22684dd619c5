//! `top` in a real terminal: what is on the screen, and how the terminal is left.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use rustix::fs::{Mode, OFlags};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::rig::{process, send};

/// How long anything here may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The tool in a terminal of its own.
struct Screen {
    child: Child,
    /// Of those that a test repeats; told when it fails.
    round: usize,
    keyboard: File,
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    fn start(rows: u16, columns: u16, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        // A job of its own: what stops it must not stop the test.
        command.args(arguments).process_group(0);
        Self::of(rows, columns, command)
    }

    fn of(rows: u16, columns: u16, mut command: Command) -> Self {
        let (keyboard, slave) = open_terminal(rows, columns);
        let end = || Stdio::from(slave.try_clone().expect("the same"));
        let child = command
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program runs");
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let mut shown = keyboard.try_clone().expect("the same");
        let fed = Arc::clone(&parser);
        // Ends with the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = shown.read(&mut bytes) {
                fed.lock().expect("no panic").process(&bytes[..length]);
            }
        });
        Self {
            child,
            round: 0,
            keyboard,
            slave,
            parser,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.parser.lock().expect("no panic").screen())
    }

    /// Waits until it is so; fails with all that is known of the program and its terminal.
    #[track_caller]
    fn await_so(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > DEADLINE {
                panic!("not within {DEADLINE:?}: {what}: {}", self.told());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn told(&mut self) -> String {
        let ended = self.child.try_wait();
        let about = format!("/proc/{}/status", self.child.id());
        let about = std::fs::read_to_string(about).unwrap_or_default();
        let is_told = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default();
            ["State", "Threads"].contains(&name) || name.contains("Pnd") || name.starts_with("Sig")
        };
        let state: Vec<&str> = about.lines().filter(is_told).collect();
        let modes = tcgetattr(self.slave.as_fd()).map(|modes| modes.local_modes);
        let screen = self.with(|screen| {
            let (is_other, is_hidden) = (screen.alternate_screen(), screen.hide_cursor());
            let text = screen.contents();
            format!("alternate screen {is_other}, cursor hidden {is_hidden}:\n{text}")
        });
        let round = self.round;
        format!("round {round}; ended {ended:?}; {state:?}; modes {modes:?}; {screen}")
    }

    #[track_caller]
    fn await_text(&mut self, text: &str) {
        self.await_so(text, |it| {
            it.with(|screen| screen.contents().contains(text))
        });
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.slave.as_fd())
            .expect("a terminal")
            .local_modes;
        !modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    #[track_caller]
    fn await_stopped(&mut self) {
        self.await_so("stopped", |it| {
            process(it.child.id()).is_some_and(|found| found.state == 'T')
        });
    }

    /// As whoever has the terminal meanwhile does.
    #[track_caller]
    fn write_over(&mut self) {
        self.slave.write_all(b"\x1b[2J$ ls").expect("a terminal");
        self.await_so("written over", |it| {
            it.with(|screen| screen.contents().contains("$ ls"))
        });
    }

    #[track_caller]
    fn assert_drawn_anew(&mut self) {
        self.await_text("the press");
        self.await_text("q quit");
        let is_drawn = !self.with(|screen| screen.contents().contains("$ ls"))
            && self.with(vt100::Screen::alternate_screen)
            && self.is_raw();
        assert!(is_drawn, "{}", self.told());
    }

    #[track_caller]
    fn assert_former_screen(&mut self) {
        self.await_so("the former screen is back, with its cursor", |it| {
            it.with(|screen| !screen.alternate_screen() && !screen.hide_cursor())
        });
        assert!(!self.is_raw(), "{}", self.told());
    }

    /// After the program has ended.
    #[track_caller]
    fn assert_left_as_it_was(&mut self, code: i32) {
        self.await_so("ended", |it| process(it.child.id()).is_none());
        let status = self.child.wait().expect("a child of ours");
        assert_eq!(status.code(), Some(code), "{}", self.told());
        self.assert_former_screen();
    }

    #[track_caller]
    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("a key");
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A terminal, and what a program has of it.
fn open_terminal(rows: u16, columns: u16) -> (File, File) {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let name = name.into_string().expect("text");
    // Nobody's own: a session without a terminal would take it.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(&name, flags, Mode::empty()).expect("its other end");
    let slave = File::from(slave);
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).expect("a size");
    (File::from(master), slave)
}

fn table(folder: &tempfile::TempDir) -> (String, HeartbeatTable) {
    let path = folder.path().join("table");
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    let profile = Profile {
        label: Label::new("the press").expect("a label"),
        ..Profile::default()
    };
    table
        .register_as(std::process::id(), profile)
        .expect("a slot");
    (path.to_str().expect("text").to_owned(), table)
}

#[test]
fn top_fills_small_and_large_terminals_and_a_key_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    for (rows, columns) in [(24, 80), (50, 200)] {
        let mut screen = Screen::start(rows, columns, &["top", "--interval", "50ms", &path]);
        screen.await_text("the press");
        screen.await_text("no watchdog: lags stand still");
        assert!(screen.with(vt100::Screen::alternate_screen) && screen.is_raw());
        let rows: Vec<String> = screen.with(|screen| screen.rows(0, columns).collect());
        assert!(rows[rows.len() - 1].starts_with("q quit"), "{rows:?}");
        screen.press(b"s");
        screen.await_text("s sort (PID)");
        screen.press(b"q");
        screen.assert_left_as_it_was(0);
    }
}

#[test]
fn two_signals_at_once_leave_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    for second in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut screen = Screen::start(24, 80, &["top", &path]);
        screen.await_text("the press");
        send(screen.child.id(), Signal::TERM);
        send(screen.child.id(), second);
        screen.assert_left_as_it_was(130);
    }
}

#[test]
fn top_ends_with_its_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let (terminal, slave) = open_terminal(24, 80);
    let end = || Stdio::from(slave.try_clone().expect("the same"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_bumpless"))
        .args(["top", "--interval", "1h", &path])
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let (mut terminal, mut shown) = (terminal, Vec::new());
    // All of the first picture: the next one is due in an hour.
    while !shown.ends_with(b"1/1") {
        let mut byte = [0];
        terminal.read_exact(&mut byte).expect("a picture");
        shown.extend(byte);
    }
    drop((terminal, slave));
    let mut told = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).expect("text");
    assert_eq!(child.wait().expect("a child of ours").code(), Some(1));
    assert!(told.contains("cannot use the terminal"), "{told}");
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_is_left_alone() {
    let (_terminal, slave) = open_terminal(24, 80);
    for term in ["dumb", ""] {
        let end = || Stdio::from(slave.try_clone().expect("the same"));
        let output = Command::new(env!("CARGO_BIN_EXE_bumpless"))
            .arg("top")
            .env("TERM", term)
            .stdin(end())
            .stdout(end())
            .output()
            .expect("the program runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("bumpless status"), "{told}");
    }
}

#[test]
fn a_signal_ends_top_and_leaves_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", &path]);
    screen.await_text("the press");
    send(screen.child.id(), Signal::TERM);
    screen.assert_left_as_it_was(130);
}

#[test]
fn half_a_key_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    for half in [&b"\x1b["[..], b"\x1b[1;", b"\xc3"] {
        let mut screen = Screen::start(24, 80, &["top", "--interval", "1h", &path]);
        screen.assert_drawn_anew();
        screen.press(half);
        screen.await_so("it is read", |it| {
            ioctl_fionread(&it.slave).is_ok_and(|bytes| bytes == 0)
        });
        send(screen.child.id(), Signal::TERM);
        screen.assert_left_as_it_was(130);
    }
}

#[test]
fn a_job_that_is_told_to_stop_leaves_the_terminal_until_it_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", "--interval", "1h", &path]);
    for by_key in [false, true] {
        screen.assert_drawn_anew();
        if by_key {
            screen.press(b"\x1a");
        } else {
            send(screen.child.id(), Signal::TSTP);
        }
        screen.await_stopped();
        screen.assert_former_screen();
        screen.write_over();
        send(screen.child.id(), Signal::CONT);
        screen.round += 1;
    }
    screen.assert_drawn_anew();
    send(screen.child.id(), Signal::TERM);
    screen.assert_left_as_it_was(130);
}

#[test]
fn top_that_is_told_to_stop_and_at_once_to_go_on_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", "--interval", "1h", &path]);
    screen.assert_drawn_anew();
    for column in ["PID", "VERDICT", "LAG", "UNITS", "DEATHS", "LABEL", "SLOT"].repeat(3) {
        send(screen.child.id(), Signal::TSTP);
        send(screen.child.id(), Signal::CONT);
        screen.press(b"s");
        screen.await_text(&format!("s sort ({column})"));
        screen.round += 1;
    }
    screen.press(b"q");
    screen.assert_left_as_it_was(0);
}

#[test]
fn top_that_no_shell_could_make_go_on_is_not_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut command = Command::new("setsid");
    let tool = env!("CARGO_BIN_EXE_bumpless");
    command.args([tool, "top", "--interval", "1h", &path]);
    let mut screen = Screen::of(24, 80, command);
    screen.assert_drawn_anew();
    send(screen.child.id(), Signal::TSTP);
    screen.press(b"s");
    screen.await_text("s sort (PID)");
    screen.press(b"\x1as");
    screen.await_text("s sort (VERDICT)");
    screen.press(b"q");
    screen.assert_left_as_it_was(0);
}

#[test]
fn who_was_stopped_without_being_asked_makes_the_terminal_its_own_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", "--interval", "1h", &path]);
    screen.assert_drawn_anew();
    let raw = tcgetattr(&screen.slave).expect("a terminal");
    send(screen.child.id(), Signal::STOP);
    screen.await_stopped();
    // What a shell does.
    let mut modes = raw.clone();
    modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO;
    tcsetattr(&screen.slave, OptionalActions::Now, &modes).expect("modes");
    screen.write_over();
    send(screen.child.id(), Signal::CONT);
    screen.assert_drawn_anew();
    screen.press(b"q");
    screen.assert_left_as_it_was(0);
}
