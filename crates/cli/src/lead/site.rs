//! The table in which leads stand, and who watches it.
//!
//! Contract: the default table is made when it is missing, never deleted, and used by leads alone: each
//! of them watches it and acknowledges what it is told. A table that was named belongs to somebody else:
//! it is not made, not ticked, and nothing in it is acknowledged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, Stop};
use bumpless_heartbeat::{Handle, HeartbeatTable, Label, Profile};

use super::error::LeadError;
use crate::own_table;

/// Between two beats of a lead, and two ticks of the default table.
pub const PERIOD: Duration = Duration::from_millis(50);

/// A lead that has not beaten for so many ticks of the default table hangs.
const GRACE_EPOCHS: u64 = 20;

/// A table, and whether it is the leads' own.
#[derive(Debug)]
pub struct Site {
    /// The table.
    pub table: HeartbeatTable,
    is_own: bool,
}

impl Site {
    /// Opens the table that was named, or the default one.
    ///
    /// # Errors
    /// [`LeadError::Table`], [`LeadError::Folder`].
    pub fn open(named: Option<&Path>) -> Result<Self, LeadError> {
        Ok(match named {
            Some(path) => Self {
                table: HeartbeatTable::attach(path)?,
                is_own: false,
            },
            None => Self {
                table: own_table::open_default("lead.table", "lead")?,
                is_own: true,
            },
        })
    }

    /// Registers this process for an election of that name.
    ///
    /// # Errors
    /// [`LeadError::Table`].
    pub fn register(&self, name: &str) -> Result<Handle, LeadError> {
        // A longer name than fits is no reason not to run.
        let label = Label::new(&format!("lead {name}")).or_else(|_| Label::new("lead"))?;
        let profile = Profile {
            label,
            ..Profile::default()
        };
        Ok(self.table.register_as(std::process::id(), profile)?)
    }

    /// Watches the table until asked to stop, if it is the leads' own.
    pub fn watch(&self, stop: &Stop) {
        if !self.is_own {
            return;
        }
        let watchdog = FailoverWatchdog::with_grace(&self.table, GRACE_EPOCHS);
        watchdog.run(PERIOD, stop, |report| {
            for (slot, _) in &report.dead_slots {
                // Leads have no units: there is nothing to hand on, and another one may have been faster.
                let _ = watchdog.clear_dead_bitmap(*slot);
            }
        });
    }
}

/// The file whose lock the job of a name holds while its command runs.
pub fn lock_of(table: &HeartbeatTable, name: &str) -> PathBuf {
    let mut path = table.path().as_os_str().to_owned();
    path.push(format!(".{name}.job"));
    path.into()
}
