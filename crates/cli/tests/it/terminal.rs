//! `top` in a real terminal: what is on the screen, and how the terminal is left.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::rig::{await_that, send};

/// The tool in a terminal of its own.
struct Screen {
    child: Child,
    keyboard: File,
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    fn start(rows: u16, columns: u16, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let name = name.into_string().expect("text");
        let open = || OpenOptions::new().read(true).write(true).open(&name);
        let slave = open().expect("its other end");
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).expect("a size");
        let end = || Stdio::from(open().expect("its other end"));
        let child = Command::new(env!("CARGO_BIN_EXE_bumpless"))
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program runs");
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let keyboard = File::from(master);
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
fn a_signal_ends_top_and_leaves_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _table) = table(&folder);
    let mut screen = Screen::start(24, 80, &["top", &path]);
    screen.await_text("the press");
    send(screen.child.id(), Signal::TERM);
    screen.assert_left_as_it_was(130);
}
