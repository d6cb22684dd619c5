//! One byte of a file, locked as a slot's byte is: what registering cannot do without.

use std::fs::File;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_UNLCK, F_WRLCK, SEEK_SET, flock};

/// The byte, and its file.
#[derive(Debug)]
pub struct ByteLock(File);

impl ByteLock {
    /// A byte beyond the end of this file.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self(file)
    }

    /// Takes it; false if it was refused.
    pub fn take(&self) -> bool {
        self.set(F_WRLCK)
    }

    /// Gives it back; false if that was refused.
    pub fn give_back(&self) -> bool {
        self.set(F_UNLCK)
    }

    fn set(&self, kind: i32) -> bool {
        let lock = flock {
            l_type: kind as i16,
            l_whence: SEEK_SET as i16,
            l_start: 1 << 20,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&self.0, FcntlArg::F_OFD_SETLK(&lock)).is_ok()
    }
}
