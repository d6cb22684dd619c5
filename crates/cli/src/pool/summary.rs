//! What it came to.

use std::process::ExitCode;

use super::ledger::Ledger;

/// The counts of a finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Files found.
    pub files: u64,
    /// Whose result was accepted.
    pub accepted: u64,
    /// Which failed for good.
    pub failed: u64,
    /// Units in flight that were handed back and given to another worker.
    pub reassigned: u64,
    /// Results published under a lost unit, and refused.
    pub refused: u64,
    /// SIGKILLs by chaos.
    pub killed: u64,
    /// SIGSTOPs by chaos that caught a worker with a unit in flight.
    pub stopped: u64,
    /// FIFOs, sockets and devices.
    pub skipped: u64,
    /// Files with no end.
    pub lost: u64,
    /// Files that would have ended twice.
    pub doubled: u64,
    /// From start to end.
    pub seconds: f64,
    /// Workers that took a slot.
    pub registered: u64,
    /// Workers that were reported dead.
    pub deaths: u64,
    /// Units that the reports handed back.
    pub handed_back: u64,
}

/// What the parent counts on the way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// As in [`Summary`].
    pub reassigned: u64,
    /// As in [`Summary`].
    pub refused: u64,
    /// As in [`Summary`].
    pub killed: u64,
    /// As in [`Summary`].
    pub stopped: u64,
    /// As in [`Summary`].
    pub skipped: u64,
    /// As in [`Summary`].
    pub registered: u64,
    /// As in [`Summary`].
    pub deaths: u64,
    /// As in [`Summary`].
    pub handed_back: u64,
}

impl Summary {
    /// Of a run that is over.
    #[must_use]
    pub fn new(ledger: &Ledger, counts: Counts, seconds: f64) -> Self {
        let (lost, doubled) = ledger.lost_and_doubled();
        Self {
            files: ledger.files(),
            accepted: ledger.accepted(),
            failed: ledger.failed(),
            reassigned: counts.reassigned,
            refused: counts.refused,
            killed: counts.killed,
            stopped: counts.stopped,
            skipped: counts.skipped,
            lost,
            doubled,
            seconds,
            registered: counts.registered,
            deaths: counts.deaths,
            handed_back: counts.handed_back,
        }
    }

    /// One JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        // By hand, because the order of the fields is promised.
        format!(
            "{{\"files\":{},\"accepted\":{},\"failed\":{},\"reassigned\":{},\"refused\":{},\
             \"killed\":{},\"stopped\":{},\"seconds\":{:.3},\
             \"registered\":{},\"deaths\":{},\"handed_back\":{}}}",
            self.files,
            self.accepted,
            self.failed,
            self.reassigned,
            self.refused,
            self.killed,
            self.stopped,
            self.seconds,
            self.registered,
            self.deaths,
            self.handed_back
        )
    }

    /// One line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!(
            "{} files in {:.2} s: {} accepted, {} failed; {} reassigned, {} results refused",
            self.files, self.seconds, self.accepted, self.failed, self.reassigned, self.refused
        );
        let others = [
            (self.killed, "workers killed"),
            (self.stopped, "stopped"),
            (self.skipped, "special files skipped"),
            (self.lost, "LOST"),
            (self.doubled, "DOUBLED"),
        ];
        for (count, what) in others {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        line
    }

    /// 0 all accepted, 1 some failed, 2 anything lost or doubled.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.lost > 0 || self.doubled > 0 {
            ExitCode::from(2)
        } else {
            ExitCode::from(u8::from(self.failed > 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(names: usize, accepted: usize) -> Summary {
        let mut ledger = Ledger::default();
        (0..names).for_each(|_| ledger.add("x".into()));
        for _ in 0..accepted {
            let (file, ticket) = ledger.next().unwrap();
            ledger.accept(file, ticket, [0; 32]);
        }
        let counts = Counts {
            refused: 2,
            killed: 3,
            registered: 4,
            deaths: 3,
            handed_back: 1,
            ..Counts::default()
        };
        Summary::new(&ledger, counts, 1.5)
    }

    #[test]
    fn the_json_has_the_promised_fields_in_order() {
        let wanted = r#"{"files":2,"accepted":2,"failed":0,"reassigned":0,"refused":2,"killed":3,"stopped":0,"seconds":1.500,"registered":4,"deaths":3,"handed_back":1}"#;
        assert_eq!(summary(2, 2).json(), wanted);
    }

    #[test]
    fn a_lost_file_is_named_and_is_the_worst_outcome() {
        let lost = summary(3, 2);
        assert!(
            lost.line().ends_with("3 workers killed, 1 LOST"),
            "{}",
            lost.line()
        );
        assert_eq!(lost.exit_code(), ExitCode::from(2));
        assert_eq!(summary(2, 2).exit_code(), ExitCode::SUCCESS);
        assert_eq!(
            Summary {
                failed: 1,
                ..summary(2, 2)
            }
            .exit_code(),
            ExitCode::from(1)
        );
    }
}
