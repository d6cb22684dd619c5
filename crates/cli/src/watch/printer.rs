//! The thread that writes the lines, so that a reader who does not read stalls no scan.
//!
//! Contract: lines are written in the order in which they were said, each whole before its verdict is
//! acknowledged. When standard output fails, nothing more is written or acknowledged. A reader that takes
//! nothing costs no more memory than for [`WAITING_MAX`] lines, and for those that acknowledge: more are left
//! out, and counted.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bumpless_failover::SlotRef;

/// Lines that wait for their reader.
pub const WAITING_MAX: usize = 1 << 16;

/// A line, and the verdict to acknowledge when it is written.
#[derive(Debug)]
struct Said {
    line: String,
    then: Option<SlotRef>,
    /// Lines that were left out before it.
    left_out: u64,
}

/// Where lines are said.
#[derive(Debug, Clone)]
pub struct Printer {
    lines: Sender<Said>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Where they are taken from.
#[derive(Debug)]
pub struct Lines {
    said: Receiver<Said>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: usize,
    left_out: u64,
}

impl Printer {
    /// A printer, and the lines, to be written by [`print()`].
    #[must_use]
    pub fn new() -> (Self, Lines) {
        let (lines, said) = channel();
        let waiting = Arc::default();
        let taken = Lines {
            said,
            waiting: Arc::clone(&waiting),
        };
        (Self { lines, waiting }, taken)
    }

    /// Says a line; `then` is acknowledged when it is written.
    pub fn say(&self, line: String, then: Option<SlotRef>) {
        let mut waiting = lock(&self.waiting);
        if waiting.lines >= WAITING_MAX && then.is_none() {
            waiting.left_out += 1;
            return;
        }
        waiting.lines += 1;
        let left_out = std::mem::take(&mut waiting.left_out);
        let said = Said {
            line,
            then,
            left_out,
        };
        // Nobody listens when standard output has failed: that ends the watch.
        let _ = self.lines.send(said);
    }
}

/// Numbers that are true whoever panicked.
fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes lines to `out` until no [`Printer`] is left. `acknowledge` may have a line to add; `left_out` says how
/// many there are not.
///
/// # Errors
/// What the system said.
pub fn print(
    lines: &Lines,
    mut out: impl Write,
    acknowledge: impl Fn(SlotRef) -> Option<String>,
    left_out: impl Fn(u64) -> String,
) -> std::io::Result<()> {
    let mut write = |mut line: String| {
        line.push('\n');
        out.write_all(line.as_bytes())?;
        out.flush()
    };
    for said in &lines.said {
        lock(&lines.waiting).lines -= 1;
        if said.left_out > 0 {
            write(left_out(said.left_out))?;
        }
        write(said.line)?;
        if let Some(more) = said.then.and_then(&acknowledge) {
            write(more)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_left_out_in_the_end_and_how_much_is_told_in_its_place() {
        let (printer, lines) = Printer::new();
        for number in 0..WAITING_MAX + 3 {
            printer.say(number.to_string(), None);
        }
        let taken = lines.said.recv().unwrap();
        assert_eq!(taken.line, "0");
        lock(&lines.waiting).lines -= 1;
        printer.say("after".to_owned(), None);
        printer.say("too much again".to_owned(), None);
        drop(printer);
        let mut out = Vec::new();
        let told = |lines| format!("{lines} left out");
        print(&lines, &mut out, |_| None, told).unwrap();
        let text = String::from_utf8(out).unwrap();
        let all: Vec<&str> = text.lines().collect();
        let last = (WAITING_MAX - 1).to_string();
        let end = [last.as_str(), "3 left out", "after"];
        assert_eq!(all.first(), Some(&"1"));
        assert!(all.ends_with(&end), "{:?}", all.last());
    }
}
