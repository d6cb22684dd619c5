//! An authority that may take its time: it answers from a thread of its own, so that no cycle waits for
//! a disk.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::authority::{Authority, AuthorityError};
use crate::epoch::{Epoch, NodeId};
use crate::message::Grant;

/// An authority behind a thread. The thread ends with it.
#[derive(Debug)]
pub struct Background {
    questions: Sender<(NodeId, Epoch)>,
    answers: Receiver<Result<Grant, AuthorityError>>,
    awaits: bool,
}

impl Background {
    /// Moves `authority` to its thread.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn spawn(mut authority: impl Authority + Send + 'static) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        thread::Builder::new()
            .name("standby-authority".to_owned())
            .spawn(move || {
                for (node, above) in asked {
                    authority.want(node, above);
                    if let Some(granted) = authority.poll()
                        && answer.send(granted).is_err()
                    {
                        return;
                    }
                }
            })?;
        Ok(Self {
            questions,
            answers,
            awaits: false,
        })
    }
}

impl Authority for Background {
    fn want(&mut self, node: NodeId, above: Epoch) {
        if !self.awaits {
            self.awaits = self.questions.send((node, above)).is_ok();
        }
    }

    fn poll(&mut self) -> Option<Result<Grant, AuthorityError>> {
        let answer = self.answers.try_recv().ok()?;
        self.awaits = false;
        Some(answer)
    }
}
