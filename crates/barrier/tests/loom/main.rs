//! Models of the barrier's words, with the table as words of the model.
#![cfg(bumpless_loom)]
