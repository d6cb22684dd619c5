//! Rings and black boxes on real memory and real files.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod ring_heap;
