//! Checkpoints on their way: a state becomes parts, and parts become exactly that state again.
//!
//! ```text
//!   Sender ── one part: in the heartbeat ─────────────▶ Receiver ── Complete ──▶ adopted, if it checks
//!          ── several parts: fragments, any order ────▶    │
//!   request_full() ◀──────────── Flags::NEEDS_FULL ◀───────┘ a delta came whose full state did not
//! ```
//!
//! Contract: a state comes out only when every byte of one `(epoch, seq)` has come, under equal kind,
//! length and digest, and the CRC-32C of the result is that digest. So no loss, order, repetition or
//! mixing of parts ever makes a state that nobody sent. What comes out never goes back: each state is
//! of a later cycle than the one before, or of a higher epoch.
//!
//! **Deltas** tell what differs from the last *full* state of the same epoch, not from the last delta. A
//! lost delta therefore harms nothing; without the full state no delta is usable, and the receiver asks.
//!
//! **Which sets are kept.** At most two incomplete ones: the oldest that still grows, and the newest.
//! A large state whose parts mix with those of later cycles, cycle for cycle, thus gets through:
//!
//! - The oldest set stays until it is complete, or a later set is, or nothing of it came for more than
//!   [`PATIENCE_CYCLES`] cycles while later parts did. Then the newest takes its place.
//! - The newest set gives way to a newer one. A part of any other set is dropped, and so is a delta
//!   without its full state: it never displaces the full state that it waits for.
//! - A higher epoch ends every set of a lower one.
//!
//! So, if no part is lost and no two parts of a state come more than `PATIENCE_CYCLES` cycles apart, the
//! oldest set always becomes complete, and from one state that comes out to the next it takes at most the
//! time from the first part of a state to its last. A lost part costs `PATIENCE_CYCLES` cycles more, and
//! only where the sets mix: on a path that keeps their order the next set comes out by itself.

mod assembly;
mod delta;
mod receiver;
mod sender;

pub use receiver::{Complete, PartError, Receiver};
pub use sender::Sender;

/// So many cycles without a part, while parts of later cycles come, and an incomplete set is given up.
pub const PATIENCE_CYCLES: u64 = 4;
