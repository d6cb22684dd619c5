//! Children that do not outlive their parent.
//!
//! Contract: the kernel sends SIGKILL to a guarded process when its parent has died, however it
//! died. The parent may have died before the guard was set, so its pid is compared afterwards.
//!
//! Two limits of the kernel's: by parent it means the *thread* that spawned the child, so spawn
//! from a thread that lives as long as the children should; and it drops the guard when the child
//! executes a program with other credentials (set-user-id, file capabilities).

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::locks::our_pid;
use crate::region::{Place, Region, RegionError};
use crate::sync::{AtomicU32, Ordering};

/// Why a guard could not be set.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The parent is dead: this process belongs to somebody else already.
    #[error("parent pid {wanted} is gone: the parent is pid {found} now")]
    ParentGone {
        /// The parent that was named.
        wanted: u32,
        /// The parent found; 0 for one outside of our pid namespace.
        found: u32,
    },
    /// The kernel refused.
    #[error("cannot {doing}: {errno}")]
    System {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
    /// The place for the child's pid is no place for it.
    #[error("no place for the child's pid: {0}")]
    Place(#[from] RegionError),
    /// The child could not be started.
    #[error("cannot start {program:?}: {error}")]
    Spawn {
        /// The program.
        program: std::ffi::OsString,
        /// What went wrong.
        error: std::io::Error,
    },
}

/// Makes the kernel kill this process when its parent dies. To be called first thing, by a process
/// that was told its parent's pid.
///
/// # Errors
/// [`GuardError::ParentGone`] when the parent is another process than the one named: it has died
/// already, and the caller should end. [`GuardError::System`].
pub fn die_with_parent(parent_pid: u32) -> Result<(), GuardError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| {
        GuardError::System {
            doing: "set the parent-death signal",
            errno,
        }
    })?;
    let found = parent_of_ours();
    if found == parent_pid {
        return Ok(());
    }
    Err(GuardError::ParentGone {
        wanted: parent_pid,
        found,
    })
}

/// Our parent's pid, 0 when it lives outside of our pid namespace.
fn parent_of_ours() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// Starts a child that dies with the calling thread's process. The child is guarded before it
/// executes anything.
///
/// With `record_pid`, the child stores its own pid into that word of a region (an
/// [`AtomicU32`], Release) before it executes the program, so that its pid is known even if the
/// parent is killed before `spawn` returns. The word is set back to 0 when the program cannot be
/// executed. What this adds to `command` stays there: use each command for one child.
///
/// # Errors
/// [`GuardError::Place`] when the region is read-only or has no such word; [`GuardError::Spawn`].
pub fn spawn_guarded(
    command: &mut Command,
    record_pid: Option<(Arc<Region>, u64)>,
) -> Result<Child, GuardError> {
    let record: Option<Place<AtomicU32>> = record_pid
        .map(|(region, offset)| Place::new(&region, offset))
        .transpose()?;
    let parent_pid = our_pid();
    let in_child = record.clone();
    let guard = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if parent_of_ours() != parent_pid {
            // As the kernel would have: nobody is left who could be told of an error.
            rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
        }
        if let Some(place) = &in_child {
            // Pairs with the Acquire load of whoever looks for the child.
            place.get().store(our_pid(), Ordering::Release);
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes a few system calls and one store to a mapping
    // that it keeps alive; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(guard) };
    command.spawn().map_err(|error| {
        if let Some(place) = &record {
            // Pairs as above. `spawn` returns an error only when the child is gone.
            place.get().store(0, Ordering::Release);
        }
        GuardError::Spawn {
            program: command.get_program().into(),
            error,
        }
    })
}

/// Makes this process the new parent of descendants whose parents die, instead of init: it can
/// then wait for them.
///
/// # Errors
/// [`GuardError::System`].
pub fn become_subreaper() -> Result<(), GuardError> {
    // Any pid means yes.
    rustix::process::set_child_subreaper(Some(Pid::INIT)).map_err(|errno| GuardError::System {
        doing: "become a subreaper",
        errno,
    })
}
