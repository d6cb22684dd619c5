//! What a pair agrees on, checked before anything runs.

use thiserror::Error;

use crate::epoch::NodeId;

/// How much the standby does before it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Runs the loop on the same inputs: its first output continues the last one.
    Hot,
    /// Adopts every checkpoint, runs nothing: its first output is as old as the last checkpoint.
    Warm,
    /// Adopts nothing: starts from the initial state.
    Cold,
}

/// The giving back of the role to the preferred node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Preempt {
    /// How long the preferred node must have been qualified without a break; unit: ns.
    pub delay_ns: u64,
}

/// A switch-over by schedule, there and back, so that the path is known to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SwitchTest {
    /// From one test to the next; unit: ns.
    pub every_ns: u64,
    /// How long the partner drives before it gives the role back; unit: cycles.
    pub dwell_cycles: u32,
}

/// How many changes of role are normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlapBudget {
    /// So many promotions of this node are let pass in one window.
    pub promotions: u32,
    /// The window; unit: ns.
    pub window_ns: u64,
    /// Beyond the budget, a takeover waits for so many more silent cycles, and nothing is preempted.
    pub hold_off_cycles: u32,
}

/// The settings of one node. Both nodes of a pair have the same, but for `node` and `partner`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// Names the pair; frames of others are dropped.
    pub cluster: u64,
    /// This node.
    pub node: NodeId,
    /// The other one.
    pub partner: NodeId,
    /// Hash of the control program. A standby with another one is never qualified.
    pub program: u64,
    /// The cycle; unit: ns.
    pub period_ns: u64,
    /// Silent cycles after which a qualified standby takes over.
    pub miss_limit: u32,
    /// The longest pause that either node may legally make (a flash erase, a collector); unit: ns.
    pub longest_pause_ns: u64,
    /// Without an answer of the actuator for so many cycles, the primary stops driving.
    pub lease_cycles: u32,
    /// What the standby does.
    pub mode: Mode,
    /// A full checkpoint every so many cycles, deltas between; 1: always full.
    pub full_every: u32,
    /// Bytes of state that one frame carries at most.
    pub part_len_max: u32,
    /// The longest state, in bytes: what the receiver is ready to hold.
    pub state_len_max: u32,
    /// Cycles whose inputs are kept, to bring a late checkpoint up to date.
    pub history_cycles: u32,
    /// A standby asks the actuator for its level every so many cycles; 0: never.
    pub probe_cycles: u32,
    /// Further than this above the known level, an epoch is not believed.
    pub epoch_jump_max: u64,
    /// Independent ways to the partner: 1 or 2.
    pub paths: u8,
    /// Cycles of silence after which a path counts as broken.
    pub path_silent_max: u32,
    /// Further behind the newest heartbeat over any path than so many cycles, one counts as late: how much
    /// the paths may differ in latency.
    pub late_cycles: u32,
    /// A standby whose inputs differ for two cycles is disqualified, not only alarmed.
    pub input_mismatch_disqualifies: bool,
    /// Whether this node is the one that shall be primary. At most one of the pair.
    pub preferred: bool,
    /// Whether the preferred node gets the role back by itself; `None`: only an operator gives it back.
    pub preempt: Option<Preempt>,
    /// A promise that a switch-over works, renewed by schedule.
    pub switch_test: Option<SwitchTest>,
    /// So many cycles may a switch-over take before the primary keeps the role.
    pub switch_over_cycles: u32,
    /// What is too often; `None`: nothing is.
    pub flap_budget: Option<FlapBudget>,
}

impl Config {
    /// A hot pair of this cluster with the defaults of the crate: three missed cycles, no automatic
    /// switch-back, no scheduled test.
    #[must_use]
    pub fn new(cluster: u64, node: NodeId, partner: NodeId, period_ns: u64) -> Self {
        Self {
            cluster,
            node,
            partner,
            program: 0,
            period_ns,
            miss_limit: 3,
            longest_pause_ns: period_ns,
            lease_cycles: 2,
            mode: Mode::Hot,
            full_every: 16,
            part_len_max: 1200,
            state_len_max: 1 << 20,
            history_cycles: 16,
            probe_cycles: 1,
            epoch_jump_max: 1024,
            paths: 1,
            path_silent_max: 8,
            late_cycles: 2,
            input_mismatch_disqualifies: false,
            preferred: false,
            preempt: None,
            switch_test: None,
            switch_over_cycles: 10,
            flap_budget: Some(FlapBudget {
                promotions: 8,
                window_ns: 3_600_000_000_000,
                hold_off_cycles: 10,
            }),
        }
    }

    /// From the last arrival to the takeover; unit: ns.
    #[must_use]
    pub const fn timeout_ns(&self) -> u64 {
        self.period_ns.saturating_mul(self.miss_limit as u64)
    }

    /// Cycles without a complete checkpoint after which a standby's state is too old to go on from.
    #[must_use]
    pub(crate) const fn stale_cycles(&self) -> u32 {
        self.full_every
            .saturating_mul(2)
            .saturating_add(self.history_cycles)
    }

    /// Cycles without an answer of the actuator that a standby bears.
    #[must_use]
    pub(crate) const fn unanswered_max(&self) -> u32 {
        self.probe_cycles.saturating_add(self.path_silent_max)
    }

    /// Everything that cannot work, found before it is tried.
    ///
    /// # Errors
    /// The first setting that cannot work, with its limit.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let at_least = |what, found: u64, limit: u64| {
            if found < limit {
                return Err(ConfigError::TooLow { what, found, limit });
            }
            Ok(())
        };
        if self.node == self.partner {
            return Err(ConfigError::EqualIds { node: self.node });
        }
        at_least("period_ns", self.period_ns, 1)?;
        at_least("miss_limit", self.miss_limit.into(), 2)?;
        if self.timeout_ns() <= self.longest_pause_ns {
            return Err(ConfigError::TimeoutInsidePause {
                timeout_ns: self.timeout_ns(),
                longest_pause_ns: self.longest_pause_ns,
            });
        }
        at_least("lease_cycles", self.lease_cycles.into(), 1)?;
        if self.lease_cycles >= self.miss_limit {
            return Err(ConfigError::LeaseOutlivesTimeout {
                lease_cycles: self.lease_cycles,
                miss_limit: self.miss_limit,
            });
        }
        at_least("full_every", self.full_every.into(), 1)?;
        at_least("part_len_max", self.part_len_max.into(), 64)?;
        at_most("part_len_max", self.part_len_max.into(), 60_000)?;
        at_least("state_len_max", self.state_len_max.into(), 1)?;
        at_most("state_len_max", self.state_len_max.into(), 1 << 30)?;
        at_least(
            "history_cycles",
            self.history_cycles.into(),
            u64::from(self.miss_limit) + 1,
        )?;
        at_most("history_cycles", self.history_cycles.into(), 4096)?;
        at_least("epoch_jump_max", self.epoch_jump_max, 2)?;
        at_least("paths", self.paths.into(), 1)?;
        at_most("paths", self.paths.into(), 2)?;
        at_least(
            "path_silent_max",
            self.path_silent_max.into(),
            self.miss_limit.into(),
        )?;
        at_most("late_cycles", self.late_cycles.into(), 63)?;
        at_least("switch_over_cycles", self.switch_over_cycles.into(), 3)?;
        if let Some(budget) = self.flap_budget {
            at_least("flap_budget.promotions", budget.promotions.into(), 1)?;
            at_most("flap_budget.promotions", budget.promotions.into(), 256)?;
        }
        if let Some(test) = self.switch_test {
            at_least("switch_test.dwell_cycles", test.dwell_cycles.into(), 3)?;
            let shortest_ns = self.period_ns.saturating_mul(
                u64::from(test.dwell_cycles) + 2 * u64::from(self.switch_over_cycles),
            );
            at_least("switch_test.every_ns", test.every_ns, shortest_ns)?;
        }
        Ok(())
    }
}

fn at_most(what: &'static str, found: u64, limit: u64) -> Result<(), ConfigError> {
    if found > limit {
        return Err(ConfigError::TooHigh { what, found, limit });
    }
    Ok(())
}

/// A setting that cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A node cannot be its own partner.
    #[error("node and partner have the same id {node}")]
    EqualIds {
        /// The id.
        node: NodeId,
    },
    /// Every such pause would be a false takeover.
    #[error(
        "takeover after {timeout_ns} ns (miss_limit x period), inside the declared longest pause of \
         {longest_pause_ns} ns"
    )]
    TimeoutInsidePause {
        /// `miss_limit * period_ns`.
        timeout_ns: u64,
        /// As declared.
        longest_pause_ns: u64,
    },
    /// A cut-off primary would still drive when its standby takes over.
    #[error(
        "lease of {lease_cycles} cycles, must end before the takeover after {miss_limit} cycles"
    )]
    LeaseOutlivesTimeout {
        /// As configured.
        lease_cycles: u32,
        /// As configured.
        miss_limit: u32,
    },
    /// Below its limit.
    #[error("{what} is {found}, wanted at least {limit}")]
    TooLow {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: u64,
        /// Its limit.
        limit: u64,
    },
    /// Above its limit.
    #[error("{what} is {found}, wanted at most {limit}")]
    TooHigh {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: u64,
        /// Its limit.
        limit: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::new(1, NodeId(0), NodeId(1), 10_000_000)
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(config().validate(), Ok(()));
    }

    #[test]
    fn a_miss_limit_of_0_or_1_is_refused_with_its_limit() {
        for found in [0, 1] {
            let mut config = config();
            config.miss_limit = found;
            assert_eq!(
                config.validate(),
                Err(ConfigError::TooLow {
                    what: "miss_limit",
                    found: found.into(),
                    limit: 2
                })
            );
        }
    }

    #[test]
    fn a_timeout_inside_the_longest_legal_pause_is_refused() {
        let mut config = config();
        config.longest_pause_ns = 30_000_000;
        let error = config.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "takeover after 30000000 ns (miss_limit x period), inside the declared longest pause of \
             30000000 ns"
        );
    }

    #[test]
    fn equal_ids_are_refused() {
        let mut config = config();
        config.partner = config.node;
        assert_eq!(
            config.validate(),
            Err(ConfigError::EqualIds { node: NodeId(0) })
        );
    }

    #[test]
    fn a_lease_that_outlives_the_timeout_is_refused() {
        let mut config = config();
        config.lease_cycles = 3;
        assert!(matches!(
            config.validate(),
            Err(ConfigError::LeaseOutlivesTimeout { .. })
        ));
    }

    #[test]
    fn a_switch_test_that_cannot_end_before_the_next_is_refused() {
        let mut config = config();
        config.switch_test = Some(SwitchTest {
            every_ns: 100_000_000,
            dwell_cycles: 10,
        });
        assert!(matches!(config.validate(), Err(ConfigError::TooLow { .. })));
    }
}
