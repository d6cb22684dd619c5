//! Proofs of death: one trait, several sources, and which of them has spoken.
//!
//! Contract: a source says `Gone` or `Alive` only when it knows, and `Unknown` otherwise; the sources
//! are asked in the order of their cost, and the first that knows decides. If none knows, the answer is
//! `Unknown`, which keeps a slot from being reused. Silence is no source.
//!
//! | source | knows | of |
//! |---|---|---|
//! | [`ProofSource::Certificate`] | gone: the kernel marked the slot and the byte lock is free | any namespace |
//! | [`ProofSource::ByteLock`] | gone: lock free while claiming, or while the certificate is disarmed | any namespace |
//! | [`ProofSource::Pid`] | gone or alive: pidfd and start time | the observer's pid namespace |
//!
//! In the portable tier `Pid` alone is left, and says only `Gone`.

use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::identity::ProcessIdentity;
use bumpless_substrate::locks::LockState;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource, prove_by_pid};

use crate::cells::SlotCells;
use crate::snapshot::Certificate;

/// How often a proof looks at an identity line that somebody may be writing.
const IDENTITY_TRIES: u32 = 16;

/// An owner that may be gone.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// Its slot.
    pub cells: SlotCells<'a>,
    /// Its claim.
    pub claim: Claim,
    /// Whether somebody holds the slot's byte lock.
    pub lock: LockState,
}

/// One way to learn whether an owner is gone.
pub trait DeathProof {
    /// Its name in reports.
    fn source(&self) -> ProofSource;
    /// What it knows; `Unknown` when it knows nothing.
    fn prove(&self, suspect: &Suspect<'_>) -> Proof;
}

/// Asks every source, the cheapest first.
#[must_use]
pub fn examine(suspect: &Suspect<'_>) -> Evidence {
    let sources: [&dyn DeathProof; 3] = [&CertificateProof, &LockProof, &PidProof];
    sources
        .into_iter()
        .map(|source| Evidence {
            proof: source.prove(suspect),
            source: source.source(),
        })
        .find(|evidence| evidence.proof != Proof::Unknown)
        .unwrap_or(Evidence::UNKNOWN)
}

/// [`ProofSource::Certificate`].
#[derive(Debug)]
struct CertificateProof;

/// [`ProofSource::ByteLock`].
#[derive(Debug)]
struct LockProof;

/// [`ProofSource::Pid`].
#[derive(Debug)]
struct PidProof;

impl DeathProof for CertificateProof {
    fn source(&self) -> ProofSource {
        ProofSource::Certificate
    }

    fn prove(&self, suspect: &Suspect<'_>) -> Proof {
        let is_marked = suspect.cells.slot.certificate() == Certificate::Died;
        // While the lock is held its memory or its descriptors are still being taken down.
        match (suspect.claim.state(), suspect.lock) {
            (Some(ClaimState::Live), LockState::Free) if is_marked => Proof::Gone,
            _ => Proof::Unknown,
        }
    }
}

impl DeathProof for LockProof {
    fn source(&self) -> ProofSource {
        ProofSource::ByteLock
    }

    fn prove(&self, suspect: &Suspect<'_>) -> Proof {
        let is_disarmed = suspect.cells.slot.certificate() == Certificate::Disarmed;
        // Held is no proof of life: a fork child inherits the lock.
        match (suspect.claim.state(), suspect.lock) {
            (Some(ClaimState::Claiming), LockState::Free) => Proof::Gone,
            (Some(ClaimState::Live), LockState::Free) if is_disarmed => Proof::Gone,
            _ => Proof::Unknown,
        }
    }
}

impl DeathProof for PidProof {
    fn source(&self) -> ProofSource {
        ProofSource::Pid
    }

    /// Only if the cold line is the one that this very owner wrote, and the kernel has not marked it:
    /// a process that executed another program has its pid still.
    fn prove(&self, suspect: &Suspect<'_>) -> Proof {
        let Suspect { cells, claim, .. } = suspect;
        if !claim.is_live() || cells.slot.certificate() == Certificate::Died {
            return Proof::Unknown;
        }
        match cells.slot.identity(cells.identity, IDENTITY_TRIES) {
            Some(identity) if identity.generation == claim.generation() => {
                prove_by_pid(&ProcessIdentity {
                    pid: claim.pid(),
                    start_ticks: identity.registration.start_ticks,
                    pid_namespace: identity.registration.pid_namespace,
                    time_namespace: identity.registration.time_namespace,
                })
            }
            _ => Proof::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_substrate::identity;
    use bumpless_substrate::layout::Shared;
    use bumpless_substrate::sync::Ordering;

    use super::*;
    use crate::identity_line::{IdentityLine, Registration};
    use crate::slot::Slot;
    use crate::verdict_line::VerdictLine;

    const MARKED: u32 = 0xc000_0000;
    const ARMED: u32 = 0x8000_0123;

    struct Lines(Slot, IdentityLine, VerdictLine);

    impl Lines {
        /// A slot whose owner is this very process.
        fn ours() -> (Self, Claim) {
            let lines = Self(
                Slot::zeroed(),
                IdentityLine::zeroed(),
                VerdictLine::zeroed(),
            );
            let us = identity::current().expect("our identity");
            let claiming = lines.0.claim(Claim::FREE, us.pid).expect("a free slot");
            let registration = Registration {
                start_ticks: us.start_ticks,
                pid_namespace: us.pid_namespace,
                time_namespace: us.time_namespace,
                ..Registration::default()
            };
            lines.0.fill(claiming, &lines.1, &registration);
            let live = lines.0.publish(claiming).expect("our slot");
            (lines, live)
        }

        fn examine(&self, claim: Claim, keeper: u32, lock: LockState) -> Evidence {
            self.0.keeper_word().store(keeper, Ordering::Relaxed);
            let cells = SlotCells {
                slot: &self.0,
                identity: &self.1,
                verdict: &self.2,
            };
            examine(&Suspect { cells, claim, lock })
        }
    }

    #[test]
    fn the_first_source_that_knows_decides_and_is_named() {
        let (lines, live) = Lines::ours();
        let gone = |source| Evidence {
            proof: Proof::Gone,
            source,
        };
        // Without a pidfd nobody can be seen to live.
        let alive = if cfg!(bumpless_portable) {
            Evidence::UNKNOWN
        } else {
            Evidence {
                proof: Proof::Alive,
                source: ProofSource::Pid,
            }
        };
        let (free, held) = (LockState::Free, LockState::Held);
        assert_eq!(
            lines.examine(live, MARKED, free),
            gone(ProofSource::Certificate)
        );
        assert_eq!(lines.examine(live, MARKED, held), Evidence::UNKNOWN);
        assert_eq!(lines.examine(live, 0, free), gone(ProofSource::ByteLock));
        assert_eq!(lines.examine(live, 0, held), alive);
        assert_eq!(lines.examine(live, ARMED, free), alive);
    }

    #[test]
    fn a_claimer_is_judged_by_its_lock_alone() {
        let (lines, live) = Lines::ours();
        let claiming = Claim::new(live.pid(), live.generation() + 1, ClaimState::Claiming);
        let gone = Evidence {
            proof: Proof::Gone,
            source: ProofSource::ByteLock,
        };
        assert_eq!(lines.examine(claiming, MARKED, LockState::Free), gone);
        assert_eq!(
            lines.examine(claiming, MARKED, LockState::Held),
            Evidence::UNKNOWN
        );
    }

    #[test]
    fn a_cold_line_of_another_generation_proves_nothing() {
        let (lines, live) = Lines::ours();
        let next = Claim::new(live.pid(), live.generation() + 1, ClaimState::Live);
        assert_eq!(
            lines.examine(next, ARMED, LockState::Free),
            Evidence::UNKNOWN
        );
    }
}
