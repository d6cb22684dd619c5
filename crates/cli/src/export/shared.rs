//! One look for all who ask before it begins.
//!
//! ```text
//!   ask ──▶ in line ── all who are in it by now ──▶ look ──▶ its text to each of them
//!                                                     └─ who asks meanwhile is in line for the next one
//! ```
//! Contract: who asks gets what a look found that began after they asked. Looks are taken by one thread, one at
//! a time: so nobody waits for more than the one that runs and the one that follows, however many ask, and
//! the memory that a look at a large table takes is taken once, not by each thread that serves.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Where to ask.
#[derive(Debug)]
pub struct Shared(Sender<Sender<Arc<str>>>);

impl Shared {
    /// Looks in a thread of its own, which ends when nobody can ask any more.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn new(mut look: impl FnMut() -> String + Send + 'static) -> std::io::Result<Self> {
        let (line, asked) = channel::<Sender<Arc<str>>>();
        thread::Builder::new().spawn(move || {
            while let Ok(first) = asked.recv() {
                let others: Vec<_> = asked.try_iter().collect();
                let text: Arc<str> = look().into();
                for one in std::iter::once(first).chain(others) {
                    // Who has gone needs no answer.
                    let _ = one.send(Arc::clone(&text));
                }
            }
        })?;
        Ok(Self(line))
    }

    /// What the next look finds; none when no more are taken.
    pub fn ask(&self) -> Option<Arc<str>> {
        self.stand_in_line().recv().ok()
    }

    fn stand_in_line(&self) -> Receiver<Arc<str>> {
        let (to, answer) = channel();
        // If nobody listens, the end of the answer tells so.
        let _ = self.0.send(to);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_ask_while_somebody_looks_share_the_next_look() {
        let (begun, has_begun) = channel();
        let (end, may_end) = channel();
        let mut looks = 0;
        let shared = Shared::new(move || {
            looks += 1;
            begun.send(()).unwrap();
            may_end.recv().unwrap();
            looks.to_string()
        });
        let shared = shared.unwrap();
        let first = shared.stand_in_line();
        has_begun.recv().unwrap();
        let others: Vec<_> = (0..20).map(|_| shared.stand_in_line()).collect();
        end.send(()).unwrap();
        assert_eq!(&*first.recv().unwrap(), "1");
        has_begun.recv().unwrap();
        let late = shared.stand_in_line();
        end.send(()).unwrap();
        for other in others {
            assert_eq!(&*other.recv().unwrap(), "2");
        }
        end.send(()).unwrap();
        assert_eq!(&*late.recv().unwrap(), "3");
        // One that cannot be finished leaves nobody waiting.
        drop(end);
        assert_eq!(shared.ask(), None);
        assert_eq!(shared.ask(), None);
    }
}
