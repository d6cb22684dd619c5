//! Ending whoever a process that was ended has left behind, wherever it has gone to.
//!
//! Contract: for a process that is a subreaper and waits for nobody else. Whoever has lost its parent is
//! then a child of ours, also when it has left its process group or session; who is killed leaves its own
//! children to us. So it is the end when nobody is left, but for children that we had from the start:
//! a shell that executes this program may leave it some. Where the kernel does not list our children
//! (`/proc/PID/task/TID/children`), none is found, and we wait for those that others have killed.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};

/// How long what was killed may take to be gone. Who may not be killed (set-user-id) does not hold up
/// the end for longer.
const DYING: Duration = Duration::from_secs(5);

/// Kills all who are left but `spared`, and returns when they are gone.
pub fn end(spared: &[Pid]) {
    let deadline = Instant::now() + DYING;
    while !is_nobody_left() && Instant::now() < deadline {
        let mut left = children();
        left.retain(|child| !spared.contains(child));
        if left.is_empty() && !spared.is_empty() {
            return;
        }
        for child in left {
            // Not yet waited for, so it has its pid still. That it may not be killed is told by the wait.
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes leave of those that are dead, but for the command: a service whose workers leave it would else
/// fill the list of processes. Cost: a look at the threads of this process.
pub fn take_leave_but_of(command: Pid) {
    for child in children() {
        if child != command {
            // Alive, or gone: both are well.
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
    }
}

/// Takes leave of those that are dead.
fn is_nobody_left() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Our children, as far as the kernel tells.
pub fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(pids.filter_map(Pid::from_raw));
    }
    found
}
