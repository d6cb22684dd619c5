//! SHA-256 of a file, in steps, so that somebody may look on and call it off.

use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use sha2::{Digest, Sha256};

use super::entry::Outcome;

/// One step, in bytes.
pub const STEP_BYTES: usize = 256 << 10;

/// Hashes the file at `path`. `go_on` is called after each step with the number of bytes that are
/// probably left; `None` when it said no.
pub fn hash(path: &Path, buffer: &mut [u8], go_on: &mut dyn FnMut(u64) -> bool) -> Option<Outcome> {
    // Not blocking: a FIFO may have taken the file's place since the walk.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let fd = match opened {
        Ok(fd) => fd,
        Err(errno) => return Some(Outcome::NotOpened(errno.raw_os_error())),
    };
    let size = match rustix::fs::fstat(&fd) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat.st_size,
        Ok(_) => return Some(Outcome::NotRegular),
        Err(errno) => return Some(Outcome::NotRead(errno.raw_os_error())),
    };
    let mut file = std::fs::File::from(fd);
    let mut left = u64::try_from(size).unwrap_or(0);
    let mut hasher = Sha256::new();
    loop {
        match file.read(buffer) {
            Ok(0) => return Some(Outcome::Digest(hasher.finalize().into())),
            Ok(len) => {
                hasher.update(&buffer[..len]);
                left = left.saturating_sub(len as u64);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Some(Outcome::NotRead(error.raw_os_error().unwrap_or(0))),
        }
        if !go_on(left) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_buffer_is_hashed_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'a'; 1_000_000]).unwrap();
        let mut steps = Vec::new();
        let outcome = hash(file.path(), &mut [0; 300_000], &mut |left| {
            steps.push(left);
            true
        });
        let Some(Outcome::Digest(digest)) = outcome else {
            panic!("{outcome:?}")
        };
        // The published test vector for a million times "a".
        assert_eq!(digest[..4], [0xcd, 0xc7, 0x6e, 0x5c]);
        assert_eq!(steps, [700_000, 400_000, 100_000, 0]);
    }

    #[test]
    fn hashing_is_called_off_between_steps() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 100]).unwrap();
        assert_eq!(hash(file.path(), &mut [0; 10], &mut |left| left > 50), None);
    }

    #[test]
    fn what_cannot_be_hashed_says_why() {
        let hash = |path: &str| hash(Path::new(path), &mut [0; 10], &mut |_| true).unwrap();
        let enoent = rustix::io::Errno::NOENT.raw_os_error();
        assert_eq!(hash("/no/such/file"), Outcome::NotOpened(enoent));
        assert_eq!(hash("/dev/null"), Outcome::NotRegular);
        assert_eq!(hash("/"), Outcome::NotRegular);
    }
}
