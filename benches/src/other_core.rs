//! Work on another core, beside which a batch is done.
//!
//! Contract: only batches count during which the other core did its work without a pause. Where other programs
//! want the cores, too, either of the two may be kept waiting for milliseconds; what is measured then is a batch
//! that nothing stood beside, and it is done again.
//!
//! ```text
//!   other core   waits, spinning ──▶ turns ────────────────────────────▶ waits
//!   this core                        two turns seen ─ batch ─ enough of them? ─▶ its time, or once more
//! ```
//!
//! Relaxed: two flags and a counter, of which nothing is read through them.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::pair::Batch;

/// Turns that take longer did not have their core: 63 beats of lines that another core reads take 6,000, and
/// who is kept waiting by another program waits for millions.
const TURN_NS_MAX: f64 = 20_000.0;
/// How long a batch is done again and again.
const PATIENCE: Duration = Duration::from_secs(30);

/// What another core does, turn after turn.
#[derive(Debug, Default)]
pub struct OtherCore {
    works: AtomicBool,
    ends: AtomicBool,
    turns: AtomicU64,
}

/// Does `measurement` while another thread is there to do `turn`.
///
/// # Errors
/// Those of the measurement.
pub fn with_other_core(
    mut turn: impl FnMut() + Send,
    measurement: impl FnOnce(&OtherCore) -> Result<()>,
) -> Result<()> {
    let core = OtherCore::default();
    thread::scope(|threads| {
        threads.spawn(|| {
            while !core.ends.load(Relaxed) {
                if core.works.load(Relaxed) {
                    turn();
                    core.turns.fetch_add(1, Relaxed);
                } else {
                    // Stands still, but stays on its core: waking it would be part of the batch.
                    spin_loop();
                }
            }
        });
        let measured = measurement(&core);
        core.ends.store(true, Relaxed);
        measured
    })
}

impl OtherCore {
    /// The batch, while the other core works.
    ///
    /// # Errors
    /// Those of the batch; the other core never worked beside it.
    pub fn beside(&self, batch: &mut Batch, times: u64) -> Result<f64> {
        let started = Instant::now();
        self.works.store(true, Relaxed);
        let mut found = None;
        while found.is_none() && started.elapsed() < PATIENCE {
            if self.works_now() {
                let began = self.turns.load(Relaxed);
                let ns = batch(times)?;
                let turns = self.turns.load(Relaxed) - began;
                found = (turns as f64 >= (ns / TURN_NS_MAX).floor()).then_some(ns);
            }
        }
        self.works.store(false, Relaxed);
        if let Some(ns) = found {
            return Ok(ns);
        }
        bail!(
            "the other core did not work beside a batch within {PATIENCE:?}: is there one that is free?"
        )
    }

    /// Whether two turns end while this thread looks. It does not give its core away: to find both at work is
    /// rare enough beside other programs.
    fn works_now(&self) -> bool {
        let (began, started) = (self.turns.load(Relaxed), Instant::now());
        while self.turns.load(Relaxed) < began + 2 {
            if started.elapsed().as_nanos() as f64 > 2.0 * TURN_NS_MAX {
                return false;
            }
            spin_loop();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_nothing_stood_beside_is_done_again() {
        let turns_seen = AtomicU64::new(0);
        let turn = || {
            turns_seen.fetch_add(1, Relaxed);
        };
        with_other_core(turn, |core| {
            let mut batches = 0;
            let ns = core.beside(
                &mut |_| {
                    batches += 1;
                    if batches > 1 {
                        return Ok(1.0);
                    }
                    // As long as nobody's turns could fill.
                    Ok(f64::MAX)
                },
                1,
            )?;
            assert_eq!((ns, batches), (1.0, 2));
            Ok(())
        })
        .unwrap();
        assert!(turns_seen.load(Relaxed) >= 2);
    }
}
