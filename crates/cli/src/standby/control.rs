//! Orders to a running node: a socket in its state folder, one line in, one line back.
//!
//! The node looks once per cycle and never waits: an order is a datagram, and so is the answer.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bumpless_standby::Command;

use super::error::StandbyError;

/// An answer takes a cycle, which is at most a second.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The node's end.
#[derive(Debug)]
pub struct Orders {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Orders {
    /// Opens the socket in the state folder; one that a dead node left is replaced.
    pub fn open(state_dir: &Path) -> Result<Self, StandbyError> {
        let path = path_in(state_dir);
        let failed = |error| StandbyError::File {
            doing: "open",
            path: path.clone(),
            error,
        };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self { socket, path })
    }

    /// Carries out the order that has come, if one has.
    pub fn obey(&self, mut carry_out: impl FnMut(Command) -> Result<(), String>) {
        let mut line = [0; 64];
        let Ok((len, sender)) = self.socket.recv_from(&mut line) else {
            return;
        };
        let answer = match std::str::from_utf8(&line[..len]).ok().and_then(parse) {
            Some(command) => carry_out(command).map_or_else(|why| why, |()| "ok".to_owned()),
            None => "unknown order".to_owned(),
        };
        if let Some(address) = sender.as_pathname() {
            // Who does not wait for the answer does not get it.
            let _ = self.socket.send_to(answer.as_bytes(), address);
        }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Gives an order to the node of this state folder, and waits for its answer.
pub fn order(state_dir: &Path, word: &str) -> Result<(), StandbyError> {
    let path = path_in(state_dir);
    let failed = |doing| {
        let path = path.clone();
        move |error| StandbyError::File { doing, path, error }
    };
    let own = state_dir.join(format!("order-{}", std::process::id()));
    let socket = UnixDatagram::bind(&own).map_err(failed("answer from"))?;
    let answer = ask(&socket, &path, word).map_err(failed("order"));
    let _ = std::fs::remove_file(&own);
    match answer?.as_str() {
        "ok" => Ok(()),
        why => Err(StandbyError::Refused(why.to_owned())),
    }
}

fn ask(socket: &UnixDatagram, path: &Path, word: &str) -> io::Result<String> {
    socket.set_read_timeout(Some(ANSWER_LIMIT))?;
    socket.send_to(word.as_bytes(), path)?;
    let asked = Instant::now();
    let mut answer = [0; 512];
    loop {
        match socket.recv(&mut answer) {
            Ok(len) => return Ok(String::from_utf8_lossy(&answer[..len]).into_owned()),
            // Stopped, or frozen, and continued: the order was given.
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted && asked.elapsed() < ANSWER_LIMIT => {
            }
            Err(error) => return Err(error),
        }
    }
}

fn path_in(state_dir: &Path) -> PathBuf {
    state_dir.join("orders")
}

fn parse(word: &str) -> Option<Command> {
    Some(match word {
        "switch-over" => Command::SwitchOver,
        "test-switch" => Command::TestSwitch,
        "leave" => Command::Leave,
        "promote" => Command::Promote,
        "enter-maintenance" => Command::EnterMaintenance,
        "leave-maintenance" => Command::LeaveMaintenance,
        "hold-sync" => Command::HoldSync(true),
        "release-sync" => Command::HoldSync(false),
        "clear-alarms" => Command::ClearAlarms,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Subcommand;

    use super::*;
    use crate::standby::What;

    #[test]
    fn every_order_of_a_node_is_a_command_of_the_tool() {
        let tool = What::augment_subcommands(clap::Command::new("standby"));
        let words: Vec<&str> = tool
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let orders: HashSet<_> = words.into_iter().filter_map(parse).collect();
        assert_eq!(orders.len(), 9, "{orders:?}");
    }
}
