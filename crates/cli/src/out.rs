//! Standard output, whose reader may have gone.

use std::io::Write;

/// Writes to standard output. Whoever reads it may have had enough: that is no error.
pub fn out(text: &str) {
    try_out(text);
}

/// As [`out`]; whether somebody may still be reading.
pub fn try_out(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).is_ok() && stdout.flush().is_ok()
}
