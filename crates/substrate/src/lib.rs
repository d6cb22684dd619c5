//! Layer 0 of bumpless: what everything above stands on, and the only crate with `unsafe`.

pub mod layout;
pub mod sync;
