//! The hook for a hardware watchdog: a machine whose control loop hangs is reset.
//!
//! Contract: the device is fed by the cycle and by nothing else, so a hung controller is not fed. Dropping
//! it disarms it where the driver allows that (the magic close); a killed process does not, and is reset.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A watchdog device, open and therefore armed.
#[derive(Debug)]
pub struct WatchdogDevice {
    file: File,
    path: PathBuf,
}

/// What went wrong with the device.
#[derive(Debug, Error)]
#[error("cannot {doing} the watchdog device {path}: {error}")]
pub struct DeviceError {
    doing: &'static str,
    path: PathBuf,
    error: std::io::Error,
}

impl WatchdogDevice {
    /// Opens and thereby arms the device, for instance `/dev/watchdog`.
    ///
    /// # Errors
    /// It cannot be opened: not there, not permitted, or in use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DeviceError> {
        let path = path.as_ref().to_path_buf();
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(DeviceError {
                doing: "open",
                path,
                error,
            }),
        }
    }

    /// Puts the reset off by the device's timeout.
    ///
    /// # Errors
    /// The device takes no more: the reset is near, and the caller should know.
    pub fn feed(&mut self) -> Result<(), DeviceError> {
        self.write(b"\0", "feed")
    }

    fn write(&mut self, byte: &[u8; 1], doing: &'static str) -> Result<(), DeviceError> {
        self.file.write_all(byte).map_err(|error| DeviceError {
            doing,
            path: self.path.clone(),
            error,
        })
    }
}

impl Drop for WatchdogDevice {
    fn drop(&mut self) {
        // The magic close. A driver that was built without it stays armed, which is its administrator's
        // decision.
        let _ = self.write(b"V", "disarm");
    }
}
