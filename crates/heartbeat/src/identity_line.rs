//! The cold line of a slot: who its owner is, for suspects and for people.
//!
//! Contract: written by the owner under the slot's sequence lock; never read on the fast path; a
//! diagnosis and a fallback, not the truth about life and death.
//!
//! ```text
//!  at  0           8             16             24         32               40          104     128
//!      ┌───────────┬─────────────┬──────────────┬──────────┬────────────────┬───────────┬───────┐
//!      │ start     │ pid         │ time         │ genera-  │ registered     │ label     │ spare │
//!      │ ticks     │ namespace   │ namespace    │ tion     │ epoch          │ 64 bytes  │       │
//!      └───────────┴─────────────┴──────────────┴──────────┴────────────────┴───────────┴───────┘
//! ```

use core::fmt;

use bumpless_substrate::sync::{AtomicU64, Ordering};

use crate::error::HeartbeatError;
use crate::snapshot::SlotRole;

/// How many bytes of UTF-8 a label has at most: 64. Models make do with one word.
pub const LABEL_LEN_MAX: usize = if cfg!(bumpless_loom) { 8 } else { 64 };

const LABEL_WORDS: usize = LABEL_LEN_MAX / 8;

bumpless_substrate::shared_struct! {
    /// Who owns the slot; layout in the [module's text](self). All fields: owner writes, all read.
    pub struct IdentityLine[size = 128, align = 64] {
        /// Process start, clock ticks since boot; 0 = unknown.
        0 => start_ticks: AtomicU64,
        /// Inode of the pid namespace; 0 = unknown.
        8 => pid_namespace: AtomicU64,
        /// Inode of the time namespace; 0 = unknown.
        16 => time_namespace: AtomicU64,
        /// The generation that wrote the line.
        24 => generation: AtomicU64,
        /// The table's epoch at registration.
        32 => registered_epoch: AtomicU64,
        /// UTF-8, padded with zero bytes.
        40 => label: [AtomicU64; LABEL_WORDS],
        /// Zero.
        104 => spare: [AtomicU64; 3],
    }
}

/// What a registrant chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// What the owner is for.
    pub role: SlotRole,
    /// The slot's own grace in epochs; 0 = the watchdog's.
    pub grace_epochs: u16,
    /// A name for people, and for `HeartbeatTable::find_by_label`.
    pub label: Label,
}

/// Everything that a registrant writes of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registration {
    /// What it chose.
    pub profile: Profile,
    /// The table's epoch now.
    pub epoch: u64,
    /// Process start, clock ticks since boot.
    pub start_ticks: u64,
    /// Inode of the pid namespace.
    pub pid_namespace: u64,
    /// Inode of the time namespace.
    pub time_namespace: u64,
}

/// What the cold line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerIdentity {
    /// The generation that wrote the line.
    pub generation: u32,
    /// What that owner said of itself.
    pub registration: Registration,
}

/// A short name: at most [`LABEL_LEN_MAX`] bytes of UTF-8 without NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label([u64; LABEL_WORDS]);

impl Label {
    /// A label of this text.
    ///
    /// # Errors
    /// [`HeartbeatError::Label`] when it is too long or contains NUL.
    pub fn new(text: &str) -> Result<Self, HeartbeatError> {
        if text.len() > LABEL_LEN_MAX || text.bytes().any(|byte| byte == 0) {
            return Err(HeartbeatError::Label {
                len: text.len(),
                limit: LABEL_LEN_MAX,
            });
        }
        let mut words = [0; LABEL_WORDS];
        for (word, chunk) in words.iter_mut().zip(text.as_bytes().chunks(8)) {
            let mut bytes = [0; 8];
            for (byte, from) in bytes.iter_mut().zip(chunk) {
                *byte = *from;
            }
            *word = u64::from_ne_bytes(bytes);
        }
        Ok(Self(words))
    }

    /// The bytes, padded with NUL, as words in the byte order of the machine: how it lies in shared memory.
    #[must_use]
    pub const fn to_words(self) -> [u64; LABEL_WORDS] {
        self.0
    }

    /// As [`to_words`](Self::to_words) gave it, or any other words: what is no text shows as U+FFFD, and
    /// what is behind a NUL does not show.
    #[must_use]
    pub const fn from_words(words: [u64; LABEL_WORDS]) -> Self {
        Self(words)
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let len = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl IdentityLine {
    /// Writes the line; only inside the slot's sequence lock.
    pub(crate) fn fill(&self, generation: u32, registration: &Registration) {
        // Relaxed, all of them: inside the sequence lock, and published by the claim word.
        self.start_ticks
            .store(registration.start_ticks, Ordering::Relaxed);
        self.pid_namespace
            .store(registration.pid_namespace, Ordering::Relaxed);
        self.time_namespace
            .store(registration.time_namespace, Ordering::Relaxed);
        self.generation
            .store(u64::from(generation), Ordering::Relaxed);
        self.registered_epoch
            .store(registration.epoch, Ordering::Relaxed);
        self.set_label(registration.profile.label);
    }

    /// Writes the label; only inside the slot's sequence lock.
    pub(crate) fn set_label(&self, label: Label) {
        for (word, value) in self.label.iter().zip(label.0) {
            // Relaxed: inside the sequence lock.
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Reads the line once; only inside the slot's sequence lock.
    pub(crate) fn read(&self, role: SlotRole, grace_epochs: u16) -> OwnerIdentity {
        // Relaxed, all of them: inside the sequence lock.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        OwnerIdentity {
            generation: load(&self.generation) as u32,
            registration: Registration {
                profile: Profile {
                    role,
                    grace_epochs,
                    label: Label(core::array::from_fn(|index| load(&self.label[index]))),
                },
                epoch: load(&self.registered_epoch),
                start_ticks: load(&self.start_ticks),
                pid_namespace: load(&self.pid_namespace),
                time_namespace: load(&self.time_namespace),
            },
        }
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_the_full_length_survives_and_one_byte_more_is_refused() {
        let full = "é".repeat(LABEL_LEN_MAX / 2);
        assert_eq!(Label::new(&full).unwrap().to_string(), full);
        let error = Label::new(&format!("{full}x")).unwrap_err();
        assert!(error.to_string().contains("65 bytes"), "{error}");
        assert!(Label::new("a\0b").is_err());
    }
}
