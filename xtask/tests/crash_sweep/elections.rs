//! What victims do in an election, and the rival who stands in it too.
//!
//! Contract: the rival is registered in the sweep's own process, and stood before the victim came. When the
//! victim is dead it leads by its next claim, with no watchdog, in a term that the victim never held.

use std::time::Duration;

use anyhow::{Result, ensure};
use bumpless_election::{Leadership, SharedLeaderElection};
use bumpless_heartbeat::{Handle, HeartbeatTable};

use crate::findings::{Findings, Kind};
use crate::stage::Stage;
use crate::victim::{ROOMY, Window, units};

const NAME: &str = "office";

/// What the rival did before the victim came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It led, and stands no more.
    Led,
    /// It stands, behind another of its process's candidates that led: whoever claims appoints it.
    Stands,
    /// It led in a table that was replaced since.
    LedElsewhere,
}

/// The candidate that was there before the victim.
#[derive(Debug)]
pub struct Rival {
    table: HeartbeatTable,
    handle: Handle,
}

impl Rival {
    /// The last term is 1, and whoever makes the next change has somebody to wake.
    pub fn new(stage: &Stage, before: Before) -> Result<Self> {
        let mut table = HeartbeatTable::create(stage.table(), ROOMY)?;
        let first = table.register(std::process::id())?;
        let mut handle = first;
        let election = SharedLeaderElection::open(&table, NAME)?;
        lead(&election, first)?;
        if before == Before::Stands {
            handle = table.register(std::process::id())?;
            let claimed = election.try_claim_leadership(handle)?;
            ensure!(matches!(claimed, Leadership::Theirs(_)), "{claimed:?}");
        }
        election.step_down(first)?;
        election.wait_for_change(None, Duration::from_micros(1))?;
        drop(election);
        if before == Before::LedElsewhere {
            table = HeartbeatTable::reset(stage.table(), ROOMY)?;
            handle = table.register(std::process::id())?;
        }
        Ok(Self { table, handle })
    }

    fn election(&self) -> Result<SharedLeaderElection<'_>> {
        Ok(SharedLeaderElection::open(&self.table, NAME)?)
    }

    /// Claims, and must lead.
    pub fn look(&self, stage: &Stage, findings: &mut Findings) -> Result<()> {
        let log = stage.log()?;
        let election = self.election()?;
        let before = election.election_term();
        findings.require(Kind::Lost, before >= 1, || "the term began anew".to_owned());
        match election.try_claim_leadership(self.handle) {
            Ok(Leadership::Mine(token)) => {
                let term = token.term() as u32;
                findings.require(Kind::Doubled, !log.is_done(term), || {
                    format!("{token}: that term was the victim's")
                });
                let is_next = (before..=before + 1).contains(&token.term());
                findings.require(Kind::Lost, is_next, || format!("{token} after {before}"));
            }
            other => findings.add(Kind::Hung, format!("the dead lead: {other:?}")),
        }
        Ok(())
    }
}

fn lead(election: &SharedLeaderElection<'_>, handle: Handle) -> Result<u32> {
    match election.try_claim_leadership(handle)? {
        Leadership::Mine(token) => Ok(token.term() as u32),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Claiming an empty seat, and leading.
pub fn claim(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let election = SharedLeaderElection::open(&table, NAME)?;
    let handle = table.register(std::process::id())?;
    window.open();
    let claimed = election.try_claim_leadership(handle);
    if let Ok(Leadership::Mine(token)) = &claimed {
        log.done(units(&[token.term() as u32]));
    }
    window.close();
    claimed?;
    Ok(())
}

/// Standing down.
pub fn step_down(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let election = SharedLeaderElection::open(&table, NAME)?;
    let handle = table.register(std::process::id())?;
    log.done(units(&[lead(&election, handle)?]));
    let seen = election.current_leader();
    election.wait_for_change(seen, Duration::from_micros(1))?;
    window.open();
    let stepped_down = election.step_down(handle);
    window.close();
    ensure!(stepped_down?, "it did not lead");
    Ok(())
}

/// Opening, where an election of a former table lies.
pub fn replace(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    window.open();
    let election = SharedLeaderElection::open(&table, NAME);
    window.close();
    ensure!(election?.election_term() == 1, "the term began anew");
    Ok(())
}
