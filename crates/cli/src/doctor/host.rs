//! What this machine can do, tried out.

use std::path::Path;
use std::time::Duration;

use bumpless_heartbeat::{Certificate, HeartbeatTable};
use bumpless_substrate::fork_guard::ForkGuard;
use bumpless_substrate::futex::{Woken, wait_any};
use bumpless_substrate::region::{Region, Usage, default_folder};
use bumpless_substrate::sync::AtomicU32;
use rustix::fs::statfs;
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

use super::finding::Finding;

/// `TMPFS_MAGIC` of `linux/magic.h`.
const TMPFS: u64 = 0x0102_1994;

/// `RAMFS_MAGIC` of `linux/magic.h`.
const RAMFS: u64 = 0x8584_58f6;

const NO_TABLE: &str = "no table can be made there, so robust list and locks could not be tried";

/// All checks of the machine.
pub fn check() -> Vec<Finding> {
    let mut findings = vec![kernel()];
    match default_folder() {
        Ok(folder) => {
            findings.push(file_system("default folder", &folder));
            findings.push(room(&folder));
            findings.extend(tried_table(&folder));
        }
        Err(error) => findings.push(Finding::error(
            "default folder",
            error.to_string(),
            NO_TABLE,
            "make the folder private to its user, or name a --table of another folder",
        )),
    }
    findings.extend([futex_waitv(), pidfd(), wipe_on_fork()]);
    findings.extend([priority(), locked_memory()]);
    findings
}

/// Where a table's stores go: to memory, or through a disk's file system.
pub fn file_system(check: &str, path: &Path) -> Finding {
    match statfs(path) {
        Ok(found) if [TMPFS, RAMFS].contains(&found.f_type.cast_unsigned()) => {
            Finding::fine(check, format!("{} is on tmpfs", path.display()), "")
        }
        Ok(found) => Finding::warning(
            check,
            format!(
                "{} is on a file system of type {:#x}",
                path.display(),
                found.f_type
            ),
            "a beat can stall for milliseconds while the file system writes a page back",
            "put tables on tmpfs: below /dev/shm, or below /run",
        ),
        Err(error) => Finding::error(
            check,
            format!("cannot look at {}: {error}", path.display()),
            "it is not known where the table's stores go",
            "look at the permissions of the folders above",
        ),
    }
}

fn room(folder: &Path) -> Finding {
    const WANTED_BYTES: u64 = 32 << 20;
    let check = "room for tables";
    match statfs(folder) {
        Ok(found) => {
            let free = found.f_bavail * found.f_bsize.cast_unsigned();
            let found = format!("{} MiB free in {}", free >> 20, folder.display());
            if free >= WANTED_BYTES {
                return Finding::fine(check, found, "");
            }
            Finding::warning(
                check,
                found,
                "the memory of a table is reserved when it is made: a large one needs 16 MiB",
                "delete what nobody uses (`bumpless rm --unused`), or enlarge the file system",
            )
        }
        Err(error) => Finding::warning(check, error.to_string(), "it is not known", ""),
    }
}

fn kernel() -> Finding {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    let found = format!("Linux {release}");
    if version >= (Some(5), Some(16)) {
        return Finding::fine("kernel", found, "");
    }
    Finding::warning(
        "kernel",
        found,
        "older than 5.16, the oldest that is tested: some deaths are seen later",
        "use a newer kernel where microseconds matter",
    )
}

/// Registers in a table of its own, and looks at what the kernel made of it.
fn tried_table(folder: &Path) -> Vec<Finding> {
    let tried = || -> Result<(Certificate, Usage), Box<dyn std::error::Error>> {
        let scratch = tempfile::Builder::new()
            .prefix("doctor-")
            .tempdir_in(folder)?;
        let path = scratch.path().join("table");
        let table = HeartbeatTable::create(&path, 1)?;
        let me = table.register(std::process::id())?;
        let seen = table.snapshot(me).ok_or("a slot that cannot be seen")?;
        Ok((seen.certificate, Region::inspect(&path)?.usage))
    };
    match tried() {
        Ok((certificate, usage)) => vec![robust_list(certificate), locks(usage)],
        Err(error) => vec![Finding::error(
            "a table on trial",
            error.to_string(),
            NO_TABLE,
            "see what the system said; without OFD locks no table can be used",
        )],
    }
}

fn robust_list(certificate: Certificate) -> Finding {
    if certificate == Certificate::Armed {
        return Finding::fine("robust list", "the kernel certifies deaths", "");
    }
    Finding::warning(
        "robust list",
        format!("denied: the certificate is {certificate:?}"),
        "a death is seen by the next scan, not at once",
        "allow set_robust_list in the sandbox",
    )
}

fn locks(usage: Usage) -> Finding {
    if usage == Usage::InUse {
        return Finding::fine("OFD locks", "held locks are seen by others", "");
    }
    Finding::warning(
        "OFD locks",
        format!("a table that is open is told to be {usage:?}"),
        "who has a region open cannot be told, and deaths are proven by pid alone",
        "allow F_OFD_GETLK and F_OFD_SETLK, and use a file system that has them",
    )
}

fn futex_waitv() -> Finding {
    let (holds, differs) = (AtomicU32::new(1), AtomicU32::new(1));
    // Only a wait on both words can tell that the second one differs.
    let woken = wait_any(&[(&holds, 1), (&differs, 0)], Duration::from_millis(1));
    if woken == Woken::Changed {
        return Finding::fine("futex_waitv", "a thread sleeps on many words", "");
    }
    Finding::warning(
        "futex_waitv",
        format!("missing or denied: {woken:?}"),
        "a watchdog looks once a millisecond instead of being woken",
        "use Linux 5.16 or later, or allow futex_waitv in the sandbox",
    )
}

fn pidfd() -> Finding {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) => Finding::fine("pidfd", "processes can be told from their successors", ""),
        Err(error) => Finding::warning(
            "pidfd",
            format!("missing or denied: {error}"),
            "an owner without certificate cannot be proven gone by its pid",
            "use Linux 5.3 or later, or allow pidfd_open in the sandbox",
        ),
    }
}

fn wipe_on_fork() -> Finding {
    if ForkGuard::new().is_cheap() {
        return Finding::fine("MADV_WIPEONFORK", "a fork child is known by one load", "");
    }
    Finding::warning(
        "MADV_WIPEONFORK",
        "missing or denied",
        "each beat makes a system call, about 50 times as dear as the beat",
        "use Linux 4.14 or later, or allow madvise in the sandbox",
    )
}

/// Real-time is for control loops alone; without it nothing else is worse.
fn priority() -> Finding {
    let limit = getrlimit(Resource::Rtprio).current;
    let meaning = "`bumpless standby` can give its control loop no real-time priority";
    if limit.is_none_or(|limit| limit > 0) || rustix::process::geteuid().is_root() {
        return Finding::fine("real-time priority", limit_text(limit), meaning);
    }
    let advice = "for a control loop: raise RLIMIT_RTPRIO (ulimit -r, LimitRTPRIO=)";
    Finding {
        advice,
        ..Finding::fine("real-time priority", limit_text(limit), meaning)
    }
}

fn locked_memory() -> Finding {
    const WANTED_BYTES: u64 = 64 << 20;
    let limit = getrlimit(Resource::Memlock).current;
    let meaning = "`bumpless standby` can keep little memory from being paged out";
    if limit.is_none_or(|limit| limit >= WANTED_BYTES) || rustix::process::geteuid().is_root() {
        return Finding::fine("locked memory", limit_text(limit), meaning);
    }
    let advice = "for a control loop: raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=)";
    Finding {
        advice,
        ..Finding::fine("locked memory", limit_text(limit), meaning)
    }
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or("no limit".to_owned(), |limit| {
        format!("limit {limit} for this user")
    })
}
