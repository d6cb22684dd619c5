//! What a record proves.
//!
//! A takeover counts as *expected* when it is the first one after a fault, by the other node. Any other is
//! judged by the log of the node that was replaced: with an output in every cycle of the miss window and
//! in time, the takeover was *false*; silent for longer than the timeout by its own log, that node was
//! *late* itself; without outputs, as the plant had not answered within its lease, it was *suspended*;
//! anything between is *partly late*.

use super::record::{Deed, NodeCycle, Offer, Record, Said};

/// Outputs of so many cycles before the end are looked at.
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
    /// It had stopped its outputs, as the plant was late.
    Suspended,
    /// It was late, but for less than that.
    PartlyLate,
}

impl Deed {
    /// Whether it makes the node's standby hear nothing more.
    pub fn excuses_takeover(&self) -> bool {
        matches!(self.what.as_str(), "kill" | "stop" | "cut" | "hang")
    }

    /// Whether it undoes the fault.
    pub fn ends_fault(&self) -> bool {
        matches!(self.what.as_str(), "continue" | "heal" | "start")
    }
}

impl Record {
    /// What was done first that a takeover must follow; if there is no such thing, what was done first.
    pub fn fault(&self) -> Option<&Deed> {
        let mut deeds = self.deeds.iter();
        let excuse = deeds.find(|deed| deed.excuses_takeover());
        excuse.or_else(|| self.deeds.iter().find(|deed| deed.what != "end"))
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
        if gap_ns_max > timeout_ns {
            Judgement::Late
        } else if sent.iter().any(|cycle| !cycle.drives()) {
            Judgement::Suspended
        } else if in_time {
            Judgement::False
        } else {
            Judgement::PartlyLate
        }
    }

    /// Nodes that drive at the end: whose last cycle says so, or whose output was the last accepted one. 0
    /// when no output was accepted in the last tenth of a second or [`END_CYCLES`].
    pub fn primaries_at_end(&self) -> u64 {
        let Some(end_ns) = self.deeds.last().map(|deed| deed.at_ns) else {
            return 0;
        };
        let from_ns = end_ns.saturating_sub((END_CYCLES * self.settings.period_ns).max(END_NS));
        let mut offers = self.offers.iter();
        let writer = offers.rfind(|offer| offer.refusal.is_none() && offer.at_ns >= from_ns);
        let Some(writer) = writer.map(|offer| offer.node) else {
            return 0;
        };
        let drives = |node: u8| {
            let last = self.cycles[usize::from(node)].last();
            last.is_some_and(|last| last.drives() && last.begin_ns >= from_ns)
        };
        let nodes = [0, 1].into_iter();
        nodes
            .filter(|node| *node == writer || drives(*node))
            .count() as u64
    }

    /// What lateness did to the integrator between the fault and the takeover: the cycles that the new
    /// primary ran from the old one's last cycle before the fault until its first output, less those that
    /// the old one ran until its last output, less the cycles between the two outputs.
    pub fn lateness_steps(&self, fault: &Deed, last: &Offer, first: &Offer) -> f64 {
        let of = |node: u8| self.cycles[usize::from(node)].iter();
        let heard = of(fault.node).rfind(|cycle| cycle.sent_ns() <= fault.at_ns);
        let from = heard
            .map_or(last.cycle, |cycle| cycle.cycle)
            .min(last.cycle);
        let ran = |node: u8, until: u64| {
            of(node)
                .filter(|cycle| (from + 1..=until).contains(&cycle.cycle))
                .count() as f64
        };
        ran(first.node, first.cycle) - ran(fault.node, last.cycle) - cycles_between(last, first)
    }
}

/// From one output to the next; negative when the new primary's cycle is the earlier one.
pub fn cycles_between(last: &Offer, first: &Offer) -> f64 {
    first.cycle as f64 - last.cycle as f64
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
    fn a_takeover_from_a_node_that_was_suspended_is_told_apart() {
        let mut record = record();
        for cycle in &mut record.cycles[0][13..] {
            cycle.state = "disqualified".to_owned();
        }
        assert_eq!(record.judge(&takeover(115)), Judgement::Suspended);
    }

    #[test]
    fn cycles_that_a_late_node_left_out_are_told_in_steps() {
        let mut record = record();
        let (fault, last, first) = (deed(115, "kill", 0), offer(0, 1, 114), offer(1, 2, 118));
        assert_eq!(record.lateness_steps(&fault, &last, &first), 0.0);
        record.cycles[1].retain(|cycle| cycle.cycle != 116);
        assert_eq!(record.lateness_steps(&fault, &last, &first), -1.0);
        record.cycles[0].retain(|cycle| cycle.cycle != 113);
        // The old one left it out before the fault: the new one was told.
        assert_eq!(record.lateness_steps(&fault, &last, &first), -1.0);
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
