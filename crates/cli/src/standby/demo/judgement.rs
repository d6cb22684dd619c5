//! What a record proves.
//!
//! A takeover counts as *expected* when it is the first one after a fault, by the other node. Any other is
//! judged by the log of the node that was replaced: sent in every cycle of the miss window and in time,
//! the takeover was *false*; silent for longer than the timeout by its own log, that node was *late*
//! itself; anything between is *partly late*.

use super::record::{Deed, NodeCycle, Offer, Record, Said};

/// The pair is looked at for so many cycles before the end.
const END_CYCLES: u64 = 10;
/// But for at least that long; unit: ns.
const END_NS: u64 = 100_000_000;

/// Of a takeover that no fault explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The replaced node had sent all in time.
    False,
    /// It was silent for longer than the timeout.
    Late,
    /// It was late, but for less than that.
    PartlyLate,
}

impl Deed {
    /// Whether it undoes the fault.
    pub fn ends_fault(&self) -> bool {
        matches!(self.what.as_str(), "continue" | "heal" | "start")
    }
}

impl Record {
    /// What was done first.
    pub fn fault(&self) -> Option<&Deed> {
        self.deeds.iter().find(|deed| deed.what != "end")
    }

    /// The last accepted output before the new primary's first one, and that one.
    pub fn takeover_after(&self, fault: &Deed) -> Option<(&Offer, &Offer)> {
        let accepted: Vec<&Offer> = self
            .offers
            .iter()
            .filter(|offer| offer.refusal.is_none())
            .collect();
        let pair = accepted.windows(2).find(|pair| {
            let (last, first) = (pair[0], pair[1]);
            first.at_ns >= fault.at_ns && first.node != fault.node && first.counter > last.counter
        })?;
        Some((pair[0], pair[1]))
    }

    /// Outputs of each node.
    pub fn count(&self, of: impl Fn(&Offer) -> bool) -> [u64; 2] {
        [0, 1].map(|node| {
            let offers = self.offers.iter();
            offers
                .filter(|offer| offer.node == node && of(offer))
                .count() as u64
        })
    }

    /// Accepted though a higher epoch, or a later cycle of the same one, was accepted before.
    pub fn stale_accepted(&self) -> u64 {
        let mut highest = None;
        let mut stale = 0;
        for offer in self.offers.iter().filter(|offer| offer.refusal.is_none()) {
            // Of equal counters the lower node ranks higher.
            let place = (offer.counter, 255 - offer.node, offer.cycle);
            if highest.is_some_and(|highest| place <= highest) {
                stale += 1;
            }
            highest = highest.max(Some(place));
        }
        stale
    }

    /// Cycles of which outputs of both nodes were accepted.
    pub fn shared_cycles(&self) -> u64 {
        let cycles_of = |node: u8| -> std::collections::BTreeSet<u64> {
            let offers = self.offers.iter();
            let accepted = offers.filter(|offer| offer.node == node && offer.refusal.is_none());
            accepted.map(|offer| offer.cycle).collect()
        };
        cycles_of(0).intersection(&cycles_of(1)).count() as u64
    }

    /// The latest begin of a cycle of this node, but for what the fault did to it.
    pub fn late_ns_max(&self, node: u8) -> u64 {
        let victim = self.fault().filter(|fault| fault.node == node);
        let cycles = self.cycles[usize::from(node)].iter();
        let period_ns = self.settings.period_ns;
        let mut last: Option<&NodeCycle> = None;
        let mut late_ns_max = 0;
        for cycle in cycles {
            let skipped = last.map_or(0, |last| cycle.cycle.saturating_sub(last.cycle + 1));
            let was_stopped = victim.is_some_and(|fault| {
                last.is_some_and(|last| (last.begin_ns..=cycle.begin_ns).contains(&fault.at_ns))
            });
            if !was_stopped {
                late_ns_max = late_ns_max.max(cycle.late_ns + skipped * period_ns);
            }
            last = Some(cycle);
        }
        late_ns_max
    }

    /// What the replaced node's own log shows of the miss window before this takeover.
    pub fn judge(&self, takeover: &Said) -> Judgement {
        let period_ns = self.settings.period_ns;
        let timeout_ns = period_ns * u64::from(self.settings.miss);
        let from_ns = takeover.at_ns.saturating_sub(timeout_ns + period_ns);
        let cycles = &self.cycles[usize::from(1 - takeover.node)];
        let before = cycles.iter().rfind(|cycle| cycle.sent_ns() < from_ns);
        let inside = cycles
            .iter()
            .filter(|cycle| (from_ns..takeover.at_ns).contains(&cycle.sent_ns()));
        let sent: Vec<&NodeCycle> = before.into_iter().chain(inside).collect();
        let ends = sent.iter().map(|cycle| cycle.sent_ns()).skip(1);
        let gap_ns_max = sent
            .iter()
            .zip(ends.chain([takeover.at_ns]))
            .map(|(cycle, next_ns)| next_ns.saturating_sub(cycle.sent_ns()))
            .max()
            .unwrap_or(u64::MAX);
        let in_time = sent
            .windows(2)
            .all(|pair| pair[1].cycle == pair[0].cycle + 1)
            && sent
                .iter()
                .all(|cycle| cycle.late_ns + cycle.spent_ns < period_ns)
            && gap_ns_max < 2 * period_ns;
        match (in_time, gap_ns_max > timeout_ns) {
            (true, _) => Judgement::False,
            (false, true) => Judgement::Late,
            (false, false) => Judgement::PartlyLate,
        }
    }

    /// Nodes that drive at the end; 0 when no output is accepted any more.
    pub fn primaries_at_end(&self) -> u64 {
        let Some(end_ns) = self.deeds.last().map(|deed| deed.at_ns) else {
            return 0;
        };
        let window_ns = (END_CYCLES * self.settings.period_ns).max(END_NS);
        let window = end_ns.saturating_sub(window_ns)..end_ns;
        let writes = |node: u8| {
            let mut offers = self.offers.iter();
            offers.any(|offer| {
                offer.node == node && offer.refusal.is_none() && window.contains(&offer.at_ns)
            })
        };
        let drives = |node: u8| {
            let mut cycles = self.cycles[usize::from(node)].iter();
            let last = cycles.rfind(|cycle| window.contains(&cycle.begin_ns));
            last.is_some_and(NodeCycle::drives)
        };
        if !writes(0) && !writes(1) {
            return 0;
        }
        let nodes = [0, 1].into_iter();
        nodes.filter(|node| writes(*node) || drives(*node)).count() as u64
    }
}

/// A promotion after silence.
pub fn is_takeover(said: &Said) -> bool {
    said.event == "Promoted" && said.detail.contains("Takeover")
}

#[cfg(test)]
mod tests {
    use super::super::record::Settings;
    use super::*;

    const PERIOD_NS: u64 = 1_000_000;

    /// Node 0 drives in cycles 100 to 120, node 1 follows.
    fn record() -> Record {
        let cycle = |cycle, state: &str| NodeCycle {
            cycle,
            begin_ns: cycle * PERIOD_NS,
            late_ns: 0,
            spent_ns: 10_000,
            state: state.to_owned(),
        };
        Record {
            settings: Settings {
                fault: "none".to_owned(),
                link: "udp".to_owned(),
                period_ns: PERIOD_NS,
                miss: 3,
            },
            deeds: vec![deed(120, "end", 0)],
            offers: (100..=119).map(|cycle| offer(0, 1, cycle)).collect(),
            cycles: [
                (100..=119).map(|number| cycle(number, "primary")).collect(),
                (100..=119)
                    .map(|number| cycle(number, "qualified"))
                    .collect(),
            ],
            said: vec![],
        }
    }

    fn deed(cycle: u64, what: &str, node: u8) -> Deed {
        Deed {
            at_ns: cycle * PERIOD_NS,
            what: what.to_owned(),
            node,
        }
    }

    fn offer(node: u8, counter: u64, cycle: u64) -> Offer {
        Offer {
            at_ns: cycle * PERIOD_NS + 100_000,
            node,
            counter,
            cycle,
            value: cycle as f64,
            refusal: None,
        }
    }

    fn takeover(cycle: u64) -> Said {
        Said {
            node: 1,
            cycle,
            at_ns: cycle * PERIOD_NS + PERIOD_NS / 2,
            event: "Promoted".to_owned(),
            detail: "Promoted { cause: Takeover }".to_owned(),
        }
    }

    #[test]
    fn a_takeover_from_a_node_that_sent_all_in_time_is_false() {
        assert_eq!(record().judge(&takeover(115)), Judgement::False);
    }

    #[test]
    fn a_takeover_from_a_node_that_was_silent_for_the_timeout_is_its_own_fault() {
        let mut record = record();
        record.cycles[0].retain(|cycle| !(110..=114).contains(&cycle.cycle));
        assert_eq!(record.judge(&takeover(114)), Judgement::Late);
        assert_eq!(record.late_ns_max(0), 5 * PERIOD_NS);
    }

    #[test]
    fn a_takeover_from_a_node_that_left_out_one_cycle_is_neither() {
        let mut record = record();
        record.cycles[0].retain(|cycle| cycle.cycle != 113);
        assert_eq!(record.judge(&takeover(115)), Judgement::PartlyLate);
    }

    #[test]
    fn an_output_below_the_level_or_of_an_earlier_cycle_is_stale_when_accepted() {
        let mut record = record();
        assert_eq!(record.stale_accepted(), 0);
        record.offers.push(offer(1, 2, 120));
        assert_eq!(record.stale_accepted(), 0);
        record.offers.push(offer(0, 1, 121));
        record.offers.push(offer(1, 2, 120));
        assert_eq!(record.stale_accepted(), 2);
        // Of equal counters the lower node ranks higher.
        record.offers.push(offer(0, 2, 121));
        assert_eq!(record.stale_accepted(), 2);
        record.offers.push(offer(1, 2, 122));
        assert_eq!(record.stale_accepted(), 3);
    }

    #[test]
    fn the_end_has_one_primary_two_or_none() {
        let mut record = record();
        assert_eq!(record.primaries_at_end(), 1);
        for cycle in &mut record.cycles[1] {
            cycle.state = "solo".to_owned();
        }
        assert_eq!(record.primaries_at_end(), 2);
        for offer in &mut record.offers {
            offer.refusal = Some("Superseded".to_owned());
        }
        assert_eq!(record.primaries_at_end(), 0);
    }

    #[test]
    fn the_takeover_after_a_fault_is_the_other_nodes_first_accepted_output() {
        let mut record = record();
        let fault = deed(119, "kill", 0);
        assert_eq!(record.takeover_after(&fault), None);
        record.offers.push(offer(1, 2, 123));
        record.offers.push(offer(1, 2, 124));
        let (last, first) = record.takeover_after(&fault).expect("a takeover");
        assert_eq!((last.cycle, first.cycle), (119, 123));
    }
}
