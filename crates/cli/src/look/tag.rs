//! Where a standby node stands, as its tag says, and whether its process still lives.

use std::path::{Path, PathBuf};

use bumpless_standby::Epoch;
use bumpless_standby::event::{Alarm, AlarmSet};
use bumpless_standby::node::{PartnerStatus, PathHealth, Redundancy, State};
use bumpless_standby::tag::{TagReader, TagSnapshot};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::proof::Proof;
use serde::Serialize;

use super::error::LookError;

/// By their bits.
const ALARMS: [Alarm; 17] = [
    Alarm::RedundancyLost,
    Alarm::Path0Degraded,
    Alarm::Path1Degraded,
    Alarm::Disagree,
    Alarm::Loopback,
    Alarm::ProgramMismatch,
    Alarm::SchemaMismatch,
    Alarm::InputMismatch,
    Alarm::StateMismatch,
    Alarm::BadCheckpoint,
    Alarm::NoBallot,
    Alarm::ActuatorUnreachable,
    Alarm::EpochJump,
    Alarm::Flapping,
    Alarm::SwitchTestFailed,
    Alarm::ActuatorUnclaimed,
    Alarm::PathLate,
];

/// A node.
#[derive(Debug, Clone, Serialize)]
pub struct TagView {
    /// The tag's path.
    #[serde(serialize_with = "super::path_text::serialize")]
    pub path: PathBuf,
    /// Which node.
    pub node: u8,
    /// `init`, `syncing`, `qualified`, `primary`, `solo`, `disqualified` or `maintenance`.
    pub state: &'static str,
    /// Why it is disqualified.
    pub reason: Option<String>,
    /// Counter and owner: its own while it is primary, else the highest that it knows.
    pub epoch: (u64, u8),
    /// `none`, `lost`, `synchronising` or `full`.
    pub redundancy: &'static str,
    /// Its last control cycle.
    pub cycle: Option<u64>,
    /// The other node; `None`: never heard.
    pub partner: Option<PartnerView>,
    /// The links.
    pub paths: Vec<PathView>,
    /// Alarms whose cause is there now.
    pub active_alarms: Vec<String>,
    /// Alarms that were raised and not cleared.
    pub latched_alarms: Vec<String>,
    /// Of the last full checkpoint, of the last delta, of the longest full one; unit: bytes.
    pub checkpoint_bytes: [u32; 3],
    /// OPC UA ServiceLevel.
    pub service_level: u8,
    /// OPC UA RedundancySupport.
    pub redundancy_support: u8,
    /// 99 of 100 cycles began no later; unit: ns.
    pub late_p99_ns: Option<u64>,
    /// The latest one; unit: ns.
    pub late_max_ns: Option<u64>,
    /// The node's process id in its own pid namespace.
    pub pid: u32,
    /// Whether it lives; `None`: it cannot be told from this pid namespace.
    pub is_alive: Option<bool>,
    /// How long ago the tag was written; unit: ns.
    pub age_ns: u64,
}

/// The other node of a pair.
#[derive(Debug, Clone, Serialize)]
pub struct PartnerView {
    /// Which.
    pub node: u8,
    /// As it said last.
    pub standing: String,
    /// Counter and owner.
    pub epoch: (u64, u8),
    /// Its control cycle.
    pub cycle: u64,
    /// Own cycles since it was heard.
    pub silent_cycles: u32,
}

/// One link of a pair.
#[derive(Debug, Clone, Serialize)]
pub struct PathView {
    /// Messages that came.
    pub received: u64,
    /// Messages that did not.
    pub lost: u64,
    /// Messages that came late.
    pub late: u64,
    /// Messages that came twice.
    pub repeated: u64,
    /// Messages that came out of order.
    pub reordered: u64,
    /// Own cycles since one came.
    pub silent_cycles: u32,
    /// Whether it does not do its part.
    pub is_degraded: bool,
}

impl TagView {
    /// The tag at a path, now.
    ///
    /// # Errors
    /// [`LookError::Tag`], [`LookError::EmptyTag`].
    pub fn at(path: &Path) -> Result<Self, LookError> {
        let tag = TagReader::open(path)?.read();
        let path = path.to_owned();
        match tag {
            Some(tag) => Ok(Self::new(path, &tag, monotonic_ns())),
            None => Err(LookError::EmptyTag { path }),
        }
    }

    fn new(path: PathBuf, tag: &TagSnapshot, now_ns: u64) -> Self {
        let status = &tag.status;
        Self {
            path,
            node: status.node.0,
            state: crate::standby::state_name(status.state),
            reason: match status.state {
                State::Disqualified(reason) => Some(format!("{reason:?}")),
                _ => None,
            },
            epoch: pair(status.epoch),
            redundancy: match status.redundancy {
                Redundancy::None => "none",
                Redundancy::Lost => "lost",
                Redundancy::Synchronising => "synchronising",
                Redundancy::Full => "full",
            },
            cycle: status.cycle,
            partner: status.partner.as_ref().map(PartnerView::new),
            paths: status.paths.iter().map(PathView::new).collect(),
            active_alarms: names(status.active_alarms),
            latched_alarms: names(status.latched_alarms),
            checkpoint_bytes: status.checkpoint_len,
            service_level: status.service_level,
            redundancy_support: status.redundancy_support,
            late_p99_ns: tag.lateness.map(|lateness| lateness.p99_ns),
            late_max_ns: tag.lateness.map(|lateness| lateness.max_ns),
            pid: tag.writer.pid,
            is_alive: match tag.writer_proof() {
                Proof::Alive => Some(true),
                Proof::Gone => Some(false),
                Proof::Unknown => None,
            },
            age_ns: tag.age_ns(now_ns),
        }
    }
}

impl PartnerView {
    fn new(partner: &PartnerStatus) -> Self {
        Self {
            node: partner.node.0,
            standing: format!("{:?}", partner.standing).to_lowercase(),
            epoch: pair(partner.epoch),
            cycle: partner.seq,
            silent_cycles: partner.silent_cycles,
        }
    }
}

impl PathView {
    fn new(path: &PathHealth) -> Self {
        Self {
            received: path.received,
            lost: path.lost,
            late: path.late,
            repeated: path.repeated,
            reordered: path.reordered,
            silent_cycles: path.silent_cycles,
            is_degraded: path.is_degraded,
        }
    }
}

fn pair(epoch: Epoch) -> (u64, u8) {
    (epoch.counter(), epoch.owner().0)
}

fn names(alarms: AlarmSet) -> Vec<String> {
    let all = ALARMS.iter().filter(|alarm| alarms.has(**alarm));
    all.map(|alarm| format!("{alarm:?}")).collect()
}

/// Of a node that is not as it should be.
#[cfg(test)]
pub fn sample_status() -> bumpless_standby::node::Status {
    use bumpless_standby::NodeId;
    use bumpless_standby::event::Reason;
    use bumpless_standby::node::{Counts, Status};

    Status {
        node: NodeId(1),
        incarnation: 7,
        state: State::Disqualified(Reason::ProgramMismatch),
        epoch: Epoch::new(3, NodeId(0)),
        cycle: Some(100),
        redundancy: Redundancy::Lost,
        partner: None,
        checkpoint_len: [8, 4, 9],
        paths: Vec::new(),
        active_alarms: AlarmSet::default(),
        latched_alarms: AlarmSet::default(),
        service_level: 200,
        redundancy_support: 3,
        counts: Counts::default(),
    }
}

#[cfg(test)]
mod tests {
    use bumpless_standby::tag::TagWriter;
    use bumpless_substrate::region::Access;

    use super::*;

    #[test]
    fn a_view_says_what_the_node_wrote_and_that_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tag");
        let mut writer = TagWriter::create(&path, Access::Private).unwrap();
        let empty = TagView::at(&path).unwrap_err();
        assert!(matches!(empty, LookError::EmptyTag { .. }), "{empty}");
        writer.write(&sample_status(), None, monotonic_ns());
        let view = TagView::at(&path).unwrap();
        assert_eq!(
            (view.node, view.state, view.redundancy),
            (1, "disqualified", "lost")
        );
        assert_eq!(view.reason.as_deref(), Some("ProgramMismatch"));
        assert_eq!((view.epoch, view.cycle), ((3, 0), Some(100)));
        assert_eq!((view.pid, view.is_alive), (std::process::id(), Some(true)));
        assert_eq!(serde_json::json!(view)["epoch"], serde_json::json!([3, 0]));
    }

    #[test]
    fn what_is_damaged_or_of_another_version_is_no_view_and_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tag");
        let mut writer = TagWriter::create(&path, Access::Private).unwrap();
        writer.write(&sample_status(), None, monotonic_ns());
        drop(writer);
        let whole = std::fs::read(&path).unwrap();
        let said_of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            TagView::at(&path).unwrap_err().to_string()
        };
        let head = &whole[..64];
        let garbage = [head, &vec![0xff; whole.len() - 64]].concat();
        assert!(said_of(&garbage).contains("or it is damaged"));
        let half = &whole[..whole.len() / 2];
        assert!(said_of(half).contains("found a length of"));
        // The version in the preamble.
        let other = [&whole[..12], &99_u32.to_ne_bytes(), &whole[16..]].concat();
        let said = said_of(&other);
        assert!(
            said.contains("99") && said.contains("another version of bumpless"),
            "{said}"
        );
        std::fs::write(&path, &whole).unwrap();
        assert!(TagView::at(&path).is_ok());
    }

    #[test]
    fn alarms_are_listed_by_their_bits() {
        for (bit, alarm) in ALARMS.iter().enumerate() {
            assert_eq!(*alarm as usize, bit);
        }
    }
}
