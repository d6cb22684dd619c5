//! Owners that give their slot back.

use bumpless_failover::{FailoverWatchdog, Verdict};

use crate::death::{assert_acknowledged, scan_until_reported, units};
use crate::scene::Scene;

/// 37.
pub fn units_of_one_who_leaves_are_handed_back(scene: &Scene) {
    // For the watchdog and one worker.
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    let (mut leaver, mut newcomer) = (scene.worker(), scene.member());
    leaver.done("mark 1 64 127");
    leaver.done("complete 127");
    leaver.done("unregister");
    let text = newcomer.refused("register", "TableFull");
    assert!(text.contains("2 units not acknowledged"), "{text}");
    let (slot, scans) = scan_until_reported(&watchdog, leaver.pid());
    assert_eq!((slot.verdict, scans), (Verdict::Released, 1));
    assert_eq!((slot.units, slot.deaths), (units(&[1, 64]), 0));
    let (again, _) = scan_until_reported(&watchdog, leaver.pid());
    assert_eq!(again, slot, "repeated until acknowledged");
    newcomer.refused("register", "TableFull");
    let one = units(&[64]).iter().next().expect("a unit");
    let taken = watchdog.acknowledge_unit(slot, one).expect("the first");
    assert_eq!(taken.units, units(&[64]));
    newcomer.refused("register", "TableFull");
    let taken = watchdog.clear_dead_bitmap(slot).expect("the rest");
    assert_eq!(taken.units, units(&[1]));
    newcomer.done("register");
    assert_acknowledged(&watchdog, slot);
    newcomer.done("mark 1");
    newcomer.done("complete 1");
    assert!(watchdog.scan().is_empty());
    leaver.refused("register", "TableFull");
}
