//! Models of the words of the substrate, one by one.
#![cfg(bumpless_loom)]

mod claim;
mod seeing;
mod seqlock;
mod work;
