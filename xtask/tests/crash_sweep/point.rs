//! One crash point: the scene, the victim, its death, the survivors.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Result, ensure};
use bumpless_heartbeat::{Handle, HeartbeatTable};

use crate::aftermath;
use crate::barriers::Waiter;
use crate::course::Course;
use crate::elections::Rival;
use crate::findings::{Findings, Kind};
use crate::mailboxes::Recipient;
use crate::operations::{Operation, Scene};
use crate::rings::Onlooker;
use crate::stage::Stage;
use crate::tracer::{Beside, Victim};
use crate::victim::{self, ROOMY, THEIRS};

/// How long the survivors may take with one crash point.
const SURVIVORS_LIMIT: Duration = Duration::from_secs(60);

/// A survivor that was registered before the victim came.
#[derive(Debug)]
pub struct LateOwner {
    /// Its table, opened before.
    pub table: HeartbeatTable,
    /// Its registration, with units in flight.
    pub handle: Handle,
}

/// Somebody of the sweep's own who was there before the victim came.
#[derive(Debug)]
pub enum Bystander {
    /// An owner that does not beat.
    LateOwner(Box<LateOwner>),
    /// A member of a barrier.
    Waiter(Waiter),
    /// A candidate of an election.
    Rival(Box<Rival>),
    /// A reader of what the victim writes.
    Recipient(Box<Recipient>),
    /// Somebody at a ring.
    Onlooker(Box<Onlooker>),
}

/// Kills a victim at a crash point of its window and lets the survivors look.
pub fn crash_at(
    operation: &'static Operation,
    course: &Course,
    k: usize,
    folder: &Path,
) -> Result<Findings> {
    let stage = Stage::new(folder.join("point"));
    let (victim, bystander) = course.bring(operation, &stage, k)?;
    victim.kill()?;
    let (report, reported) = channel();
    let looked_at = stage.clone();
    std::thread::spawn(move || {
        // Nobody listens when it has taken too long.
        let _ = report.send(aftermath::look(operation, &looked_at, bystander));
    });
    let mut findings = Findings::default();
    match reported.recv_timeout(SURVIVORS_LIMIT) {
        Ok(Ok(found)) => findings = found,
        Ok(Err(error)) => findings.add(Kind::Unclaimable, format!("survivors: {error:#}")),
        Err(_) => findings.add(Kind::Hung, "the survivors did not come to an end"),
    }
    Ok(findings)
}

/// Sets the scene and brings the victim to the opening of its window.
pub fn at_the_window(operation: &Operation, stage: &Stage) -> Result<(Victim, Option<Bystander>)> {
    let path = stage.table();
    let start = || Victim::start(operation.name, stage.folder());
    let beside = |onlooker| Ok((start()?, Some(Bystander::Onlooker(Box::new(onlooker)))));
    let die = |part| Beside::start(part, stage.folder())?.kill();
    match operation.scene {
        Scene::NoTable => Ok((start()?, None)),
        Scene::Table(capacity) => {
            HeartbeatTable::create(path, capacity)?;
            Ok((start()?, None))
        }
        Scene::DiedBefore(capacity, part) => {
            HeartbeatTable::create(path, capacity)?;
            die(part)?;
            Ok((start()?, None))
        }
        Scene::DiesAtTheWindow(part) => {
            HeartbeatTable::create(path, ROOMY)?;
            let beside = Beside::start(part, stage.folder())?;
            let victim = start()?;
            beside.kill()?;
            Ok((victim, None))
        }
        Scene::LateOwner => {
            let table = HeartbeatTable::create(path, ROOMY)?;
            let handle = table.register(std::process::id())?;
            victim::mark(&table, handle, &THEIRS)?;
            let late = Box::new(LateOwner { table, handle });
            Ok((start()?, Some(Bystander::LateOwner(late))))
        }
        Scene::Barrier { waits_for_victim } => {
            HeartbeatTable::create(path, ROOMY)?;
            let waiter = Waiter::start(stage, waits_for_victim)?;
            Ok((start()?, Some(Bystander::Waiter(waiter))))
        }
        Scene::Election(before) => {
            let rival = Box::new(Rival::new(stage, before)?);
            Ok((start()?, Some(Bystander::Rival(rival))))
        }
        Scene::Mailbox => {
            let recipient = Box::new(Recipient::of_mailbox(stage)?);
            Ok((start()?, Some(Bystander::Recipient(recipient))))
        }
        Scene::Tag => {
            let recipient = Box::new(Recipient::of_tag(stage)?);
            Ok((start()?, Some(Bystander::Recipient(recipient))))
        }
        Scene::Ring => beside(Onlooker::consumer(stage)?),
        Scene::DrainedRing => beside(Onlooker::successor(stage)?),
        Scene::BlackBox => beside(Onlooker::reader(stage)?),
        Scene::EarlierBoot => {
            HeartbeatTable::create(&path, ROOMY)?;
            die("busy")?;
            age(&path)?;
            ensure!(
                HeartbeatTable::attach(&path).is_err(),
                "the table is not stale"
            );
            Ok((start()?, None))
        }
    }
}

/// Makes a table one of an earlier start of the machine.
fn age(path: &Path) -> Result<()> {
    /// Where a region's boot id lies.
    const BOOT_ID: u64 = 40;
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&[7; 16], BOOT_ID)?;
    Ok(())
}
