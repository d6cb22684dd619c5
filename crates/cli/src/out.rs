//! Standard output, whose reader may have gone.

use std::io::Write;

/// Writes to standard output. Whoever reads it may have had enough: that is no error.
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}
