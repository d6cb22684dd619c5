//! The measuring program and what it says.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program with these options.
pub fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless-benches"));
    command.args(words).stdin(Stdio::null());
    command
}

/// What it says with `--json`.
pub fn measured(words: &[&str]) -> Value {
    let output = program(&[&["--json"], words].concat()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// All that it said.
pub fn text(output: &Output) -> String {
    let words = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", words(&output.stdout), words(&output.stderr))
}
