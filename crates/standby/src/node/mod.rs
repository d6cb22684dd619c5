//! One node of the pair: the protocol core, without I/O.
//!
//! Contract: [`Node::tick`] is called once per control cycle, with the caller's monotonic clock, the
//! number of the cycle, the cycle's input, and all that arrived since the last one; it returns what is to
//! be sent. The same arguments give the same answer: no clock, no file, no socket, no randomness inside.
//! A node is `Clone + Eq + Hash`, so that a model checker runs this code itself.
//!
//! ```text
//!             hears a primary                 its state adopted, echoed, own ballot ready
//!   Init ───────────────────────▶ Syncing ──────────────────────────────────────▶ Qualified
//!    ▲ │                          ▲  │  ▲                                          │  │
//!    │ │ cold start:              │  │  └────────── a new epoch, no ballot ────────┘  │ miss_limit silent
//!    │ │ the partner's consent,   │  │ silence                                        │ cycles, or asked
//!    │ │ the authority's,         │  ▼                                                │
//!    │ │ or an operator's        Init      Disqualified(reason) ◀── mismatch, refusal ┤
//!    │ └───────────────────┐     ▲                                                    │
//!    │                     ▼     │ a higher epoch drives                              ▼
//!    │                    Solo ◀─┴──────────────▶ Primary ◀────────────────────────── ┘
//!    │                     │  partner qualified / lost    │
//!    │                     └── no answer of the actuator ─┴──▶ Suspended ── it answers ──▶ Solo
//!    └── Maintenance (an operator's order, from any standing but the primary's)
//! ```
//!
//! Which file decides what: `hear` what counts and what level is known, `follow` what is adopted and when
//! a standby is qualified, `office` who drives, `switch_over` orderly changes, `emit` what is said, `condition` alarms and
//! status.

mod condition;
mod emit;
mod follow;
mod hear;
mod office;
mod partner;
mod shadow;
mod status;
mod switch_over;

use std::sync::Arc;

pub use condition::Counts;
pub use partner::PathHealth;
pub use status::{PartnerStatus, Redundancy, State, Status};
pub use switch_over::{Command, CommandError};

use crate::checkpoint::Controller;
use crate::config::{Config, ConfigError, Mode};
use crate::epoch::Epoch;
use crate::event::{Event, Reason};
use crate::message::{Fragment, Heartbeat, Received, Request, Standing};
use crate::transfer::{Receiver, Sender};
use crate::unhashed::Unhashed;
use condition::Condition;
use partner::Partner;
use shadow::{Digest, Shadow};
use switch_over::{SwitchOver, TestRun};

/// A node of the pair.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node<C: Controller> {
    config: Unhashed<Arc<Config>>,
    incarnation: u64,
    /// `None` before the first tick.
    last: Option<Last>,
    standing: Standing,
    /// Why, while `Disqualified`.
    reason: Option<Reason>,
    /// Own epoch while `Primary` or `Suspended`; else that of the last own term.
    epoch: Epoch,
    /// The highest epoch known.
    level: Epoch,
    /// The next own epoch, granted for good.
    ballot: Option<Epoch>,
    /// Since when the authority knew of no output, when it was last asked; and in which cycle that was.
    idle: Option<(u64, u64)>,
    partner: Partner,
    /// The primary that is followed has this epoch.
    followed: Option<Epoch>,
    /// Own ticks since the followed primary was heard; while nobody is followed, since that began.
    silent_cycles: u32,
    /// When that was; unit: ns.
    heard_at_ns: u64,
    /// Own ticks since a complete state was adopted.
    adopted_ago_cycles: u32,
    shadow: Shadow<C, C::Input>,
    sender: Sender,
    receiver: Receiver,
    /// The last cycle whose request the actuator answered under the own epoch.
    acked_seq: u64,
    /// Which life of the actuator was heard last; 0: none.
    actuator: u64,
    /// It waits for a confirmation.
    actuator_is_unclaimed: bool,
    /// Own ticks without any answer of the actuator.
    unanswered_cycles: u32,
    input_mismatches: u32,
    programs_differ: bool,
    schemas_differ: bool,
    /// The last complete state was refused.
    checkpoint_is_bad: bool,
    switch_over: Option<SwitchOver>,
    test: Option<TestRun>,
    /// When the next scheduled test is due; unit: ns.
    test_due_ns: Option<u64>,
    last_test_failed: bool,
    /// As a test: after so many more cycles the role goes back.
    return_in_cycles: Option<u32>,
    qualified_since_ns: Option<u64>,
    /// Times of the last promotions, oldest first, at most as many as the budget allows; unit: ns.
    promotions_ns: Vec<u64>,
    hold_off_cycles: u32,
    holds_sync: bool,
    forced: bool,
    condition: Unhashed<Condition>,
}

/// The last tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Last {
    cycle: u64,
    now_ns: u64,
}

/// What one cycle sends, wants and reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick<V> {
    /// For the partner, over every path; `None` only when the cycle was refused.
    pub heartbeat: Option<Heartbeat>,
    /// For the partner, over every path, after the heartbeat.
    pub fragments: Vec<Fragment>,
    /// For the actuator.
    pub request: Option<Request<V>>,
    /// For the authority: an epoch above this one is wanted. Said again until it is granted.
    pub ballot_wanted: Option<Epoch>,
    /// What happened in this cycle.
    pub events: Vec<Event>,
}

impl<C: Controller> Node<C> {
    /// A node that knows nothing yet. `incarnation` is random, not 0, and new at each start.
    ///
    /// # Errors
    /// The settings cannot work.
    pub fn new(config: Config, incarnation: u64, controller: C) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            incarnation,
            last: None,
            standing: Standing::Init,
            reason: None,
            epoch: Epoch::NONE,
            level: Epoch::NONE,
            ballot: None,
            idle: None,
            partner: Partner::unknown(config.miss_limit),
            followed: None,
            silent_cycles: 0,
            heard_at_ns: 0,
            adopted_ago_cycles: 0,
            shadow: Shadow::new(controller, config.history_cycles),
            sender: Sender::new(config.full_every, config.part_len_max),
            receiver: Receiver::new(config.state_len_max, config.part_len_max),
            acked_seq: 0,
            actuator: 0,
            actuator_is_unclaimed: false,
            unanswered_cycles: 0,
            input_mismatches: 0,
            programs_differ: false,
            schemas_differ: false,
            checkpoint_is_bad: false,
            switch_over: None,
            test: None,
            test_due_ns: None,
            last_test_failed: false,
            return_in_cycles: None,
            qualified_since_ns: None,
            promotions_ns: Vec::new(),
            hold_off_cycles: 0,
            holds_sync: false,
            forced: false,
            condition: Unhashed(Condition::new(config.paths)),
            config: Unhashed(Arc::new(config)),
        })
    }

    /// One control cycle.
    ///
    /// `now_ns` is a monotonic clock; `cycle` rises with it and is the same number on both nodes for the
    /// same input. A cycle that does not rise is refused: nothing changes, nothing is sent.
    pub fn tick(
        &mut self,
        now_ns: u64,
        cycle: u64,
        input: &C::Input,
        received: &[Received],
    ) -> Tick<C::Output> {
        let mut events = Vec::new();
        if let Some(last) = self.last
            && cycle <= last.cycle
        {
            events.push(Event::CycleRefused {
                found: cycle,
                last: last.cycle,
            });
            return Tick {
                heartbeat: None,
                fragments: Vec::new(),
                request: None,
                ballot_wanted: None,
                events,
            };
        }
        let now = Now {
            ns: now_ns,
            cycle,
            last: self.last,
        };
        let input_digest = self.shadow.read(cycle, input);
        self.age(&now, &mut events);
        let heard = self.hear(&now, received, &mut events);
        self.follow(&now, &heard, &mut events);
        self.hold_office(&now, &heard, &mut events);
        if self.is_owner() {
            self.shadow.step(cycle, Digest::NotNeeded);
        } else if self.config.0.mode == Mode::Hot && self.has_state() {
            self.shadow.step(cycle, Digest::ForComparison);
        }
        self.assess(&mut events);
        self.last = Some(Last { cycle, now_ns });
        self.emit(&now, input_digest, events)
    }

    /// The loop's state now.
    #[must_use]
    pub fn controller(&self) -> &C {
        self.shadow.controller()
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config.0
    }

    /// Which life of the node this is.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The last state that was adopted: of which epoch, after which cycle.
    #[must_use]
    pub fn adopted(&self) -> (Epoch, u64) {
        self.shadow.adopted()
    }

    /// So many more silent cycles are waited before a takeover.
    pub fn set_hold_off(&mut self, cycles: u32) {
        self.hold_off_cycles = cycles;
    }

    fn is_owner(&self) -> bool {
        matches!(self.standing, Standing::Primary | Standing::Suspended)
    }

    fn has_state(&self) -> bool {
        self.shadow.adopted().0 != Epoch::NONE
    }

    fn is_flapping(&self, now: &Now) -> bool {
        let Some(budget) = self.config.0.flap_budget else {
            return false;
        };
        self.promotions_ns.len() >= budget.promotions as usize
            && self
                .promotions_ns
                .first()
                .is_some_and(|first_ns| now.ns.saturating_sub(*first_ns) < budget.window_ns)
    }

    /// What the passing of a cycle does by itself.
    fn age(&mut self, now: &Now, events: &mut Vec<Event>) {
        let config = &self.config.0;
        let silent_end = config
            .miss_limit
            .saturating_add(self.hold_off_cycles)
            .saturating_add(
                config
                    .flap_budget
                    .map_or(0, |budget| budget.hold_off_cycles),
            );
        // Saturating, here and below: so that states that behave the same are the same.
        let aged = |cycles: u32, end: u32| cycles.saturating_add(1).min(end);
        self.silent_cycles = aged(self.silent_cycles, silent_end);
        self.partner.silent_cycles = aged(self.partner.silent_cycles, config.miss_limit);
        self.adopted_ago_cycles = aged(self.adopted_ago_cycles, config.stale_cycles());
        if config.probe_cycles > 0 {
            self.unanswered_cycles = aged(self.unanswered_cycles, config.unanswered_max() + 1);
        }
        let silence_ns = config.period_ns.saturating_mul(silent_end.into());
        self.heard_at_ns = self.heard_at_ns.max(now.ns.saturating_sub(silence_ns));
        let lease_end = u64::from(config.lease_cycles).saturating_add(1);
        self.acked_seq = self.acked_seq.max(now.cycle.saturating_sub(lease_end));
        if now.is_after_pause(config.period_ns) {
            self.silent_cycles = 0;
            self.heard_at_ns = now.ns;
            events.push(Event::OwnPause {
                gap_ns: now.gap_ns(),
            });
        }
        if now.last.is_none() {
            self.heard_at_ns = now.ns;
            self.acked_seq = now.cycle;
        }
    }
}

/// This tick, and the one before.
#[derive(Debug, Clone, Copy)]
struct Now {
    ns: u64,
    cycle: u64,
    last: Option<Last>,
}

impl Now {
    fn gap_ns(&self) -> u64 {
        self.last
            .map_or(0, |last| self.ns.saturating_sub(last.now_ns))
    }

    /// The node was late by most of a period: what it would have heard may be lost.
    fn is_after_pause(&self, period_ns: u64) -> bool {
        self.gap_ns() > period_ns.saturating_add(period_ns / 4 * 3)
    }
}
