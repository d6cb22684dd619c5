//! Models of the judgement of one slot.
#![cfg(bumpless_loom)]
