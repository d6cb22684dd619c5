//! What the processes of a run left in its folder.
//!
//! | file | lines |
//! |---|---|
//! | `run.json` | what was run: one object, [`Settings`] |
//! | `deeds` | `AT_NS WHAT NODE`: `kill`, `stop`, `cut` or `hang`, after which the other node must take over; `continue`, `heal` or `start` after it; `end` before the processes were ended; any other word, after which nothing may happen |
//! | `plant.log` | `NOW_NS NODE COUNTER CYCLE VALUE REFUSAL`, the plant's `--log` |
//! | `nodeN-L.log` | `CYCLE BEGIN_NS LATE_NS SPENT_NS STATE OUTPUT`, the `--log` of life L of node N |
//! | `nodeN-L.events` | what it printed: events as JSON |
//!
//! All times are of the machine's one monotonic clock. A killed process leaves whole lines behind, and
//! at most one that it did not finish, which is left out.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::standby::error::StandbyError;

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What was done to the primary.
    pub fault: String,
    /// What the processes were connected by.
    pub link: String,
    /// The control cycle.
    pub period_ns: u64,
    /// Silent cycles after which the standby takes over.
    pub miss: u32,
}

/// Something that was done to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// When.
    pub at_ns: u64,
    /// One word.
    pub what: String,
    /// To which.
    pub node: u8,
}

/// An output that came to the plant.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// When the plant looked.
    pub at_ns: u64,
    /// Its sender.
    pub node: u8,
    /// The counter of its epoch.
    pub counter: u64,
    /// Its cycle.
    pub cycle: u64,
    /// Its value.
    pub value: f64,
    /// `None`: accepted.
    pub refusal: Option<String>,
}

/// One cycle of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeCycle {
    /// Its number.
    pub cycle: u64,
    /// When it began.
    pub begin_ns: u64,
    /// How late that was.
    pub late_ns: u64,
    /// How long it took.
    pub spent_ns: u64,
    /// Where the node stood after it.
    pub state: String,
}

impl NodeCycle {
    /// When everything of it was sent.
    pub fn sent_ns(&self) -> u64 {
        self.begin_ns + self.spent_ns
    }

    /// Whether the node drives.
    pub fn drives(&self) -> bool {
        matches!(self.state.as_str(), "primary" | "solo")
    }
}

/// An event that a node told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Said {
    /// Which node.
    pub node: u8,
    /// In which cycle.
    pub cycle: u64,
    /// When that cycle began.
    pub at_ns: u64,
    /// One word.
    pub event: String,
    /// All of it.
    pub detail: String,
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Record {
    /// What was run.
    pub settings: Settings,
    /// What was done, in order.
    pub deeds: Vec<Deed>,
    /// What the plant was offered, in its order.
    pub offers: Vec<Offer>,
    /// The cycles of each node, over all its lives.
    pub cycles: [Vec<NodeCycle>; 2],
    /// What both nodes told, by time.
    pub said: Vec<Said>,
}

impl Record {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, StandbyError> {
        let path = folder.join("run.json");
        let settings = serde_json::from_str(&text(&path)?)
            .map_err(|error| StandbyError::line(&path, 1, &error.to_string()))?;
        let mut record = Self {
            settings,
            deeds: lines(&folder.join("deeds"), parse_deed)?,
            offers: lines(&folder.join("plant.log"), parse_offer)?,
            cycles: [vec![], vec![]],
            said: vec![],
        };
        for node in [0, 1] {
            for life in 1.. {
                let log = node_file(folder, node, life, "log");
                if !log.exists() {
                    break;
                }
                record.cycles[usize::from(node)].extend(lines(&log, parse_cycle)?);
                let events = node_file(folder, node, life, "events");
                let said = lines(&events, |line| serde_json::from_str(line).ok())?;
                record.said.extend(said);
            }
        }
        record.said.sort_by_key(|said: &Said| said.at_ns);
        record.forget_after_end();
        Ok(record)
    }

    /// What happens while the processes are ended is not of the run.
    fn forget_after_end(&mut self) {
        let Some(end_ns) = self.deeds.iter().find(|deed| deed.what == "end") else {
            return;
        };
        let end_ns = end_ns.at_ns;
        self.offers.retain(|offer| offer.at_ns < end_ns);
        self.said.retain(|said| said.at_ns < end_ns);
        for cycles in &mut self.cycles {
            cycles.retain(|cycle| cycle.begin_ns < end_ns);
        }
    }
}

/// A file of one life of a node; lives count from 1.
pub fn node_file(folder: &Path, node: u8, life: u32, kind: &str) -> PathBuf {
    folder.join(format!("node{node}-{life}.{kind}"))
}

/// The last whole cycle in a node's log.
pub fn last_cycle(path: &Path) -> Option<NodeCycle> {
    let bytes = std::fs::read(path).ok()?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
    let line = bytes[..end].rsplit(|byte| *byte == b'\n').next()?;
    parse_cycle(std::str::from_utf8(line).ok()?)
}

/// The last output in the plant's log that it accepted before this moment.
pub fn last_accepted(path: &Path, until_ns: u64) -> Option<Offer> {
    let offers = lines(path, parse_offer).ok()?;
    let mut offers = offers.into_iter();
    offers.rfind(|offer| offer.refusal.is_none() && offer.at_ns < until_ns)
}

fn text(path: &Path) -> Result<String, StandbyError> {
    std::fs::read_to_string(path).map_err(|error: io::Error| StandbyError::File {
        doing: "read",
        path: path.to_owned(),
        error,
    })
}

fn lines<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StandbyError> {
    let text = text(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(index, line)| parse(line).ok_or_else(|| StandbyError::line(path, index + 1, line)))
        .collect()
}

fn parse_deed(line: &str) -> Option<Deed> {
    let [at_ns, what, node] = words(line)?;
    Some(Deed {
        at_ns: number(at_ns)?,
        what: what.to_owned(),
        node: number(node)?,
    })
}

fn parse_offer(line: &str) -> Option<Offer> {
    let [at_ns, node, counter, cycle, value, refusal] = words(line)?;
    Some(Offer {
        at_ns: number(at_ns)?,
        node: number(node)?,
        counter: number(counter)?,
        cycle: number(cycle)?,
        value: number(value)?,
        refusal: (refusal != "-").then(|| refusal.to_owned()),
    })
}

fn parse_cycle(line: &str) -> Option<NodeCycle> {
    let [cycle, begin_ns, late_ns, spent_ns, state, _] = words(line)?;
    Some(NodeCycle {
        cycle: number(cycle)?,
        begin_ns: number(begin_ns)?,
        late_ns: number(late_ns)?,
        spent_ns: number(spent_ns)?,
        state: state.to_owned(),
    })
}

fn words<const N: usize>(line: &str) -> Option<[&str; N]> {
    let words: Vec<&str> = line.split(' ').collect();
    words.try_into().ok()
}

fn number<T: FromStr>(word: &str) -> Option<T> {
    word.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written_and_others_are_not() {
        let offer = parse_offer("5 1 7 42 3.5 Superseded").expect("an offer");
        assert_eq!((offer.node, offer.counter, offer.cycle), (1, 7, 42));
        assert_eq!(offer.refusal.as_deref(), Some("Superseded"));
        assert_eq!(parse_offer("5 1 7 42 3.5 -").expect("one").refusal, None);
        assert!(parse_cycle("9 100 2 30 solo 1").expect("a cycle").drives());
        assert!(!parse_cycle("9 100 2 30 qualified -").expect("one").drives());
        for wrong in ["", "5 1 7 42 x -", "5 1 7 42 3.5", "5 1 7 42 3.5 - -"] {
            assert_eq!(parse_offer(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn an_unfinished_last_line_is_left_out_and_a_wrong_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("node0-1.log");
        std::fs::write(&path, "1 10 0 1 solo 1\n2 20 0 1 primary 2\n3 30").expect("written");
        assert_eq!(lines(&path, parse_cycle).expect("two cycles").len(), 2);
        assert_eq!(last_cycle(&path).map(|last| last.cycle), Some(2));
        std::fs::write(&path, "1 10 0 1 solo 1\nnonsense\n").expect("written");
        let error = lines(&path, parse_cycle).unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains("nonsense"),
            "{error}"
        );
    }
}
