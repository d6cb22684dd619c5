//! The configurations: where the pair begins, what may go wrong, how long it is watched.

use crate::outcomes::Outcome;

/// Who grants epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// Each node's own file.
    File,
    /// The actuator.
    Witness,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Neither node has run.
    Cold,
    /// Node 0 drives, node 1 is qualified, nothing is in flight.
    Steady,
    /// The link has then been cut until node 1 took over; node 0 drives on and knows of nothing.
    Split {
        /// The plant has applied node 1's output too.
        is_applied: bool,
    },
    /// Node 1 has then ended, before its next epoch was durable, and started anew.
    Restarted,
}

/// So many times each may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A node ends at once.
    pub crashes: u8,
    /// A node that has ended starts anew.
    pub restarts: u8,
    /// A node misses a cycle.
    pub pauses: u8,
    /// A message is delayed, and arrives at any time later.
    pub delays: u8,
    /// A message that reaches a node stays on its way to it, to be delivered once more.
    pub duplicates: u8,
    /// The actuator ends and starts anew.
    pub actuator_restarts: u8,
    /// The primary is told to hand over.
    pub switch_overs: u8,
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// What it is called.
    pub name: &'static str,
    /// Where it begins.
    pub start: Start,
    /// Who grants epochs.
    pub authority: Authority,
    /// Control cycles of each node from the start on.
    pub ticks: u64,
    /// So many cycles may one node be ahead of the other.
    pub drift: u64,
    /// What may go wrong.
    pub faults: Budget,
    /// What must be seen.
    pub wanted: &'static [Outcome],
    /// Generated states after which the search is given up.
    pub states_max: usize,
    /// A repair that the environment takes away.
    pub lacks: Option<Lack>,
}

/// What the environment can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A crash loses which epochs were granted.
    BallotsOnDisk,
    /// A restart of the actuator loses its level, and it believes anybody.
    ActuatorMemory,
}

const NOTHING: Budget = Budget {
    crashes: 0,
    restarts: 0,
    pauses: 0,
    delays: 0,
    duplicates: 0,
    actuator_restarts: 0,
    switch_overs: 0,
};

const STEADY: Setup = Setup {
    name: "a crash",
    start: Start::Steady,
    authority: Authority::File,
    ticks: 6,
    drift: 1,
    faults: Budget {
        crashes: 1,
        ..NOTHING
    },
    wanted: &[
        Outcome::Takeover,
        Outcome::TakeoverApplied,
        Outcome::Refused,
    ],
    states_max: 60_000_000,
    lacks: None,
};

const COLD: Setup = Setup {
    name: "cold start",
    start: Start::Cold,
    faults: NOTHING,
    wanted: &[Outcome::ColdStart],
    ..STEADY
};

const ACTUATOR: Setup = Setup {
    name: "actuator restart",
    ticks: 4,
    faults: Budget {
        actuator_restarts: 1,
        ..NOTHING
    },
    ..STEADY
};

const HAND_OVER: Setup = Setup {
    name: "switch-over under loss",
    ticks: 4,
    faults: Budget {
        switch_overs: 1,
        ..NOTHING
    },
    wanted: &[Outcome::SwitchOver, Outcome::TakeoverApplied],
    ..STEADY
};

const LONG: Setup = Setup {
    name: "a crash and a restart, far apart",
    ticks: 5,
    drift: 4,
    faults: Budget {
        crashes: 1,
        restarts: 1,
        ..NOTHING
    },
    wanted: &[
        Outcome::Takeover,
        Outcome::TakeoverApplied,
        Outcome::Requalified,
    ],
    ..STEADY
};

const SPLIT: Setup = Setup {
    name: "two primaries, a crash and a restart",
    start: Start::Split { is_applied: true },
    ticks: 4,
    faults: LONG.faults,
    wanted: &[Outcome::Renewal, Outcome::Requalified],
    ..STEADY
};

/// The selection for every run of all checks: complete within seconds.
pub const QUICK: [Setup; 4] = [
    Setup { ticks: 5, ..STEADY },
    Setup { ticks: 5, ..COLD },
    ACTUATOR,
    HAND_OVER,
];

/// Every configuration.
pub const ALL: [Setup; 10] = [
    STEADY,
    Setup {
        name: "a crash, a late message, a doubled one",
        ticks: 4,
        faults: Budget {
            crashes: 1,
            delays: 1,
            duplicates: 1,
            ..NOTHING
        },
        ..STEADY
    },
    COLD,
    ACTUATOR,
    LONG,
    SPLIT,
    Setup {
        name: "switch-over under loss and a crash",
        ticks: 5,
        faults: Budget {
            crashes: 1,
            switch_overs: 1,
            ..NOTHING
        },
        wanted: &[Outcome::SwitchOver, Outcome::TakeoverApplied],
        ..STEADY
    },
    Setup {
        name: "a pause",
        ticks: 5,
        faults: Budget {
            pauses: 1,
            ..NOTHING
        },
        ..STEADY
    },
    Setup {
        name: "the actuator as witness, a crash",
        authority: Authority::Witness,
        ticks: 5,
        wanted: &[Outcome::Takeover, Outcome::StartByAuthority],
        ..STEADY
    },
    Setup {
        name: "two crashes and restarts",
        faults: Budget {
            crashes: 2,
            restarts: 2,
            ..NOTHING
        },
        wanted: LONG.wanted,
        states_max: 20_000_000,
        ..STEADY
    },
];

/// What shows that a repair is missing: its name, and where to look.
pub const WITHOUT: [(&str, Setup); 5] = [
    (
        "unique-ballots",
        Setup {
            start: Start::Restarted,
            ticks: 4,
            drift: 2,
            faults: Budget {
                delays: 1,
                ..NOTHING
            },
            ..SPLIT
        },
    ),
    (
        "persisted-ballots",
        Setup {
            start: Start::Split { is_applied: false },
            lacks: Some(Lack::BallotsOnDisk),
            ticks: 5,
            drift: 3,
            ..SPLIT
        },
    ),
    (
        "actuator-memory",
        Setup {
            lacks: Some(Lack::ActuatorMemory),
            ..ACTUATOR
        },
    ),
    (
        "freshness",
        Setup {
            faults: Budget {
                delays: 1,
                ..NOTHING
            },
            ..STEADY
        },
    ),
    (
        "qualified-only",
        Setup {
            faults: LONG.faults,
            ..STEADY
        },
    ),
];
