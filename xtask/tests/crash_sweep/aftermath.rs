//! Who comes to the scene of a crash, and what they find.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Result;
use bumpless_failover::{FailoverWatchdog, Standing};
use bumpless_heartbeat::identity_line::IdentityLine;
use bumpless_heartbeat::verdict_line::VerdictLine;
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable};
use bumpless_substrate::region::RegionError;

use crate::findings::{Findings, Kind};
use crate::operations::{Operation, Owed, Survivors};
use crate::point::{Bystander, LateOwner};
use crate::stage::Stage;
use crate::survivors::{acknowledge, reclaim, reclaim_by_pid, register_all, silent_now};
use crate::victim::{ROOMY, THEIRS, units};

/// So many scans take an owner for silent that may miss one.
const SCANS_UNTIL_SILENT: usize = 4;

/// Lets the survivors of an operation look.
pub fn look(
    operation: &Operation,
    stage: &Stage,
    bystander: Option<Bystander>,
) -> Result<Findings> {
    let (path, owed) = (stage.table(), &operation.owed);
    match (operation.survivors, bystander) {
        (Survivors::LateOwner, Some(Bystander::LateOwner(late))) => late_owner(&path, &late),
        (Survivors::Reset, Some(Bystander::LateOwner(late))) => replaced(&path, &late, stage, owed),
        (Survivors::Open, _) => opened(&path, stage, owed),
        (Survivors::ByPid, _) => {
            let table = HeartbeatTable::attach(&path)?;
            Ok(reclaim_by_pid(&table, owed, &stage.log()?))
        }
        (_, Some(Bystander::Recipient(recipient))) => recipient.look(stage),
        (_, Some(Bystander::Onlooker(onlooker))) => onlooker.look(stage),
        (_, Some(Bystander::Waiter(waiter))) => {
            let mut findings = Findings::default();
            waiter.look(&mut findings)?;
            let table = HeartbeatTable::attach(&path)?;
            findings.0.extend(reclaim(&table, owed, &stage.log()?).0);
            Ok(findings)
        }
        (_, Some(Bystander::Rival(rival))) => {
            let mut findings = Findings::default();
            rival.look(stage, &mut findings)?;
            // It gives its slots back.
            drop(rival);
            let table = HeartbeatTable::attach(&path)?;
            findings.0.extend(reclaim(&table, owed, &stage.log()?).0);
            Ok(findings)
        }
        _ => {
            let (table, log) = (HeartbeatTable::attach(&path)?, stage.log()?);
            let elsewhere = without_pids(stage, &path, table.capacity())?;
            let mut findings = reclaim(&table, owed, &log);
            let without = reclaim(&HeartbeatTable::attach(elsewhere)?, owed, &log);
            for (kind, what) in without.0 {
                findings.add(kind, format!("{what} (without pids)"));
            }
            Ok(findings)
        }
    }
}

/// A copy of the table, as it was left, whose owners lived in a pid namespace that nobody here knows:
/// what proves them dead is the certificate and the byte lock alone.
fn without_pids(stage: &Stage, path: &Path, capacity: usize) -> Result<std::path::PathBuf> {
    /// Where an identity line has the pid namespace.
    const PID_NAMESPACE: u64 = 8;
    const IDENTITY_LEN: u64 = size_of::<IdentityLine>() as u64;
    const VERDICT_LEN: u64 = size_of::<VerdictLine>() as u64;
    let folder = stage.folder().join("elsewhere");
    fs::create_dir(&folder)?;
    let copy = folder.join("table");
    fs::copy(path, &copy)?;
    let private = |name: &str| {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        options.open(folder.join(name))
    };
    private("table.lock")?;
    let file = private("table")?;
    let identities = file.metadata()?.len() - capacity as u64 * (IDENTITY_LEN + VERDICT_LEN);
    for slot in 0..capacity as u64 {
        let at = identities + slot * IDENTITY_LEN + PID_NAMESPACE;
        file.write_all_at(&[0; 8], at)?;
    }
    Ok(copy)
}

/// The owner that the victim was about to fence: each unit is its own or the next watchdog's.
fn late_owner(path: &Path, late: &LateOwner) -> Result<Findings> {
    let mut findings = Findings::default();
    let (own, given) = (THEIRS[1], [THEIRS[0], THEIRS[2], THEIRS[3]]);
    let completed = late.table.clear_in_flight(late.handle, own).is_ok();
    let table = HeartbeatTable::attach(path)?;
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let mut report = watchdog.scan();
    findings.require(Kind::Hung, report.standing == Standing::Primary, || {
        "the lease of the dead cannot be taken at once".to_owned()
    });
    for _ in 1..SCANS_UNTIL_SILENT {
        watchdog.scan_into(&mut report);
    }
    let slots: Vec<_> = report.dead_slots.iter().map(|(slot, _)| *slot).collect();
    let handed_back = slots
        .iter()
        .find(|slot| slot.slot as usize == late.handle.slot())
        .map(|slot| slot.units)
        .unwrap_or_default();
    let wanted = if completed {
        units(&given)
    } else {
        units(&THEIRS)
    };
    findings.require(
        Kind::Lost,
        handed_back.bits() & wanted.bits() == wanted.bits(),
        || format!("{handed_back:?} is handed back of {wanted:?}"),
    );
    findings.require(
        Kind::Doubled,
        handed_back.bits() & !wanted.bits() == 0,
        || format!("{handed_back:?} is handed back, and {own} was completed"),
    );
    for unit in THEIRS {
        let late_completion = late.table.clear_in_flight(late.handle, unit);
        let is_refused = late_completion.is_err();
        findings.require(Kind::Doubled, is_refused, || {
            format!("unit {unit} is handed back and completed")
        });
    }
    let deaths = acknowledge(&watchdog, &slots, &mut findings);
    findings.require(Kind::Lost, deaths == 1, || {
        format!("{deaths} deaths were reported, and the watchdog's is one")
    });
    let left = late.table.unregister(late.handle);
    findings.require(Kind::Unclaimable, left.is_ok(), || {
        format!("the late owner cannot leave: {left:?}")
    });
    silent_now(&watchdog, &mut findings);
    drop(watchdog);
    register_all(&table, &mut findings);
    Ok(findings)
}

/// Whoever opens the path next, and creates the table if there is none.
fn opened(path: &Path, stage: &Stage, owed: &Owed) -> Result<Findings> {
    let mut findings = Findings::default();
    match HeartbeatTable::attach(path) {
        Ok(table) => findings.require(Kind::Lost, table.capacity() == ROOMY, || {
            format!("half made: {} slots", table.capacity())
        }),
        Err(HeartbeatError::Region(
            RegionError::NotFound { .. } | RegionError::StaleBoot { .. },
        )) => {}
        Err(error) => findings.add(Kind::Lost, format!("attach: {error}")),
    }
    left_behind(stage, &mut findings)?;
    match HeartbeatTable::create(path, ROOMY) {
        Ok(table) => findings.0.extend(reclaim(&table, owed, &stage.log()?).0),
        Err(error) => findings.add(Kind::Unclaimable, format!("create: {error}")),
    }
    Ok(findings)
}

/// Nothing lies about but what the next replacement takes away.
fn left_behind(stage: &Stage, findings: &mut Findings) -> Result<()> {
    const KNOWN: [&str; 5] = ["table", "table.lock", "table.new", "log", "log.lock"];
    for entry in fs::read_dir(stage.folder())? {
        let name = entry?.file_name();
        let is_known = KNOWN.iter().any(|known| *known == name);
        findings.require(Kind::Unclaimable, is_known, || {
            format!("{} is left behind", name.display())
        });
    }
    Ok(())
}

/// Those who have the old table open, and whoever opens the path next.
fn replaced(path: &Path, late: &LateOwner, stage: &Stage, owed: &Owed) -> Result<Findings> {
    let mut findings = Findings::default();
    let old = FailoverWatchdog::with_grace(&late.table, u64::MAX);
    match HeartbeatTable::attach(path) {
        Ok(now) => {
            let is_new = now.creation_id() != late.table.creation_id();
            findings.require(Kind::Lost, now.capacity() == ROOMY, || {
                "half made".to_owned()
            });
            let _told: Option<_> = old.scan().path_state;
            told(late, is_new, &mut findings);
        }
        Err(error) => findings.add(Kind::Lost, format!("attach: {error}")),
    }
    left_behind(stage, &mut findings)?;
    match HeartbeatTable::reset(path, ROOMY) {
        Ok(new) => {
            told(late, true, &mut findings);
            findings.0.extend(reclaim(&new, owed, &stage.log()?).0);
        }
        Err(error) => findings.add(Kind::Unclaimable, format!("reset: {error}")),
    }
    Ok(findings)
}

/// The owner in the old table learns of the new one from its next beat, and not before there is one.
fn told(late: &LateOwner, is_replaced: bool, findings: &mut Findings) {
    let beaten = late.table.beat(late.handle);
    let is_told = matches!(beaten, Err(HeartbeatError::Superseded { .. }));
    findings.require(Kind::Lost, is_told == is_replaced, || {
        format!("replaced: {is_replaced}, and the owner is told: {beaten:?}")
    });
}
