//! A program in a terminal of its own, and what is to be seen there.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::rig::{await_of, process, status_of};

/// The tool in a terminal of its own.
pub struct Screen {
    pub child: Child,
    /// Of those that a test repeats; told when it fails.
    pub round: usize,
    keyboard: File,
    pub slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    pub fn start(rows: u16, columns: u16, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        // A job of its own: what stops it must not stop the test.
        command.args(arguments).process_group(0);
        Self::of(rows, columns, command)
    }

    pub fn of(rows: u16, columns: u16, mut command: Command) -> Self {
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

    pub fn with<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.parser.lock().expect("no panic").screen())
    }

    /// Waits until it is so; fails with all that is known of the program and its terminal.
    #[track_caller]
    pub fn await_so(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        await_of(self, what, |it| is_so(it), Self::told);
    }

    fn told(&mut self) -> String {
        let ended = self.child.try_wait();
        let state = status_of(self.child.id());
        let modes = tcgetattr(self.slave.as_fd()).map(|modes| modes.local_modes);
        let screen = self.with(|screen| {
            let (is_other, is_hidden) = (screen.alternate_screen(), screen.hide_cursor());
            let text = screen.contents();
            format!("alternate screen {is_other}, cursor hidden {is_hidden}:\n{text}")
        });
        let round = self.round;
        format!(": round {round}; ended {ended:?}; {state:?}; modes {modes:?}; {screen}")
    }

    #[track_caller]
    pub fn await_text(&mut self, text: &str) {
        self.await_so(text, |it| {
            it.with(|screen| screen.contents().contains(text))
        });
    }

    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.slave.as_fd())
            .expect("a terminal")
            .local_modes;
        !modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    #[track_caller]
    pub fn await_stopped(&mut self) {
        self.await_so("stopped", |it| {
            process(it.child.id()).is_some_and(|found| found.state == 'T')
        });
    }

    /// As whoever has the terminal meanwhile does.
    #[track_caller]
    pub fn write_over(&mut self) {
        self.slave.write_all(b"\x1b[2J$ ls").expect("a terminal");
        self.await_so("written over", |it| {
            it.with(|screen| screen.contents().contains("$ ls"))
        });
    }

    #[track_caller]
    pub fn assert_drawn_anew(&mut self) {
        self.await_text("the press");
        self.await_text("q quit");
        let is_drawn = !self.with(|screen| screen.contents().contains("$ ls"))
            && self.with(vt100::Screen::alternate_screen)
            && self.is_raw();
        assert!(is_drawn, "{}", self.told());
    }

    #[track_caller]
    pub fn assert_former_screen(&mut self) {
        self.await_so("the former screen is back, with its cursor", |it| {
            it.with(|screen| !screen.alternate_screen() && !screen.hide_cursor())
        });
        assert!(!self.is_raw(), "{}", self.told());
    }

    /// After the program has ended.
    #[track_caller]
    pub fn assert_left_as_it_was(&mut self, code: i32) {
        self.await_so("ended", |it| process(it.child.id()).is_none());
        let status = self.child.wait().expect("a child of ours");
        assert_eq!(status.code(), Some(code), "{}", self.told());
        self.assert_former_screen();
    }

    #[track_caller]
    pub fn press(&mut self, keys: &[u8]) {
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
pub fn open_terminal(rows: u16, columns: u16) -> (File, File) {
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
