//! Diagnostics inside a state that is compared and hashed: counters, alarms, path health.
//!
//! A model checker merges states that behave the same. What only people read must not tell them apart,
//! so [`Unhashed`] is equal to every other and adds nothing to a hash.

use std::hash::{Hash, Hasher};

/// A value that no comparison and no hash sees.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unhashed<T>(pub T);

impl<T> PartialEq for Unhashed<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unhashed<T> {}

impl<T> Hash for Unhashed<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
