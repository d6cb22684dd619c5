//! Looking at a running system from outside: values that `status`, `top`, `export` and `doctor` show.
//!
//! Contract: everything is opened to look only. Nothing is written, locked or waited for, and nobody can
//! notice. A view is a copy of one moment; the names of its fields in JSON are stable, and
//! `docs/operating.md` says what they mean.
//!
//! ```text
//!   folder ──Found──▶ path ─┬─ table: TableView ─ slots, elections, barriers
//!                           ├─ tag:   TagView
//!                           └─ other: Found says kind, owner, size, who has it open
//! ```

mod beside;
mod error;
mod follow;
mod found;
mod path_text;
mod slot;
mod span;
mod table;
mod tag;

pub use beside::{BarrierView, ElectionView};
pub use error::{LookError, with_advice};
pub use follow::Follower;
pub use found::{Found, Kind, Kinds, kinds_in, look_in};
pub use path_text::{path_line, path_text};
pub use slot::{SlotView, VerdictWord};
pub use span::span;
pub use table::{TableView, WatchdogView};
#[cfg(test)]
pub use tag::sample_status;
pub use tag::{PartnerView, TagView};
