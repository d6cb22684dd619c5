//! The hook for a hardware watchdog, on a named pipe that tells which bytes the driver would be given.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bumpless_standby::drive::WatchdogDevice;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tempfile::TempDir;

/// A pipe in place of the device, and its reading end.
struct Pipe {
    path: PathBuf,
    reader: File,
    _folder: TempDir,
}

impl Pipe {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("watchdog");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        let reader = open_reader(&path);
        Self {
            path,
            reader,
            _folder: folder,
        }
    }

    /// What was written since the last call; the end of the file when nobody has it open to write.
    fn written(&mut self) -> Vec<u8> {
        let mut bytes = [0; 16];
        match self.reader.read(&mut bytes) {
            Ok(len) => bytes[..len].to_vec(),
            Err(error) => panic!("nothing was written, and the device is open: {error}"),
        }
    }
}

fn open_reader(path: &Path) -> File {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    options.open(path).expect("a reader")
}

#[test]
fn each_feeding_writes_one_byte_and_a_clean_end_disarms() {
    let mut pipe = Pipe::new();
    let mut device = WatchdogDevice::open(&pipe.path).expect("armed");
    device.feed().expect("fed");
    device.feed().expect("fed");
    assert_eq!(pipe.written(), [0, 0]);
    drop(device);
    assert_eq!(pipe.written(), *b"V");
}

#[test]
fn a_process_that_ends_without_dropping_it_does_not_disarm() {
    let mut pipe = Pipe::new();
    let mut device = WatchdogDevice::open(&pipe.path).expect("armed");
    device.feed().expect("fed");
    // What SIGKILL does to it: the descriptor is closed by the kernel, and no destructor runs.
    std::mem::forget(device);
    assert_eq!(pipe.written(), [0]);
}

#[test]
fn a_device_that_takes_no_more_is_told_with_its_path() {
    let pipe = Pipe::new();
    let mut device = WatchdogDevice::open(&pipe.path).expect("armed");
    drop(pipe.reader);
    let error = device.feed().expect_err("nobody reads").to_string();
    let wanted = format!("cannot feed the watchdog device {}: ", pipe.path.display());
    assert!(error.starts_with(&wanted), "{error}");
}

#[test]
fn a_device_that_is_not_there_is_told_with_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("watchdog9");
    let error = WatchdogDevice::open(&path)
        .expect_err("not there")
        .to_string();
    let wanted = format!("cannot open the watchdog device {}: ", path.display());
    assert!(error.starts_with(&wanted), "{error}");
}
