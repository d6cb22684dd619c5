//! The truth matrix: what a process may be doing, and what is to be said of it. Each of the locks,
//! descriptors and words that tell of a process's life lies in one of these conditions; the verdict
//! that is put together of them must not.

use bumpless_failover::{FailoverWatchdog, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::proof::Proof;

use crate::child::Child;
use crate::death::{scan_until_reported, units};
use crate::scene::Scene;

const GRACE_EPOCHS: u64 = 3;

/// What is to be said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Alive,
    Dead,
    /// Late, and alive as far as anybody knows.
    Stalled,
}

struct Row {
    condition: &'static str,
    wanted: Wanted,
    register: &'static str,
    /// Brings the condition about; the table's path.
    bring_about: fn(&mut Child, &str),
}

const ROWS: &[Row] = &[
    Row {
        condition: "idle owner",
        wanted: Wanted::Alive,
        register: "register",
        bring_about: |_, _| {},
    },
    Row {
        condition: "owner opens and closes the same files",
        wanted: Wanted::Alive,
        register: "register",
        bring_about: |owner, path| drop(owner.done(&format!("reopen {path} 1"))),
    },
    Row {
        condition: "owner killed, its fork child lives",
        wanted: Wanted::Dead,
        register: "register",
        bring_about: |owner, _| {
            owner.done("fork");
            owner.kill();
            owner.done("idle");
        },
    },
    Row {
        condition: "registering thread ended, process lives",
        wanted: Wanted::Alive,
        register: "register-in-a-thread",
        bring_about: |_, _| {},
    },
    Row {
        condition: "killed, not reaped",
        wanted: Wanted::Dead,
        register: "register",
        bring_about: |owner, _| {
            owner.kill();
            assert_eq!(owner.state_letter(), 'Z');
        },
    },
    Row {
        condition: "executed another program",
        wanted: Wanted::Dead,
        register: "register",
        bring_about: |owner, _| drop(owner.done("exec")),
    },
    Row {
        condition: "stopped",
        wanted: Wanted::Stalled,
        register: "register",
        bring_about: |owner, _| owner.stop(),
    },
];

/// 47.
pub fn every_row_of_the_truth_matrix_has_the_wanted_verdict(scene: &Scene) {
    for (number, row) in ROWS.iter().enumerate() {
        let path = scene.path(&format!("row-{number}")).display().to_string();
        // For the watchdog and the owner.
        let table = HeartbeatTable::create(&path, 2).expect("a table");
        let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
        assert!(watchdog.scan().is_empty());
        let [mut owner, mut newcomer] = [(); 2].map(|()| {
            let mut member = Child::start("member", &[]);
            member.done(&format!("attach {path}"));
            member
        });
        owner.done(row.register);
        owner.done("mark 8");
        let is_reusable = {
            let (slot, _) = table
                .iter_live()
                .find(|(_, snapshot)| snapshot.pid == owner.pid())
                .expect("its slot");
            let claim = table.cells(slot).expect("a slot").slot.claimed_by();
            (row.bring_about)(&mut owner, &path);
            match table.examine(slot, claim).proof {
                Proof::Gone => true,
                Proof::Alive => false,
                // Only by the fork child's copy of the lock.
                Proof::Unknown => {
                    assert_eq!(row.condition, "owner killed, its fork child lives");
                    false
                }
            }
        };
        let condition = row.condition;
        match row.wanted {
            Wanted::Alive => {
                for _ in 0..20 {
                    owner.done("beat");
                    let report = watchdog.scan();
                    assert!(
                        report.is_empty() && report.suspects.is_empty(),
                        "{condition}: {report:?}"
                    );
                }
                newcomer.refused("register", "TableFull");
                owner.done("complete 8");
            }
            Wanted::Dead | Wanted::Stalled => {
                let (slot, _) = scan_until_reported(&watchdog, owner.pid());
                let is_dead = slot.verdict == Verdict::Died;
                assert_eq!(is_dead, row.wanted == Wanted::Dead, "{condition}: {slot}");
                assert_eq!(slot.units, units(&[8]), "{condition}");
                watchdog.clear_dead_bitmap(slot).expect("the first");
                if is_reusable {
                    newcomer.done("register");
                } else {
                    newcomer.refused("register", "TableFull");
                }
            }
        }
        assert_eq!(
            is_reusable,
            row.wanted == Wanted::Dead && !condition.contains("fork")
        );
    }
}
