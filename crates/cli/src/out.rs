//! Standard output and error, whose readers may have gone.
//!
//! Contract: nothing here panics, whatever becomes of the two. That nobody reads any more is no error; that
//! something could not be written, as to a full disk, is one. Messages change nothing on a terminal but its
//! text.

use std::io::{BufWriter, ErrorKind, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;
use serde::Serialize;

use crate::patient::Patient;

/// A message on standard error. That nobody can read it is no reason to end.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::out::message(&format!($($words)*))
    };
}

/// Writes to standard output; whether all was written, or nobody wants it. If not, why is told, in the name
/// of the command.
#[must_use]
pub fn out(command: &str, text: &str) -> bool {
    is_written(command, print(text))
}

/// As [`out`], one line of JSON, which never lies whole in memory.
#[must_use]
pub fn out_json(command: &str, value: &impl Serialize) -> bool {
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer(&mut stdout, value).map_err(std::io::Error::from);
    let written = written.and_then(|()| writeln!(stdout));
    is_written(
        command,
        written.and_then(|()| stdout.flush()).or_else(unread),
    )
}

/// As [`out`]; a reader that takes nothing is not waited for long once the end is asked for.
#[must_use]
pub fn out_until(command: &str, text: &str, is_end_asked: impl Fn() -> bool) -> bool {
    let written = Patient::until(is_end_asked).write_all(text.as_bytes());
    is_written(command, written.or_else(unread))
}

fn is_written(command: &str, written: std::io::Result<()>) -> bool {
    if let Err(error) = &written {
        tell!("bumpless {command}: cannot write to standard output: {error}");
    }
    written.is_ok()
}

/// That nobody reads any more is no error.
fn unread(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(error)
}

/// Writes to standard output, unless nobody reads it any more.
///
/// # Errors
/// What the system said.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written.and_then(|()| stdout.flush()).or_else(unread)
}

/// What [`tell!`] does. Names in messages are chosen by others, and may hold what a terminal obeys.
pub fn message(text: &str) {
    let _ = std::io::stderr().write_all(line_of(text).as_bytes());
}

/// As [`message`], of somebody who has no time: is lost when its reader does not keep up.
pub fn message_in_passing(text: &str) {
    let stderr = std::io::stderr();
    let mut ends = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec::default();
    if poll(&mut ends, Some(&at_once)).is_ok_and(|ready| ready > 0) {
        let line = line_of(text);
        // So much fits a pipe that has room.
        let start = line.as_bytes().get(..PIPE_BUF).unwrap_or(line.as_bytes());
        let _ = rustix::io::write(&stderr, start);
    }
}

fn line_of(text: &str) -> String {
    let mut line: String = text.split('\n').map(plain).collect::<Vec<_>>().join("\n");
    line.push('\n');
    line
}

/// On one line, and without anything that a terminal would obey: control characters are escaped.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            plain.extend(letter.escape_default());
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_is_as_it_was() {
        assert_eq!(plain("größe ▲ \\ \"x\""), "größe ▲ \\ \"x\"");
        assert_eq!(plain("a\nb\u{1b}[31m\u{9b}"), "a\\nb\\u{1b}[31m\\u{9b}");
    }
}
