//! Layer 2 of bumpless: who is late, who is dead, and who gets their work.
#![forbid(unsafe_code)]

pub mod judge;
pub mod verdict;
