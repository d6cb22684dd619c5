//! What victims do in rings, and who comes after them.
//!
//! Contract: the onlooker was there before the victim came. After the death it finds every record that was
//! there before, the victim's as a whole or not at all, and counts that are exact; and whoever pushes or
//! drains next goes on, after the patience at the latest. Time is an argument, so nobody waits for it.

use anyhow::{Result, ensure};
use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::{BlackBox, BlackBoxReader, Event, EventKind, Observation, ObservationRing};
use bumpless_substrate::region::Access;

use crate::findings::{Findings, Kind};
use crate::stage::Stage;
use crate::victim::{Window, units};

const CAPACITY: u32 = 4;
/// So many observations are there before the window opens.
const PUSHED: u32 = 3;
/// So many events are recorded before it: more than fit.
const RECORDED: u64 = 6;

fn numbered(value: u32) -> Observation {
    Observation {
        value,
        latency_ns: u64::from(value) << 33 | 1,
        ..Observation::default()
    }
}

fn event(number: u64) -> Event {
    Event {
        value: number,
        detail: !number,
        ..Event::new(EventKind::Silent, number)
    }
}

/// Pushes an observation.
pub fn push(stage: &Stage, window: &Window) -> Result<()> {
    let ring = ObservationRing::open(stage.table())?;
    let taken = (1..=PUSHED).all(|value| ring.push(numbered(value)));
    ensure!(taken, "no place before the window");
    window.open();
    let is_taken = ring.push(numbered(PUSHED + 1));
    window.close();
    ensure!(is_taken, "no place");
    Ok(())
}

/// Drains what is there, and says of each observation that it was delivered.
pub fn drain(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let ring = ObservationRing::open(stage.table())?;
    // The lock of the consumer, which is a system call, is taken before.
    ring.drain(0, &mut |_| ());
    let taken = (1..=PUSHED).all(|value| ring.push(numbered(value)));
    ensure!(taken, "no place before the window");
    window.open();
    let drained = ring.drain(0, &mut |seen| log.done(units(&[seen.value])));
    window.close();
    ensure!(drained.taken == PUSHED.into(), "{drained:?}");
    Ok(())
}

/// Records an event over the oldest one.
pub fn record(stage: &Stage, window: &Window) -> Result<()> {
    let black_box = BlackBox::attach(stage.table())?;
    (1..=RECORDED).for_each(|number| black_box.record(event(number)));
    let next = event(RECORDED + 1);
    window.open();
    black_box.record(next);
    window.close();
    Ok(())
}

/// Who was there before the victim.
#[derive(Debug)]
pub enum Onlooker {
    /// The consumer of what the victim pushes.
    Consumer(ObservationRing),
    /// Whoever drains when the victim does no more.
    Successor(ObservationRing),
    /// A reader of what the victim records.
    Reader(BlackBoxReader),
}

impl Onlooker {
    /// With a new ring, into which the victim pushes.
    pub fn consumer(stage: &Stage) -> Result<Self> {
        ring(stage).map(Self::Consumer)
    }

    /// With a new ring, which the victim drains.
    pub fn successor(stage: &Stage) -> Result<Self> {
        ring(stage).map(Self::Successor)
    }

    /// With a new black box.
    pub fn reader(stage: &Stage) -> Result<Self> {
        drop(BlackBox::create(stage.table(), CAPACITY, Access::Private)?);
        Ok(Self::Reader(BlackBoxReader::open_read_only(stage.table())?))
    }

    /// What it finds.
    pub fn look(self, stage: &Stage) -> Result<Findings> {
        let mut findings = Findings::default();
        match self {
            Self::Consumer(ring) => after_a_push(&ring, &mut findings),
            Self::Successor(ring) => after_a_drain(&ring, stage, &mut findings)?,
            Self::Reader(reader) => after_a_record(&reader, stage, &mut findings)?,
        }
        Ok(findings)
    }
}

fn ring(stage: &Stage) -> Result<ObservationRing> {
    Ok(ObservationRing::create_in_region(
        stage.table(),
        CAPACITY,
        Access::Private,
    )?)
}

/// Drains now and after the patience: what came, and how much was skipped.
fn drain_patiently(ring: &ObservationRing, findings: &mut Findings) -> (Vec<u32>, u64) {
    let (mut seen, mut skipped) = (Vec::new(), 0);
    for now_ns in [0, PATIENCE_NS] {
        let drained = ring.drain(now_ns, &mut |found| {
            let is_whole = found == numbered(found.value);
            findings.require(Kind::Lost, is_whole, || format!("torn: {found:?}"));
            seen.push(found.value);
        });
        findings.require(Kind::Unclaimable, !drained.is_elsewhere, || {
            "the dead one still drains".to_owned()
        });
        skipped += drained.skipped;
    }
    (seen, skipped)
}

fn after_a_push(ring: &ObservationRing, findings: &mut Findings) {
    let (seen, skipped) = drain_patiently(ring, findings);
    let is_there = seen.iter().copied().eq(1..=PUSHED) || seen.iter().copied().eq(1..=PUSHED + 1);
    findings.require(Kind::Lost, is_there, || {
        format!("{seen:?} of {PUSHED} and one")
    });
    let counts = ring.counts();
    findings.require(Kind::Hung, counts.pending == 0, || {
        format!("held up: {counts:?}")
    });
    let is_exact = counts.dropped == 0
        && counts.skipped == skipped
        && counts.pushed == seen.len() as u64 + skipped;
    findings.require(Kind::Lost, is_exact, || {
        format!("{seen:?} and {skipped}: {counts:?}")
    });
    goes_on(ring, findings);
}

fn after_a_drain(ring: &ObservationRing, stage: &Stage, findings: &mut Findings) -> Result<()> {
    let log = stage.log()?;
    let (seen, skipped) = drain_patiently(ring, findings);
    for value in 1..=PUSHED {
        let is_delivered = log.is_done(value) || seen.contains(&value);
        findings.require(Kind::Lost, is_delivered, || {
            format!("{value} came to nobody: {seen:?}")
        });
    }
    let counts = ring.counts();
    let is_exact = skipped == 0 && counts.delivered() == PUSHED.into() && counts.pending == 0;
    findings.require(Kind::Lost, is_exact, || {
        format!("{PUSHED} were pushed: {counts:?}")
    });
    goes_on(ring, findings);
    Ok(())
}

/// The next observations come, as many as fit.
fn goes_on(ring: &ObservationRing, findings: &mut Findings) {
    let next = 10..10 + CAPACITY;
    let is_taken = next.clone().all(|value| ring.push(numbered(value)));
    findings.require(Kind::Unclaimable, is_taken, || "no place".to_owned());
    let (seen, skipped) = drain_patiently(ring, findings);
    let is_there = seen.iter().copied().eq(next) && skipped == 0;
    findings.require(Kind::Lost, is_there, || {
        format!("of the next ones came {seen:?}, skipped {skipped}")
    });
}

fn after_a_record(reader: &BlackBoxReader, stage: &Stage, findings: &mut Findings) -> Result<()> {
    let recorded = reader.header().recorded;
    let history = reader.read_all();
    let numbers: Vec<u64> = history
        .events
        .iter()
        .map(|found| found.event.value)
        .collect();
    let are_whole = history
        .events
        .iter()
        .all(|found| found.event == event(found.event.value));
    findings.require(Kind::Lost, are_whole, || format!("torn: {history:?}"));
    // The oldest that fits may be under the half of the victim's.
    let (gone, half) = (history.overtaken + 1, history.skipped);
    let is_whole = numbers.iter().copied().eq(gone..=recorded - half);
    findings.require(Kind::Lost, is_whole && half <= 1, || {
        format!("{recorded} were recorded: {history:?}")
    });
    let is_there = recorded - half == RECORDED || recorded - half == RECORDED + 1;
    findings.require(Kind::Lost, is_there, || format!("{numbers:?}"));
    BlackBox::attach(stage.table())?.record(event(RECORDED + 2));
    let newest = reader.read_all().events.last().map(|found| found.event);
    let goes_on = newest == Some(event(RECORDED + 2));
    findings.require(Kind::Lost, goes_on, || {
        format!("the next recorder's event comes as {newest:?}")
    });
    Ok(())
}
