//! How often a file's worker died or hung on it.
//!
//! Contract: only the file that the worker was at is blamed, never those that waited behind it, and
//! never for a death that the pool itself brought about. At the limit a file is poison.

use std::collections::HashMap;

/// Counts per file.
#[derive(Debug)]
pub struct Attempts {
    limit: u32,
    failed: HashMap<u32, u32>,
}

impl Attempts {
    /// With a limit of at least 1.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            failed: HashMap::new(),
        }
    }

    /// One more worker died or hung on this file.
    pub fn blame(&mut self, file: u32) {
        *self.failed.entry(file).or_default() += 1;
    }

    /// How often that happened, if it is often enough.
    #[must_use]
    pub fn poison(&self, file: u32) -> Option<u32> {
        self.failed
            .get(&file)
            .copied()
            .filter(|count| *count >= self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_poison_at_the_limit_and_others_are_not() {
        let mut attempts = Attempts::new(2);
        attempts.blame(7);
        assert_eq!(attempts.poison(7), None);
        attempts.blame(7);
        assert_eq!((attempts.poison(7), attempts.poison(8)), (Some(2), None));
    }
}
