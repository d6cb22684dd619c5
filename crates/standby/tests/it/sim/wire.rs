//! Messages as the bytes they are on a wire, with errors in them.

use bumpless_standby::frame::{
    Frame, Value, decode, encode_fragment, encode_heartbeat, encode_reply, encode_request,
};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::net::Message;

/// A wire that flips bits.
#[derive(Debug, Default)]
pub struct Wire {
    /// Chance of each frame between the nodes to have a few bits wrong.
    sync_error: f64,
    /// The same, to and from the actuator.
    actuator_error: f64,
    /// Frames that their receiver refused.
    pub refused: u64,
    bytes: Vec<u8>,
}

impl Wire {
    pub fn with_errors(sync_error: f64, actuator_error: f64) -> Self {
        Self {
            sync_error,
            actuator_error,
            ..Self::default()
        }
    }

    /// What arrives of a message; `None` if its frame is refused.
    pub fn pass<V: Value>(
        &mut self,
        message: Message<V>,
        rng: &mut Pcg64Mcg,
    ) -> Option<Message<V>> {
        self.bytes.clear();
        match &message {
            Message::Heartbeat { heartbeat, .. } => encode_heartbeat(heartbeat, &mut self.bytes),
            Message::Fragment { fragment, .. } => encode_fragment(fragment, &mut self.bytes),
            Message::Request(request) => encode_request(request, &mut self.bytes),
            Message::Reply { reply, .. } => encode_reply(reply, &mut self.bytes),
        }
        let error = match &message {
            Message::Heartbeat { .. } | Message::Fragment { .. } => self.sync_error,
            Message::Request(_) | Message::Reply { .. } => self.actuator_error,
        };
        if error > 0.0 && rng.random_bool(error) {
            for _ in 0..rng.random_range(1..=3) {
                let index = rng.random_range(0..self.bytes.len());
                self.bytes[index] ^= 1 << rng.random_range(0..8);
            }
        }
        let arrived = match (message, decode(&self.bytes)) {
            (Message::Heartbeat { to, path, .. }, Ok(Frame::Heartbeat(heartbeat))) => {
                Some(Message::Heartbeat {
                    to,
                    path,
                    heartbeat,
                })
            }
            (Message::Fragment { to, path, .. }, Ok(Frame::Fragment(fragment))) => {
                Some(Message::Fragment { to, path, fragment })
            }
            (Message::Request(_), Ok(Frame::Request(request))) => Some(Message::Request(request)),
            (Message::Reply { to, .. }, Ok(Frame::Reply(reply))) => {
                Some(Message::Reply { to, reply })
            }
            _ => None,
        };
        self.refused += u64::from(arrived.is_none());
        arrived
    }
}
