//! [`EventKind`]: the names of what happens, with a number each that never changes.
//!
//! Contract: a number is never given to another kind. A number that this version does not know is
//! [`EventKind::Other`], which has everything but a name.

use core::fmt;

/// What `value` and `detail` of an event say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing: both are 0.
    Nothing,
    /// `value` is this; `detail` is 0.
    One(&'static str),
    /// `value` is this, and `detail` that.
    Two(&'static str, &'static str),
    /// `value` is the lower, `detail` the upper half of a set of units.
    Units,
    /// `value` is an epoch's counter; `detail` is its owner and, above the lowest 8 bits, a code called so.
    Epoch(&'static str),
    /// A kind of a later version.
    Unknown,
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $number:literal $name:literal $variant:ident $meaning:expr;)*) => {
        /// What happened. Each says what `value` and `detail` of its events are; `slot`, `generation`,
        /// `label` and `pid` are those of whom it happened to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EventKind {
            $($(#[$meta])* $variant,)*
            /// One of a later version.
            Other(
                /// Its number.
                u16
            ),
        }

        impl EventKind {
            /// All that have a name.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its number, as in a ring.
            #[must_use]
            pub const fn number(self) -> u16 {
                match self {
                    $(Self::$variant => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// The kind of this number.
            #[must_use]
            pub const fn from_u16(number: u16) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// Its name, in snake_case; `other` for one of a later version.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(_) => "other",
                }
            }

            pub(super) const fn meaning(self) -> Meaning {
                match self {
                    $(Self::$variant => $meaning,)*
                    Self::Other(_) => Meaning::Unknown,
                }
            }
        }
    };
}

use Meaning::{Epoch, Nothing, One, Two, Units};

kinds! {
    // Of a table.
    /// A process took a slot. `value`: its role.
    1 "registered" Registered One("role");
    /// A process gave its slot back.
    2 "unregistered" Unregistered Nothing;
    /// Beats are missing, and not more than allowed. `value`: lag; `detail`: grace; unit: epochs.
    3 "missed" Missed Two("lag_epochs", "grace_epochs");
    /// More beats are missing than allowed. `value`: lag; `detail`: grace; unit: epochs.
    4 "silent" Silent Two("lag_epochs", "grace_epochs");
    /// A process is gone, for certain. `value`: deaths of the slot that wait for an acknowledgement.
    5 "died" Died One("deaths_waiting");
    /// An owner can complete nothing any more. `value`: the term of the lease under which it was fenced.
    6 "fenced" Fenced One("term");
    /// Units go to somebody else. `value`, `detail`: lower and upper half of the set.
    7 "handed_back" HandedBack Units;
    /// Somebody took over what was handed back. `value`, `detail`: lower and upper half of the set.
    8 "acknowledged" Acknowledged Units;
    /// A slot of somebody who died has a new owner. `value`: the generation before.
    9 "recycled" Recycled One("generation_before");
    /// A slot is left alone, as nothing proves that its owner is gone, or in a state of a later version.
    10 "quarantined" Quarantined Nothing;
    /// The table was replaced by another one, or deleted. `value`: the creation id of the new one; 0: there
    /// is none, or it cannot be looked at.
    11 "superseded" Superseded One("successor");
    /// A watchdog is the primary one from now on; slot and generation are its own. `value`: term.
    12 "lease_taken" LeaseTaken One("term");
    /// A watchdog is the primary one no more; slot and generation were its own. `value`: its last term.
    13 "lease_lost" LeaseLost One("term");
    // Of an election and a barrier.
    /// Somebody else leads, or nobody. `value`: term.
    14 "leader_changed" LeaderChanged One("term");
    /// All have come whom a barrier waits for. `value`: the epoch that ended; `detail`: how many were absent.
    15 "barrier_released" BarrierReleased Two("epoch", "absent");
    // Of a standby pair: `slot` is the node, `instance` the pair's number if it has one.
    /// A node became primary. `value`, `detail`: epoch; code: the cause.
    16 "promoted" Promoted Epoch("cause");
    /// A node is primary no more. `value`, `detail`: the epoch that ended; code: the cause.
    17 "demoted" Demoted Epoch("cause");
    /// A standby can take over. `value`, `detail`: the epoch that it follows.
    18 "qualified" Qualified Epoch("");
    /// A standby can take over no more. `value`: the reason, as in the diagnostic tag.
    19 "disqualified" Disqualified One("reason");
    /// The pair survives no failure.
    20 "redundancy_lost" RedundancyLost Nothing;
    /// The pair survives a failure again.
    21 "redundancy_restored" RedundancyRestored Nothing;
    /// A switch-over ended as asked. `value`, `detail`: the partner's epoch.
    22 "switch_over" SwitchOver Epoch("");
    /// The actuator refused an output of an epoch of the past. `value`, `detail`: its epoch; code: the
    /// refusal, as in a reply.
    23 "stale_output_refused" StaleOutputRefused Epoch("refusal");
    /// A path is silent while the partner lives. `value`: which.
    24 "path_degraded" PathDegraded One("path");
    /// It delivers again. `value`: which.
    25 "path_restored" PathRestored One("path");
    /// The actuator does not answer: outputs stop. `value`, `detail`: the epoch, still the node's.
    26 "suspended" Suspended Epoch("");
    /// The actuator answers again. `value`, `detail`: the epoch.
    27 "resumed" Resumed Epoch("");
    /// The primary goes on under a higher epoch. `value`, `detail`: the new one.
    28 "renewed" Renewed Epoch("");
    /// The partner was heard, for the first time or again. `value`: its incarnation.
    29 "partner_found" PartnerFound One("incarnation");
    /// The partner is silent.
    30 "partner_lost" PartnerLost Nothing;
    /// The partner started anew. `value`: its incarnation.
    31 "partner_restarted" PartnerRestarted One("incarnation");
    /// A switch-over did not happen.
    32 "switch_over_failed" SwitchOverFailed Nothing;
    /// The scheduled switch test went there and back.
    33 "switch_test_passed" SwitchTestPassed Nothing;
    /// The scheduled switch test did not.
    34 "switch_test_failed" SwitchTestFailed Nothing;
    /// The scheduled switch test was left out. `value`: 1 as the last one failed, 0 as there is no redundancy.
    35 "switch_test_skipped" SwitchTestSkipped One("after_failure");
    /// A checkpoint was refused. `value`: its cycle; `detail`: a code of the error.
    36 "checkpoint_refused" CheckpointRefused Two("cycle", "error");
    /// No epoch could be reserved. `value`: a code of the error.
    37 "no_ballot" NoBallot One("error");
    /// A node was itself not run. `value`: for how long; unit: ns.
    38 "own_pause" OwnPause One("gap_ns");
    /// A cycle's number did not rise. `value`: as given; `detail`: the last one.
    39 "cycle_refused" CycleRefused Two("found", "last");
    /// An alarm was raised. `value`: which, as in the diagnostic tag.
    40 "alarm_raised" AlarmRaised One("alarm");
    // Of the observation itself.
    /// A policy panicked and is not asked again. `value`: how often policies have panicked.
    41 "policy_panicked" PolicyPanicked One("panics");
    /// A policy chose another tag for an instance. `value`: the new one; `detail`: the old one.
    42 "migrated" Migrated Two("tag", "tag_before");
    /// A black box goes on after the machine was started anew: the times of all events before this one are
    /// of an earlier start's clock.
    43 "rebooted" Rebooted Nothing;
    // Of a standby pair again.
    /// The actuator refused an output for another reason than its age. `value`, `detail`: its epoch; code: the
    /// refusal, as in a reply.
    44 "output_refused" OutputRefused Epoch("refusal");
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => write!(f, "event {number}"),
            named => f.pad(named.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_has_a_name_and_a_number_of_its_own_and_is_found_by_it() {
        let names: BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_u16(kind.number()), *kind);
            assert!(
                kind.name()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_')
            );
        }
    }

    #[test]
    fn a_kind_of_a_later_version_keeps_its_number() {
        for number in [0, 999, u16::MAX] {
            let kind = EventKind::from_u16(number);
            assert_eq!((kind, kind.number()), (EventKind::Other(number), number));
            assert_eq!(kind.to_string(), format!("event {number}"));
        }
    }
}
