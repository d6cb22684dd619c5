//! Where elections lie, and what becomes of one when its table is replaced.

use bumpless_election::{ElectionError, SharedLeaderElection};
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable};
use bumpless_substrate::region::{Region, RegionError};

use crate::scene::{Scene, assert_refused, lead, open, register};

#[test]
fn a_name_that_could_be_another_files_is_refused() {
    let scene = Scene::new();
    let table = scene.table(2);
    let long = "x".repeat(65);
    for name in ["", ".", "a.b", "a/b", "../x", "a b", "ä", "a\0", &long] {
        assert_refused!(
            SharedLeaderElection::open(&table, name),
            ElectionError::Name { limit: 64, .. }
        );
    }
    assert!(SharedLeaderElection::open(&table, &long[1..]).is_ok());
}

#[test]
fn the_file_has_the_documented_length_and_mode() {
    use std::os::unix::fs::MetadataExt;
    let scene = Scene::new();
    let _election = open(&scene.table(17));
    let found = std::fs::metadata(scene.path("table.job.election")).unwrap();
    assert_eq!((found.len(), found.mode() & 0o777), (128 + 128, 0o600));
}

#[test]
fn the_election_of_a_replaced_table_is_over_and_the_next_goes_on_from_its_term() {
    for capacity in [4, 8] {
        let scene = Scene::new();
        let old = scene.table(4);
        let old_election = open(&old);
        let leader = register(&old);
        assert_eq!(lead(&old_election, leader).term(), 1);

        let new = HeartbeatTable::reset(scene.path("table"), capacity).unwrap();
        let election = open(&new);
        assert_eq!(
            (election.election_term(), election.current_leader()),
            (1, None)
        );
        let next = register(&new);
        assert_eq!(lead(&election, next).term(), 2);
        // The old one, to those who do not look at the table.
        assert_eq!(old_election.current_leader(), None);
        assert_refused!(
            old_election.wait_for_change(None, std::time::Duration::ZERO),
            ElectionError::Superseded { .. }
        );
        assert_refused!(
            SharedLeaderElection::open(&old, "job"),
            ElectionError::Table(HeartbeatError::Superseded { .. })
        );
        assert_refused!(
            old_election.try_claim_leadership(leader),
            ElectionError::Table(HeartbeatError::Superseded { .. })
        );
        assert_eq!(
            election.am_i_leader(next).unwrap().map(|t| t.term()),
            Some(2)
        );
    }
}

#[test]
fn an_election_that_was_left_closed_by_a_killed_opener_is_replaced() {
    let scene = Scene::new();
    let table = scene.table(2);
    let election = open(&table);
    let me = register(&table);
    lead(&election, me);
    // CLOSED, as it is before the successor has the name.
    let path = scene.path("table.job.election");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[66] |= 0x08;
    std::fs::write(&path, bytes).unwrap();
    for told in [
        election.am_i_leader(me).map(|_| ()),
        election.beat_as_leader(me).map(|_| ()),
        election.try_claim_leadership(me).map(|_| ()),
    ] {
        assert_refused!(told, ElectionError::Superseded { .. });
    }
    assert_eq!(lead(&open(&table), me).term(), 2);
}

#[test]
fn another_file_and_a_table_to_look_at_only_are_refused() {
    let scene = Scene::new();
    let table = scene.table(2);
    let path = scene.path("table.job.election");
    std::fs::write(&path, [7; 4096]).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_refused!(
        SharedLeaderElection::open(&table, "job"),
        ElectionError::Region(RegionError::Magic { .. })
    );
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    assert_refused!(
        SharedLeaderElection::open(&observer, "other"),
        ElectionError::Table(HeartbeatError::ReadOnly { .. })
    );
    Region::remove(&scene.path("table")).unwrap();
    assert_refused!(
        SharedLeaderElection::open(&table, "other"),
        ElectionError::Table(HeartbeatError::Orphaned { .. })
    );
}
