//! The diagnostic tag in real files, with writers that are killed.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use bumpless_standby::event::{Alarm, AlarmSet, Reason};
use bumpless_standby::message::Standing;
use bumpless_standby::node::{Counts, PartnerStatus, PathHealth, Redundancy, State, Status};
use bumpless_standby::tag::{Lateness, TagError, TagReader, TagSnapshot, TagWriter};
use bumpless_standby::{Epoch, NodeId};
use bumpless_substrate::identity;
use bumpless_substrate::proof::Proof;
use bumpless_substrate::region::{Access, RegionError};
use proptest::prelude::*;

use crate::link_scene::await_some;
use crate::peer::{Peer, done, plays, say};

const TAG_LEN: usize = 1_440;
const PREAMBLE_LEN: usize = 64;

fn writer(path: &Path) -> TagWriter {
    TagWriter::create(path, Access::Private).unwrap()
}

fn path_health(number: u64) -> PathHealth {
    let mut health = PathHealth::default();
    health.received = number + 1;
    health.lost = number + 2;
    health.late = number + 3;
    health.repeated = number + 4;
    health.reordered = number + 5;
    health.silent_cycles = number as u32 + 6;
    health.unheard_cycles = number as u32 + 7;
    health.is_degraded = number % 2 == 1;
    health
}

/// A status in which no two fields have the same value.
fn status(number: u64) -> Status {
    Status {
        node: NodeId(3),
        incarnation: number + 100,
        state: State::Primary,
        epoch: Epoch::new(number + 101, NodeId(4)),
        cycle: Some(number + 102),
        redundancy: Redundancy::Full,
        partner: Some(PartnerStatus {
            node: NodeId(5),
            incarnation: number + 103,
            standing: Standing::Qualified,
            epoch: Epoch::new(number + 104, NodeId(6)),
            seq: number + 105,
            silent_cycles: number as u32 + 106,
        }),
        checkpoint_len: [107, 108, 109],
        paths: vec![path_health(200), path_health(301)],
        active_alarms: AlarmSet::from_bits(1 << Alarm::PathLate as u8),
        latched_alarms: AlarmSet::from_bits(u32::MAX),
        service_level: 255,
        redundancy_support: 2,
        counts: Counts {
            foreign: number + 110,
            looped_back: number + 111,
            implausible: number + 112,
            stale: number + 113,
            bad_parts: number + 114,
            refused: number + 115,
            states_equal: number + 116,
            states_different: number + 117,
        },
    }
}

#[test]
fn a_reader_gets_what_the_node_wrote_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tag");
    let mut writer = writer(&path);
    let reader = TagReader::open(&path).unwrap();
    assert_eq!(reader.read(), None, "nothing was written yet");
    let lateness = Lateness {
        p99_ns: 118,
        max_ns: 119,
    };
    for number in 0..10 {
        writer.write(&status(number), Some(lateness), 1_000 + number);
        let wanted = TagSnapshot {
            status: status(number),
            lateness: Some(lateness),
            writer: identity::current().unwrap(),
            written_at_ns: 1_000 + number,
        };
        assert_eq!(reader.read(), Some(wanted.clone()));
        assert_eq!(reader.read(), Some(wanted), "as often as it is read");
    }
    let tag = reader.read().unwrap();
    assert_eq!((tag.age_ns(1_014), tag.age_ns(7)), (5, 0));
    assert_ne!(tag.writer_proof(), Proof::Gone);
}

#[test]
fn every_state_every_standing_and_all_that_may_be_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tag");
    let mut writer = writer(&path);
    let reader = TagReader::open(&path).unwrap();
    let mut check_told = |status: &Status| {
        writer.write(status, None, 1);
        let tag = reader.read().unwrap();
        assert_eq!((&tag.status, tag.lateness), (status, None));
    };
    let reasons = [
        Reason::ProgramMismatch,
        Reason::SchemaMismatch,
        Reason::BadCheckpoint,
        Reason::InputMismatch,
        Reason::NoBallot,
        Reason::ActuatorUnreachable,
        Reason::StaleCheckpoint,
        Reason::EpochEnded,
    ];
    let states = [
        State::Init,
        State::Syncing,
        State::Qualified,
        State::Primary,
        State::Solo,
        State::Maintenance,
    ];
    for state in states.into_iter().chain(reasons.map(State::Disqualified)) {
        check_told(&Status { state, ..status(0) });
    }
    for redundancy in [
        Redundancy::None,
        Redundancy::Lost,
        Redundancy::Synchronising,
        Redundancy::Full,
    ] {
        check_told(&Status {
            redundancy,
            ..status(0)
        });
    }
    for standing in [
        Standing::Init,
        Standing::Syncing,
        Standing::Qualified,
        Standing::Primary,
        Standing::Suspended,
        Standing::Disqualified,
        Standing::Maintenance,
    ] {
        let mut status = status(0);
        status.partner.as_mut().unwrap().standing = standing;
        check_told(&status);
    }
    check_told(&Status {
        partner: None,
        cycle: None,
        epoch: Epoch::NONE,
        paths: vec![path_health(1)],
        ..status(0)
    });
    check_told(&Status {
        cycle: Some(0),
        paths: Vec::new(),
        ..status(0)
    });
}

#[track_caller]
fn check_whole(tag: &TagSnapshot) -> u64 {
    let number = tag.written_at_ns;
    assert_eq!(tag.status, status(number), "torn");
    number
}

#[test]
fn a_tag_is_whole_also_while_the_next_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tag");
    let mut writer = writer(&path);
    let reader = TagReader::open(&path).unwrap();
    writer.write(&status(0), None, 0);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut last = 0;
            await_some("the ten-thousandth tag", || {
                // Nothing, if the reader was stopped for some cycles, each time that it tried.
                let number = check_whole(&reader.read()?);
                assert!(number >= last, "{number} after {last}");
                last = number;
                (last >= 10_000).then_some(())
            });
        });
        let mut number = 0;
        while !reading.is_finished() {
            number += 1;
            writer.write(&status(number), None, number);
        }
    });
}

#[test]
fn a_killed_writers_last_tag_stays_and_says_whose_it_was_and_the_next_one_goes_on() {
    if let Some(folder) = plays("writer") {
        return write_until_killed(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tag");
    let mut last = None;
    for _ in 0..5 {
        let start = a_killed_writers_last_tag_stays_and_says_whose_it_was_and_the_next_one_goes_on;
        let mut peer = Peer::start(&[], start, "writer", folder.path());
        assert_eq!(peer.hear().unwrap(), "ready");
        let reader = TagReader::open(&path).unwrap();
        let new = || reader.read().filter(|tag| Some(tag.writer) != last);
        let tag = await_some("a tag of the new writer", new);
        check_whole(&tag);
        assert_ne!(tag.writer_proof(), Proof::Gone);
        last = Some(tag.writer);
        peer.kill();
        let tag = reader.read().expect("the dead one's tag");
        check_whole(&tag);
        assert_eq!(tag.writer_proof(), Proof::Gone);
    }
}

fn write_until_killed(folder: &Path) {
    let path = folder.join("tag");
    let mut writer = await_some("the tag of a dead one", || {
        TagWriter::create(&path, Access::Private).ok()
    });
    say("ready");
    for number in 0..u64::MAX {
        writer.write(&status(number), None, number);
    }
    done()
}

#[test]
fn a_tag_has_one_writer_and_whoever_the_writer_lets_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tag");
    let error = TagReader::open(&path).unwrap_err();
    assert!(
        matches!(error, TagError::Region(RegionError::NotFound { .. })),
        "{error}"
    );
    let first = TagWriter::create(&path, Access::ReadForOthers).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o644);
    assert_eq!(found.len(), TAG_LEN as u64);
    // Without locks on slots nobody is refused.
    if !cfg!(bumpless_portable) {
        let error = TagWriter::create(&path, Access::Private).unwrap_err();
        assert!(matches!(error, TagError::Held { .. }), "{error}");
    }
    drop(first);
    drop(writer(&path));
}

/// Noise, or the same byte everywhere.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = TAG_LEN - PREAMBLE_LEN;
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
        // A tag that is there, with content that no node wrote.
        4 => proptest::collection::vec(any::<u8>(), len).prop_map(|mut bytes| {
            for (at, value) in [(0, 1_u64), (64, 1), (72, 312)] {
                bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            }
            // Codes that are small enough to be known, now and then.
            bytes[128 + 188..128 + 200].iter_mut().for_each(|code| *code &= 7);
            bytes
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_the_bytes_a_read_returns_and_the_next_tag_is_read(bytes in any_bytes()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tag");
        let mut writer = writer(&path);
        let reader = TagReader::open(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&bytes, PREAMBLE_LEN as u64).unwrap();
        if let Some(tag) = reader.read() {
            prop_assert!(tag.status.paths.len() <= 2);
            let _ = (tag.age_ns(0), tag.writer_proof());
        }
        // A number of 2^64 - 1 is followed by 0, which is no tag; the next one is.
        writer.write(&status(7), None, 7);
        writer.write(&status(8), None, 8);
        let tag = reader.read().unwrap();
        prop_assert_eq!((tag.status, tag.written_at_ns), (status(8), 8));
        prop_assert_eq!(std::fs::metadata(&path).unwrap().len(), TAG_LEN as u64);
    }
}
