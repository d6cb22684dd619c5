//! Keys, from the bytes that a terminal sends for them.
//!
//! ```text
//!   ground ── ESC ─▶ escape ── [ ─▶ sequence ── parameters … a letter or ~ ─▶ ground: a key, or none
//!     ▲                │ └──── O ─▶ application ── a letter ────────────────▶ ground: a key, or none
//!     └────────────────┴── nothing follows: the key Escape
//! ```
//! Contract: never waits longer than told, whatever is sent, and however it is cut: no call reads more than the
//! terminal has, see `terminal::enter`. What is no key of ours is nothing.
//!
//! Why not the terminal library's reader (crossterm 0.29): it reads until it has a whole key, so that half of one
//! keeps it in a read that no signal ends.

use std::io::{Error, Result, stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What can be pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Letter(char),
    Escape,
    Tab,
    Up,
    Down,
    PageUp,
    PageDown,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Pause,
}

/// Where in a key's bytes we are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// With its first parameter.
    Sequence(u32),
    /// After the first parameter.
    Rest(u32),
    Application,
}

/// The keys of the standard input.
#[derive(Debug, Default)]
pub struct Keyboard(State);

impl Keyboard {
    /// The keys that were pressed, as soon as there are some, `other` has input, a signal comes or the time is
    /// over.
    ///
    /// # Errors
    /// The terminal is gone, or cannot be read.
    pub fn wait(&mut self, limit: Duration, other: &impl AsFd) -> Result<Vec<Key>> {
        let stdin = stdin();
        let mut ends = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(other, PollFlags::IN),
        ];
        let limit = Timespec::try_from(limit).unwrap_or_default();
        match poll(&mut ends, Some(&limit)) {
            Ok(0) => return Ok(self.nothing_follows().into_iter().collect()),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let found = ends[0].revents();
        if found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(Error::other("it is gone"));
        }
        let mut bytes = [0; 1024];
        let mut length = 0;
        if found.contains(PollFlags::IN) {
            length = match rustix::io::read(&stdin, &mut bytes) {
                Ok(length) => length,
                Err(Errno::INTR | Errno::AGAIN) => 0,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.keys_of(&bytes[..length]))
    }

    fn keys_of(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.next(*byte)).collect()
    }

    /// An escape that nothing follows is the key; a sequence that does not go on is none.
    fn nothing_follows(&mut self) -> Option<Key> {
        (std::mem::take(&mut self.0) == State::Escape).then_some(Key::Escape)
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        let before = std::mem::take(&mut self.0);
        match (before, byte) {
            (_, 0x1b) => {
                self.0 = State::Escape;
                (before == State::Escape).then_some(Key::Escape)
            }
            // In all states: who presses them means them.
            (_, 0x03) => Some(Key::Interrupt),
            (_, 0x1a) => Some(Key::Pause),
            (State::Ground, b'\t') => Some(Key::Tab),
            (State::Ground, b' '..=b'~') => Some(Key::Letter(char::from(byte))),
            (State::Escape, b'[') => {
                self.0 = State::Sequence(0);
                None
            }
            (State::Escape, b'O') => {
                self.0 = State::Application;
                None
            }
            (State::Sequence(number), b'0'..=b'9') => {
                let digit = u32::from(byte - b'0');
                self.0 = State::Sequence(number.saturating_mul(10).saturating_add(digit));
                None
            }
            (State::Sequence(number) | State::Rest(number), b' '..=b'?') => {
                self.0 = State::Rest(number);
                None
            }
            (State::Sequence(_) | State::Rest(_) | State::Application, b'A') => Some(Key::Up),
            (State::Sequence(_) | State::Rest(_) | State::Application, b'B') => Some(Key::Down),
            (State::Sequence(5) | State::Rest(5), b'~') => Some(Key::PageUp),
            (State::Sequence(6) | State::Rest(6), b'~') => Some(Key::PageDown),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of these bytes, and of what is left when nothing follows.
    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keyboard = Keyboard::default();
        let mut keys = keyboard.keys_of(bytes);
        keys.extend(keyboard.nothing_follows());
        assert_eq!(keyboard.0, State::Ground);
        keys
    }

    #[test]
    fn each_key_is_known_by_its_bytes() {
        let letters = keys(b"sq~ ");
        assert_eq!(letters, ['s', 'q', '~', ' '].map(Key::Letter));
        assert_eq!(keys(b"\t\x03\x1a"), [Key::Tab, Key::Interrupt, Key::Pause]);
        assert_eq!(keys(b"\x1b[A\x1b[B"), [Key::Up, Key::Down]);
        assert_eq!(keys(b"\x1bOA\x1bOB"), [Key::Up, Key::Down]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~"), [Key::PageUp, Key::PageDown]);
        // With shift or ctrl.
        assert_eq!(keys(b"\x1b[1;5A\x1b[5;2~"), [Key::Up, Key::PageUp]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b\x1b"), [Key::Escape, Key::Escape]);
    }

    #[test]
    fn what_is_no_key_of_ours_is_nothing_and_harms_no_key_after_it() {
        for bytes in [
            &b"\x1b[C"[..],
            b"\x1b[15~",
            b"\x1b[99999999999~",
            b"\x1b[<0;3;4M",
            b"\x1b[?1;2c",
            b"\x1bq",
            b"\x1bOP",
            "ä".as_bytes(),
            b"\xff\x00\x7f",
        ] {
            assert_eq!(keys(bytes), [], "{bytes:?}");
            let and_one = [bytes, b"s"].concat();
            assert_eq!(keys(&and_one), [Key::Letter('s')], "{bytes:?}");
        }
    }

    #[test]
    fn a_key_may_come_in_parts_and_one_that_does_not_go_on_is_none() {
        let whole = b"s\x1b[A\x1b[6~\x1bOBq";
        let expected = keys(whole);
        for cut in 0..=whole.len() {
            let mut keyboard = Keyboard::default();
            let mut found = keyboard.keys_of(&whole[..cut]);
            found.extend(keyboard.keys_of(&whole[cut..]));
            assert_eq!(found, expected, "{cut}");
        }
        for begun in [&b"\x1b["[..], b"\x1b[5", b"\x1b[5;", b"\x1bO", b"\xc3"] {
            let mut keyboard = Keyboard::default();
            assert_eq!(keyboard.keys_of(begun), []);
            assert_eq!(keyboard.nothing_follows(), None);
            assert_eq!(keyboard.keys_of(b"q"), [Key::Letter('q')]);
        }
    }
}
