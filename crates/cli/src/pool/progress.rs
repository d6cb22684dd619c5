//! What the user sees on the way: a bar if standard error is a terminal, and messages.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::ledger::Ledger;

/// The bar, hidden unless standard error is a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows an empty bar.
    #[must_use]
    pub fn start() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{elapsed_precise} {wide_bar} {human_pos}/{human_len} files {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Self { bar }
    }

    /// How far it is.
    pub fn show(&self, ledger: &Ledger, message: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_length(ledger.files());
            self.bar.set_position(ledger.accepted() + ledger.failed());
            self.bar.set_message(message());
        }
    }

    /// Says something.
    pub fn say(&self, message: &str) {
        self.bar.suspend(|| tell!("bumpless: {message}"));
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
