//! The children's side: what a role does.

use std::path::Path;

use anyhow::{Result, bail};

use super::{floor, seen, work};

/// Plays the role in the measurement that has its table there. Returns when it is over.
///
/// # Errors
/// No such role, or what the role found wrong.
pub fn play(role: &str, table: &Path) -> Result<()> {
    match role {
        "watch" => seen::watch(table),
        "work" => work::work(table),
        "pong" => floor::pong(table),
        "echo" => floor::echo(table),
        _ => bail!("no role `{role}`"),
    }
}
