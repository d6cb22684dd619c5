//! `top` in a real terminal: what is on the screen, and how the terminal is left.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::rig::{await_that, process, send};

/// The tool in a terminal of its own.
struct Screen {
    child: Child,
    keyboard: File,
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    fn start(rows: u16, columns: u16, arguments: &[&str]) -> Self {
        let (keyboard, slave) = open_terminal(rows, columns);
        let end = || Stdio::from(slave.try_clone().expect("the same"));
        let child = Command::new(env!("CARGO_BIN_EXE_bumpless"))
            .args(arguments)
            // A job of its own: what stops it must not stop the test.
            .process_group(0)
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
            keyboard,
            slave,
            parser,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.parser.lock().expect("no panic").screen())
    }

    fn await_text(&self, text: &str) {
        await_that(text, || {
            self.with(|screen| screen.contents().contains(text))
        });
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.slave.as_fd())
            .expect("a terminal")
            .local_modes;
        !modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn await_stopped(&self) {
        await_that("stopped", || {
            process(self.child.id()).is_some_and(|found| found.state == 'T')
        });
    }

    /// As whoever has the terminal meanwhile does.
    fn write_over(&mut self) {
        self.slave.write_all(b"\x1b[2J$ ls").expect("a terminal");
        await_that("written over", || {
            self.with(|screen| !screen.contents().contains("the press"))
        });
    }

    fn assert_drawn_anew(&self) {
        self.await_text("the press");
        self.await_text("q quit");
        assert!(!self.with(|screen| screen.contents().contains("$ ls")));
        assert!(self.with(vt100::Screen::alternate_screen) && self.is_raw());
    }

    /// After the program has ended.
    fn assert_left_as_it_was(&mut self, code: i32) {
        let status = self.child.wait().expect("a child of ours");
        assert_eq!(status.code(), Some(code));
        await_that("the former screen is back, with its cursor", || {
            self.with(|screen| !screen.alternate_screen() && !screen.hide_cursor())
        });
        assert!(!self.is_raw());
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
    let slave = OpenOptions::new().read(true).write(true).open(&name);
    let slave = slave.expect("its other end");
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
        screen.keyboard.write_all(b"s").expect("a key");
        screen.await_text("s sort (PID)");
        screen.keyboard.write_all(b"q").expect("a key");
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
fn a_job_that_is_told_to_stop_leaves_the_terminal_until_it_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", "--interval", "1h", &path]);
    for by_key in [false, true] {
        screen.assert_drawn_anew();
        if by_key {
            screen.keyboard.write_all(b"\x1a").expect("a key");
        } else {
            send(screen.child.id(), Signal::TSTP);
        }
        screen.await_stopped();
        assert!(!screen.is_raw());
        await_that("the former screen is back, with its cursor", || {
            screen.with(|screen| !screen.alternate_screen() && !screen.hide_cursor())
        });
        screen.write_over();
        send(screen.child.id(), Signal::CONT);
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
    for column in ["PID", "VERDICT", "LAG", "UNITS", "DEATHS", "LABEL", "SLOT"] {
        send(screen.child.id(), Signal::TSTP);
        send(screen.child.id(), Signal::CONT);
        screen.keyboard.write_all(b"s").expect("a key");
        screen.await_text(&format!("s sort ({column})"));
    }
    screen.keyboard.write_all(b"q").expect("a key");
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
    screen.keyboard.write_all(b"q").expect("a key");
    screen.assert_left_as_it_was(0);
}
