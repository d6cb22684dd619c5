//! Models of the words of the substrate, one by one.
#![cfg(bumpless_loom)]

mod claim;
mod job;
mod seeing;
mod seqlock;
mod work;
mod work_peers;
