//! The operations that are swept: who is there, what the victim does, what the survivors are owed.

use anyhow::Result;

use crate::elections::Before;
use crate::stage::Stage;
use crate::victim::{MOVED, OWN, ROOMY, TAKEN, THEIRS, TIGHT, Window};
use crate::{barriers, elections, mailboxes, openers, owners, rings, watchdogs};

/// Who and what is there when the victim comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// No table.
    NoTable,
    /// A table of so many slots.
    Table(usize),
    /// A table in which somebody who did this part died before the victim came.
    DiedBefore(usize, &'static str),
    /// A table in which somebody who did this part dies when the victim's window opens.
    DiesAtTheWindow(&'static str),
    /// A table in which a survivor is registered and does not beat.
    LateOwner,
    /// A barrier at which a survivor has joined: it waits when the victim has joined too, or is dead.
    Barrier {
        /// Whether it waits while the victim lives.
        waits_for_victim: bool,
    },
    /// An election in which a survivor was before.
    Election(Before),
    /// A mailbox of a standby pair, with a survivor at the other end.
    Mailbox,
    /// A node's diagnostic tag, with a survivor that reads it.
    Tag,
    /// A ring into which the victim pushes, with its consumer.
    Ring,
    /// A ring that the victim drains, with its next consumer.
    DrainedRing,
    /// A black box, with a survivor that reads it.
    BlackBox,
    /// As `DiedBefore` with a busy one, and then the machine was started again.
    EarlierBoot,
}

/// Who looks at what the victim leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// Watchdogs and registrants.
    Reclaim,
    /// Watchdogs and registrants, who have no certificate to look at.
    ByPid,
    /// The owner that the victim was about to fence, then watchdogs and registrants.
    LateOwner,
    /// Whoever opens the path next, and creates the table if there is none.
    Open,
    /// Those who have the old table open, and whoever opens the path next.
    Reset,
}

/// What a victim does with the units that it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// Marks them: before that they are in flight nowhere.
    Mark,
    /// Publishes and completes them: they are handed back, or their results are there.
    Complete,
    /// Acknowledges them: they are handed back once more, or acknowledged by the victim.
    Acknowledge,
}

/// What the survivors are owed.
#[derive(Debug, Clone, Copy)]
pub struct Owed {
    /// Units that are handed back.
    pub must: &'static [u32],
    /// Units that the victim moves inside its window.
    pub may: &'static [u32],
    /// How it moves them.
    pub moves: Moves,
    /// How many owners gave their slot back before the window.
    pub releases: u32,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name, by which it can be swept alone.
    pub name: &'static str,
    /// Who is there.
    pub scene: Scene,
    /// The victim.
    pub act: fn(&Stage, &Window) -> Result<()>,
    /// Who looks.
    pub survivors: Survivors,
    /// What is owed.
    pub owed: Owed,
}

/// Nothing is in flight.
pub const NOTHING: Owed = Owed {
    must: &[],
    may: &[],
    moves: Moves::Mark,
    releases: 0,
};
/// All that the victim has in flight.
const OF_THE_VICTIM: Owed = Owed {
    must: &OWN,
    ..NOTHING
};
/// What the victim has in flight but one, which it moves.
pub const ALL_BUT_THE_MOVED: Owed = Owed {
    must: &[OWN[0], OWN[2]],
    may: &[MOVED],
    ..NOTHING
};
/// All that somebody who dies beside the victim has in flight.
pub const OF_THE_DEAD: Owed = Owed {
    must: &THEIRS,
    ..NOTHING
};

/// An operation after which watchdogs and registrants look.
pub const fn operation(
    name: &'static str,
    scene: Scene,
    act: fn(&Stage, &Window) -> Result<()>,
    owed: Owed,
) -> Operation {
    Operation {
        name,
        scene,
        act,
        survivors: Survivors::Reclaim,
        owed,
    }
}

const fn seen_by(survivors: Survivors, operation: Operation) -> Operation {
    Operation {
        survivors,
        ..operation
    }
}

/// Every operation of region, table, watchdog, keeper, lease, barrier, election, standby pair and ring.
pub static OPERATIONS: [Operation; 41] = {
    use Scene::{DiedBefore, DiesAtTheWindow, EarlierBoot, LateOwner, NoTable, Table};
    use Survivors as By;
    const BUSY: Scene = DiedBefore(ROOMY, "busy");
    const LED: Scene = Scene::Election(Before::Led);
    const STANDS: Scene = Scene::Election(Before::Stands);
    const ELSEWHERE: Scene = Scene::Election(Before::LedElsewhere);
    const ALONE: Scene = Scene::Barrier {
        waits_for_victim: false,
    };
    const AWAITED: Scene = Scene::Barrier {
        waits_for_victim: true,
    };
    [
        // The owner's.
        operation("beat", Table(ROOMY), owners::beat, OF_THE_VICTIM),
        operation("mark", Table(ROOMY), owners::mark_one, ALL_BUT_THE_MOVED),
        operation(
            "complete",
            Table(ROOMY),
            owners::complete,
            Owed {
                moves: Moves::Complete,
                ..ALL_BUT_THE_MOVED
            },
        ),
        operation(
            "change-profile",
            Table(ROOMY),
            owners::change_profile,
            OF_THE_VICTIM,
        ),
        operation(
            "register-first",
            Table(ROOMY),
            owners::register_first,
            NOTHING,
        ),
        operation(
            "register-again",
            Table(ROOMY),
            owners::register_again,
            Owed {
                releases: 1,
                ..NOTHING
            },
        ),
        operation(
            "recycle",
            DiedBefore(TIGHT, "idle"),
            owners::recycle,
            OF_THE_VICTIM,
        ),
        operation(
            "unregister-idle",
            Table(ROOMY),
            owners::unregister_idle,
            NOTHING,
        ),
        operation(
            "unregister-busy",
            Table(ROOMY),
            owners::unregister_busy,
            OF_THE_VICTIM,
        ),
        operation(
            "drop-table",
            Table(ROOMY),
            owners::drop_table,
            OF_THE_VICTIM,
        ),
        seen_by(
            By::ByPid,
            operation(
                "without-keeper",
                Table(ROOMY),
                owners::without_keeper,
                OF_THE_VICTIM,
            ),
        ),
        // The watchdog's.
        operation(
            "scan-quiet",
            Table(ROOMY),
            watchdogs::scan_quiet,
            OF_THE_VICTIM,
        ),
        operation("scan-first", BUSY, watchdogs::scan_first, OF_THE_DEAD),
        operation(
            "scan-dead",
            DiesAtTheWindow("busy"),
            watchdogs::scan_dead,
            OF_THE_DEAD,
        ),
        operation(
            "scan-idle-death",
            DiedBefore(ROOMY, "idle"),
            watchdogs::scan_first,
            NOTHING,
        ),
        seen_by(
            By::LateOwner,
            operation(
                "scan-silent",
                LateOwner,
                watchdogs::scan_silent,
                OF_THE_DEAD,
            ),
        ),
        seen_by(
            By::LateOwner,
            operation("fence", LateOwner, watchdogs::fence, OF_THE_DEAD),
        ),
        operation(
            "acknowledge",
            BUSY,
            watchdogs::acknowledge,
            Owed {
                may: &THEIRS,
                moves: Moves::Acknowledge,
                ..NOTHING
            },
        ),
        operation(
            "acknowledge-unit",
            BUSY,
            watchdogs::acknowledge_unit,
            Owed {
                must: &[THEIRS[0], THEIRS[2], THEIRS[3]],
                may: &[TAKEN],
                moves: Moves::Acknowledge,
                ..NOTHING
            },
        ),
        operation(
            "acknowledge-death",
            DiedBefore(ROOMY, "idle"),
            watchdogs::acknowledge_death,
            Owed {
                moves: Moves::Acknowledge,
                ..NOTHING
            },
        ),
        // The lease's.
        operation("lease-give-back", BUSY, watchdogs::give_back, OF_THE_DEAD),
        operation(
            "lease-take-over",
            DiesAtTheWindow("primary"),
            watchdogs::scan_dead,
            OF_THE_DEAD,
        ),
        // The region's.
        seen_by(
            By::Open,
            operation("create", NoTable, openers::create, NOTHING),
        ),
        seen_by(
            By::Open,
            operation("attach", BUSY, openers::attach, OF_THE_DEAD),
        ),
        seen_by(
            By::Reset,
            operation("reset", LateOwner, openers::reset, NOTHING),
        ),
        seen_by(
            By::Open,
            operation("revive", EarlierBoot, openers::create, OF_THE_DEAD),
        ),
        seen_by(
            By::Open,
            operation("remove", Table(ROOMY), openers::remove, NOTHING),
        ),
        seen_by(
            By::Open,
            operation("remove-nothing", NoTable, openers::remove, NOTHING),
        ),
        // At a barrier.
        operation("barrier-join", ALONE, barriers::join, NOTHING),
        operation("barrier-give-up", ALONE, barriers::give_up, NOTHING),
        operation("barrier-release", AWAITED, barriers::release, NOTHING),
        operation("barrier-leave", AWAITED, barriers::leave, NOTHING),
        // In an election.
        operation("election-claim", LED, elections::claim, NOTHING),
        operation("election-appoint", STANDS, elections::claim, NOTHING),
        operation("election-step-down", LED, elections::step_down, NOTHING),
        operation("election-replace", ELSEWHERE, elections::replace, NOTHING),
        // A standby pair's.
        operation("mailbox-send", Scene::Mailbox, mailboxes::send, NOTHING),
        operation("tag-write", Scene::Tag, mailboxes::write_tag, NOTHING),
        // In a ring.
        operation("ring-push", Scene::Ring, rings::push, NOTHING),
        operation("ring-drain", Scene::DrainedRing, rings::drain, NOTHING),
        operation("black-box-record", Scene::BlackBox, rings::record, NOTHING),
    ]
};
