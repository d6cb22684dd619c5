//! Who a process is: a pid alone is not enough, because pids are used again and mean different
//! processes in different pid namespaces.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

use rustix::io::Errno;

use crate::fork_guard::ForkGuard;
use crate::locks::our_pid;
use crate::region::errno;

/// A process, named so that its successor under the same pid is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Process id in its own pid namespace; 0 is nobody.
    pub pid: u32,
    /// When it started: clock ticks (1/100 s) since the machine started, as seen from its own time
    /// namespace; 0 is unknown.
    pub start_ticks: u64,
    /// Inode number of its pid namespace; 0 is unknown.
    pub pid_namespace: u64,
    /// Inode number of its time namespace; 0 is unknown, also on kernels that have none.
    pub time_namespace: u64,
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pid {} (started at tick {}, pid namespace {}, time namespace {})",
            self.pid, self.start_ticks, self.pid_namespace, self.time_namespace
        )
    }
}

/// Why a process could not be identified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A file of /proc could not be read.
    #[error("{path}: {errno}")]
    Proc {
        /// The file.
        path: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
    /// A file of /proc does not read as expected.
    #[error("{path}: found {found:?}, wanted {wanted}")]
    Parse {
        /// The file.
        path: &'static str,
        /// Its contents.
        found: String,
        /// What was looked for in it.
        wanted: &'static str,
    },
    /// /proc shows another pid namespace than the one this process lives in.
    #[error("/proc belongs to another pid namespace: it calls us {found}, we are {wanted}")]
    ForeignProc {
        /// What /proc/self points to.
        found: String,
        /// Our pid.
        wanted: u32,
    },
}

/// The identity of this process. Read from /proc once (about 30 us) and remembered; a fork child
/// finds its own, also when its pid is its parent's in another namespace.
///
/// # Errors
/// [`IdentityError`] when /proc is missing, hidden or of another pid namespace.
pub fn current() -> Result<ProcessIdentity, IdentityError> {
    static REMEMBERED: Mutex<Option<(ProcessIdentity, ForkGuard)>> = Mutex::new(None);
    // In a fork child the lock may be held for ever by a thread that does not exist there.
    let Ok(mut remembered) = REMEMBERED.try_lock() else {
        return read_current(our_pid());
    };
    match &*remembered {
        Some((identity, guard)) if !guard.is_forked() => Ok(*identity),
        _ => {
            let identity = read_current(our_pid())?;
            *remembered = Some((identity, ForkGuard::new()));
            Ok(identity)
        }
    }
}

fn read_current(us: u32) -> Result<ProcessIdentity, IdentityError> {
    require_own_proc(us)?;
    let path = "/proc/self/stat";
    let stat = std::fs::read(path).map_err(|e| IdentityError::Proc {
        path,
        errno: errno(&e),
    })?;
    let start_ticks = start_ticks(&stat).ok_or_else(|| IdentityError::Parse {
        path,
        found: String::from_utf8_lossy(&stat).into_owned(),
        wanted: "a start time in field 22",
    })?;
    Ok(ProcessIdentity {
        pid: us,
        start_ticks,
        // The thread's, not /proc/self's: that has no namespaces once the first thread has ended.
        pid_namespace: namespace("/proc/thread-self/ns/pid"),
        time_namespace: namespace("/proc/thread-self/ns/time"),
    })
}

/// Refuses a /proc in which pids do not mean what they mean to us.
pub(crate) fn require_own_proc(us: u32) -> Result<(), IdentityError> {
    let path = "/proc/self";
    let link = std::fs::read_link(path).map_err(|e| IdentityError::Proc {
        path,
        errno: errno(&e),
    })?;
    let found = link.to_string_lossy().into_owned();
    if found.parse() == Ok(us) {
        return Ok(());
    }
    Err(IdentityError::ForeignProc { found, wanted: us })
}

/// Inode number of a namespace, 0 when there is none.
fn namespace(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.ino())
}

/// Field 22 of a `/proc/<pid>/stat`. The second field is the program's name in parentheses, and may
/// itself have spaces and parentheses: what counts is behind the last one.
pub(crate) fn start_ticks(stat: &[u8]) -> Option<u64> {
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = core::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    // Behind the name comes field 3.
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// The random id that the kernel gave this run of the system. Read once and remembered; a fork
/// does not change it.
///
/// # Errors
/// What the kernel answered when /proc/sys/kernel/random/boot_id cannot be read; EINVAL when it
/// does not contain an id.
pub fn boot_id() -> Result<[u64; 2], Errno> {
    static REMEMBERED: Mutex<Option<[u64; 2]>> = Mutex::new(None);
    let read = || {
        let text =
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|e| errno(&e))?;
        parse_boot_id(&text).ok_or(Errno::INVAL)
    };
    let Ok(mut remembered) = REMEMBERED.try_lock() else {
        return read();
    };
    match *remembered {
        Some(id) => Ok(id),
        None => Ok(*remembered.insert(read()?)),
    }
}

fn parse_boot_id(text: &str) -> Option<[u64; 2]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    let id = u128::from_str_radix(&digits, 16).ok()?;
    // The halves of the number.
    Some([(id >> 64) as u64, id as u64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_does_not_shift_the_start_time() {
        let stat = b"7 (a) b (c 1 2) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 4242 1 2 3\n";
        assert_eq!(start_ticks(stat), Some(4242));
    }

    #[test]
    fn a_torn_stat_line_has_no_start_time() {
        for stat in [
            &b""[..],
            b"7 (a",
            b"7 (a) S 1 7",
            b"7 (a) S 1 2 3 4 5 6 7 8 9 a b c d e f g h x",
        ] {
            assert_eq!(start_ticks(stat), None);
        }
    }

    #[test]
    fn we_are_who_proc_says() {
        let us = current().unwrap();
        assert_eq!(us.pid, std::process::id());
        assert_ne!(us.start_ticks, 0);
        assert_ne!(us.pid_namespace, 0);
        assert_eq!(current().unwrap(), us, "remembered");
    }

    #[test]
    fn a_boot_id_is_32_hexadecimal_digits() {
        let text = "00112233-4455-6677-8899-aabbccddeeff\n";
        assert_eq!(
            parse_boot_id(text),
            Some([0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff])
        );
        for text in [
            "",
            "0011",
            "g0112233-4455-6677-8899-aabbccddeeff",
            "+0112233-4455-6677-8899-aabbccddeefff",
        ] {
            assert_eq!(parse_boot_id(text), None, "{text}");
        }
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }
}
