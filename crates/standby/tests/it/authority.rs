//! Who grants epochs: never the same one twice, and none that is not durable.

use bumpless_standby::authority::{Authority, AuthorityError, LocalFile, Witness};
use bumpless_standby::message::{Action, Grant, Refusal, Reply, Verdict};
use bumpless_standby::persist::FileStore;
use bumpless_standby::{Epoch, NodeId};
use proptest::prelude::*;
use tempfile::TempDir;

const ME: NodeId = NodeId(1);
const PARTNER: NodeId = NodeId(0);

fn authority(folder: &TempDir) -> LocalFile<FileStore> {
    LocalFile::new(FileStore::new(folder.path().join("epoch")))
}

fn granted(authority: &mut impl Authority, above: Epoch) -> Result<Epoch, AuthorityError> {
    authority.want(ME, above);
    authority.poll().unwrap().map(|grant| grant.epoch)
}

fn with_file(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("epoch"), bytes).unwrap();
    folder
}

#[test]
fn a_grant_comes_once_and_lets_nobody_start_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut authority = authority(&folder);
    assert_eq!(authority.poll(), None);
    authority.want(ME, Epoch::NONE);
    authority.want(ME, Epoch::NONE);
    let epoch = Epoch::new(1, ME);
    assert_eq!(authority.poll(), Some(Ok(Grant { epoch })));
    assert_eq!(authority.poll(), None);
}

#[test]
fn the_same_epoch_is_never_granted_twice_also_not_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = Epoch::NONE;
    for _life in 0..4 {
        // A node that has forgotten everything asks from below.
        let mut authority = authority(&folder);
        for _ in 0..3 {
            let epoch = granted(&mut authority, Epoch::NONE).unwrap();
            assert!(epoch > last, "{epoch} after {last}");
            last = epoch;
        }
    }
    assert_eq!(last, Epoch::new(12, ME));
    let seen = Epoch::new(40, PARTNER);
    assert_eq!(
        granted(&mut authority(&folder), seen),
        Ok(Epoch::new(41, ME))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn grants_rise_above_all_that_was_granted_and_seen(
        asked in proptest::collection::vec((0..50_u64, any::<bool>()), 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut local = authority(&folder);
        let mut last = Epoch::NONE;
        for (counter, restarts) in asked {
            if restarts {
                local = authority(&folder);
            }
            let above = Epoch::new(counter, PARTNER);
            let epoch = granted(&mut local, above)?;
            prop_assert!(epoch > last && epoch > above);
            last = epoch;
        }
    }
}

#[test]
fn at_the_end_of_the_counter_nothing_is_granted() {
    let last = Epoch::COUNTER_MAX;
    let folder = with_file(&(last - 1).to_le_bytes());
    let mut local = authority(&folder);
    assert_eq!(granted(&mut local, Epoch::NONE), Ok(Epoch::new(last, ME)));
    let above = Epoch::NONE;
    let exhausted = AuthorityError::Exhausted { above };
    assert_eq!(granted(&mut local, above), Err(exhausted));
    for beyond in [last + 1, u64::MAX] {
        let above = Epoch::new(beyond, PARTNER);
        let fresh = tempfile::tempdir().unwrap();
        let exhausted = AuthorityError::Exhausted { above };
        assert_eq!(granted(&mut authority(&fresh), above), Err(exhausted));
    }
}

#[test]
fn a_malformed_file_is_refused_and_not_replaced() {
    for len in [0, 7, 9] {
        let folder = with_file(&vec![1; len]);
        let error = granted(&mut authority(&folder), Epoch::NONE).unwrap_err();
        let wanted = format!("cannot read what was saved: {len} bytes found, 8 wanted");
        assert_eq!(error.to_string(), wanted);
        assert_eq!(
            std::fs::read(folder.path().join("epoch")).unwrap().len(),
            len
        );
    }
}

#[test]
fn what_cannot_be_made_durable_is_not_granted() {
    let folder = with_file(&5_u64.to_le_bytes());
    let path = folder.path().join("epoch.new");
    // What cannot be removed cannot be overwritten.
    std::fs::create_dir(&path).unwrap();
    let mut local = authority(&folder);
    let error = granted(&mut local, Epoch::NONE).unwrap_err();
    assert!(matches!(error, AuthorityError::Store(_)), "{error}");
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(granted(&mut local, Epoch::NONE), Ok(Epoch::new(6, ME)));
}

const INCARNATION: u64 = 0x5eed;

fn reply(verdict: Verdict) -> Reply {
    Reply {
        cluster: 7,
        node: ME,
        incarnation: INCARNATION,
        actuator: 9,
        epoch: Epoch::NONE,
        seq: 1,
        level: Epoch::NONE,
        last_seq: 0,
        verdict,
    }
}

#[test]
fn the_witness_asks_until_it_is_answered_and_takes_only_what_is_granted_to_this_life() {
    let seen = Epoch::new(4, PARTNER);
    let grant = |counter, owner| Verdict::Granted {
        epoch: Epoch::new(counter, owner),
        idle_ns: 3,
    };
    let mut witness = Witness::new(INCARNATION);
    assert_eq!(witness.request::<f64>(), None);
    witness.receive(&reply(grant(5, ME)));
    assert_eq!(witness.poll(), None, "nobody asked");

    witness.want(ME, seen);
    let foreign = Reply {
        node: PARTNER,
        ..reply(grant(5, PARTNER))
    };
    let earlier = Reply {
        incarnation: 1,
        ..reply(grant(5, ME))
    };
    let (unclaimed, full) = (Refusal::Unclaimed, Refusal::NotDurable);
    for ignored in [
        reply(Verdict::Ack),
        reply(Verdict::Nack(unclaimed)),
        reply(grant(4, PARTNER)),
        reply(grant(4, ME)),
        reply(grant(6, PARTNER)),
        foreign,
        earlier,
    ] {
        witness.receive(&ignored);
        assert_eq!(witness.poll(), None, "{ignored:?}");
        assert_eq!(witness.request::<f64>(), Some((seen, Action::Reserve)));
    }
    witness.receive(&reply(Verdict::Nack(full)));
    assert_eq!(witness.request::<f64>(), None);
    let refused = AuthorityError::Refused { refusal: full };
    assert_eq!(witness.poll(), Some(Err(refused)));
    witness.want(ME, seen);
    witness.receive(&reply(grant(5, ME)));
    assert_eq!(witness.request::<f64>(), None);
    let epoch = Epoch::new(5, ME);
    assert_eq!(witness.poll(), Some(Ok(Grant { epoch })));
    assert_eq!(witness.poll(), None);
}
