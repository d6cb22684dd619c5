//! What is wrong with a table.

use std::path::{Path, PathBuf};

use bumpless_substrate::region::Region;

use super::finding::Finding;
use super::host::file_system;
use crate::look::{SlotView, TableView, path_text};

/// All checks of a table.
pub fn check(path: &Path) -> Vec<Finding> {
    let name = path_text(path);
    let check = |what: &str| format!("{name}: {what}");
    let found = match Region::inspect(path) {
        Ok(found) => found,
        Err(error) => {
            return vec![Finding::error(
                &check("file"),
                error.to_string(),
                "this is no table that could be used",
                "name a table: `bumpless list` shows what there is",
            )];
        }
    };
    let mut findings = vec![
        rights(&check("permissions"), found.mode, found.owner),
        file_system(&check("file system"), path),
        lock_file(&check("lock file"), path),
    ];
    if !found.is_of_this_boot {
        findings.push(Finding::warning(
            &check("boot"),
            format!("of boot {:016x?}", found.boot_id),
            "it is from before the machine's last start; units that were in flight then are still in it",
            "the next process that creates it hands them back; `bumpless rm` deletes it with them",
        ));
        return findings;
    }
    match TableView::at(path) {
        Ok(view) => findings.extend(contents(&view, &check)),
        Err(error) => findings.push(Finding::error(
            &check("layout"),
            error.to_string(),
            "another version or another kind: nobody with this version can use it",
            "name a table; of another version: use the tool that came with it",
        )),
    }
    findings
}

fn rights(check: &str, mode: u32, owner: u32) -> Finding {
    let us = rustix::process::geteuid().as_raw();
    let found = format!("mode {mode:04o}, owner uid {owner}");
    if mode & 0o002 != 0 {
        return Finding::error(
            check,
            found,
            "anybody may write it: nobody attaches to it",
            "chmod o-w, and do not trust what is in it",
        );
    }
    if owner != us && owner != 0 && us != 0 {
        return Finding::warning(
            check,
            found,
            "it is somebody else's: this user can only look",
            "run as its owner to take part",
        );
    }
    if mode & 0o020 != 0 {
        return Finding::fine(check, format!("{found}: each of its group is trusted"), "");
    }
    Finding::fine(check, found, "")
}

fn lock_file(check: &str, path: &Path) -> Finding {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    if lock.exists() {
        return Finding::fine(check, path_text(&lock), "");
    }
    Finding::error(
        check,
        "missing",
        "nobody can attach, and nothing tells who has the table open",
        "end its processes, and let the next one make a new table",
    )
}

fn contents(view: &TableView, check: &dyn Fn(&str) -> String) -> Vec<Finding> {
    let mut findings = vec![watchdog(&check("watchdog"), view)];
    let totals = &view.totals;
    let dead = totals.deaths_unacknowledged;
    findings.push(if dead == 0 && totals.units_to_hand_back == 0 {
        Finding::fine(
            &check("reports"),
            format!("{} deaths so far, all acknowledged", totals.deaths),
            "",
        )
    } else {
        Finding::warning(
            &check("reports"),
            format!(
                "{dead} deaths and {} units wait for an acknowledgement",
                totals.units_to_hand_back
            ),
            "somebody's work waits, and dead owners with units keep their slots",
            "see that the watchdog's user acknowledges: `bumpless status` shows whose units",
        )
    });
    findings.push(match totals.silent {
        0 => Finding::fine(&check("silence"), "nobody is late", ""),
        silent => Finding::warning(
            &check("silence"),
            format!("{silent} owners missed more beats than their grace"),
            "they hang, are stopped, or starve; their slots are kept until they are proven gone",
            "look at these processes: `bumpless status` names them",
        ),
    });
    findings.push(match totals.quarantined {
        0 => Finding::fine(&check("slots in unknown states"), "none", ""),
        quarantined => Finding::error(
            &check("slots in unknown states"),
            quarantined.to_string(),
            "somebody wrote garbage, or a later version uses them; they are left alone",
            "find who writes the file; a new table has all slots again",
        ),
    });
    findings.push(room(&check("room"), view));
    let uncertified = |slot: &&SlotView| slot.owns() && slot.death_proof == "byte_lock";
    let without = view.slots.iter().filter(uncertified).count();
    findings.push(match without {
        0 => Finding::fine(&check("death certificates"), "every owner has one", ""),
        without => Finding::warning(
            &check("death certificates"),
            format!("{without} owners have none"),
            "their deaths are seen by the next scan, not at once",
            "allow set_robust_list in their sandbox",
        ),
    });
    findings
}

fn watchdog(check: &str, view: &TableView) -> Finding {
    match &view.primary {
        Some(primary) if primary.is_alive => {
            let pid = primary
                .pid
                .map_or("unknown".to_owned(), |pid| pid.to_string());
            let standbys = view.standbys.len();
            Finding::fine(check, format!("pid {pid}, and {standbys} standbys"), "")
        }
        Some(_) => Finding::warning(
            check,
            "the primary one is gone or late, and nobody has taken over",
            "deaths are recorded, and nobody is told of them",
            "start a watchdog",
        ),
        None if view.totals.live == 0 => Finding::fine(check, "none, and nobody to watch", ""),
        None => Finding::warning(
            check,
            "none",
            "nobody ticks: a hang is not seen, and nothing is handed back",
            "start a watchdog",
        ),
    }
}

fn room(check: &str, view: &TableView) -> Finding {
    let (live, capacity) = (view.totals.live, view.capacity);
    let found = format!("{live} of {capacity} slots are taken");
    // The owner of a slot that keeps units, and cannot be taken, counts as well.
    let kept = view
        .slots
        .iter()
        .filter(|slot| slot.is_of_interest())
        .count();
    if kept * 10 < capacity * 9 {
        return Finding::fine(check, found, "");
    }
    Finding::warning(
        check,
        format!("{found}, {kept} are kept"),
        "when all are, nobody can register",
        "make a table with more slots, or see to it that reports are acknowledged",
    )
}

/// That the table's own words agree is checked by whoever opens it.
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use bumpless_heartbeat::HeartbeatTable;

    use super::super::finding::Level;
    use super::*;

    fn levels(path: &Path) -> Vec<(Level, String)> {
        let bad = check(path)
            .into_iter()
            .filter(|finding| finding.level != Level::Fine);
        // Where the tests run is not the table's fault.
        bad.filter(|finding| !finding.check.ends_with("file system"))
            .map(|finding| {
                assert!(!finding.meaning.is_empty() && !finding.advice.is_empty());
                (
                    finding.level,
                    finding.check.rsplit(": ").next().unwrap_or("").to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn each_thing_that_is_wrong_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let table = HeartbeatTable::create(&path, 4).unwrap();
        assert_eq!(levels(&path), []);
        let me = table.register(std::process::id()).unwrap();
        let none = (Level::Warning, "watchdog".to_owned());
        assert_eq!(levels(&path), std::slice::from_ref(&none));
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // The state of slot 3, behind header and occupancy.
        file.write_all_at(&[9], 384 + 3 * 64).unwrap();
        let unknown = (Level::Error, "slots in unknown states".to_owned());
        assert_eq!(levels(&path), [none, unknown]);
        file.write_all_at(&[0], 384 + 3 * 64).unwrap();
        table.unregister(me).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o606)).unwrap();
        assert_eq!(levels(&path), [(Level::Error, "permissions".to_owned())]);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        file.write_all_at(&[0xff; 16], 40).unwrap();
        assert_eq!(levels(&path), [(Level::Warning, "boot".to_owned())]);
        std::fs::remove_file(folder.path().join("table.lock")).unwrap();
        assert_eq!(levels(&path)[0], (Level::Error, "lock file".to_owned()));
        file.write_all_at(b"BUMPY", 0).unwrap();
        assert_eq!(levels(&path), [(Level::Error, "file".to_owned())]);
    }
}
