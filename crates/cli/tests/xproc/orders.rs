//! Orders to a node of a standby pair, as the tool's commands give them: one datagram, and one back.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::pair::LIMIT;

/// The answer to an order, given from `own` to `to`.
pub fn answer_to(word: &str, to: &Path, own: &Path) -> String {
    let _ = std::fs::remove_file(own);
    let socket = UnixDatagram::bind(own).expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
    socket.send_to(word.as_bytes(), to).expect("sent");
    let mut answer = [0; 512];
    let len = loop {
        match socket.recv(&mut answer) {
            // Frozen, with the machine, and gone on.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => break received.expect("an answer"),
        }
    };
    String::from_utf8_lossy(&answer[..len]).into_owned()
}
