//! `top` in a real terminal: what is on the screen, and how the terminal is left.

mod screen;

use std::io::Read;
use std::process::{Command, Stdio};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::rig::send;
use screen::{Screen, open_terminal};

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
fn top_that_looks_all_the_time_hears_keys_and_signals() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    for by_key in [false, true] {
        let mut screen = Screen::start(24, 80, &["top", "--interval", "0.000001ms", &path]);
        screen.await_text("the press");
        if by_key {
            screen.press(b"q");
        } else {
            send(screen.child.id(), Signal::TERM);
        }
        screen.assert_left_as_it_was(if by_key { 0 } else { 130 });
    }
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
