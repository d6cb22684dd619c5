//! The thread that writes the lines, so that a reader who does not read stalls no scan.
//!
//! Contract: lines are written in the order in which they were said, each whole before its verdict is
//! acknowledged. When standard output fails, nothing more is written or acknowledged.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};

use bumpless_failover::SlotRef;

/// A line, and the verdict to acknowledge when it is written.
#[derive(Debug)]
pub struct Said {
    line: String,
    then: Option<SlotRef>,
}

/// Where lines are said.
#[derive(Debug, Clone)]
pub struct Printer(Sender<Said>);

impl Printer {
    /// A printer, and the lines, to be written by [`print()`].
    #[must_use]
    pub fn new() -> (Self, Receiver<Said>) {
        let (sender, said) = channel();
        (Self(sender), said)
    }

    /// Says a line; `then` is acknowledged when it is written.
    pub fn say(&self, line: String, then: Option<SlotRef>) {
        // Nobody listens when standard output has failed: that ends the watch.
        let _ = self.0.send(Said { line, then });
    }
}

/// Writes lines to `out` until no [`Printer`] is left. `acknowledge` may have a line to add.
///
/// # Errors
/// What the system said.
pub fn print(
    said: &Receiver<Said>,
    mut out: impl Write,
    acknowledge: impl Fn(SlotRef) -> Option<String>,
) -> std::io::Result<()> {
    for Said { mut line, then } in said {
        line.push('\n');
        out.write_all(line.as_bytes())?;
        out.flush()?;
        if let Some(mut more) = then.and_then(&acknowledge) {
            more.push('\n');
            out.write_all(more.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}
