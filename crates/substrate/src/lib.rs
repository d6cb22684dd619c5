//! Layer 0 of bumpless: what everything above stands on, and the only crate with `unsafe`.

pub mod claim;
pub mod layout;
pub mod seqlock;
pub mod sync;
pub mod work;
