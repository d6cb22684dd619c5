//! A part of a state that many states have in common: cloned by reference, hashed once.
//!
//! A step changes one node, or the plant; the rest of the state is shared with the state before it.
//! Equality and order are those of a 64-bit digest, as the checker's own are.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A value and its digest.
#[derive(Debug)]
pub struct Shared<T> {
    digest: u64,
    value: Arc<T>,
}

impl<T: Hash> Shared<T> {
    /// Digests the value, once.
    pub fn new(value: T) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self {
            digest: hasher.finish(),
            value: Arc::new(value),
        }
    }

    /// Tells two values apart.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            digest: self.digest,
            value: Arc::clone(&self.value),
        }
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Shared<T> {}

impl<T> PartialOrd for Shared<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Shared<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.digest.cmp(&other.digest)
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}
