//! Rings, boxes, policies and the sidecar's thread on real memory, files and processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod boxes;
mod ring_heap;
mod scene;
mod sidecar_thread;
mod watchdog_events;
