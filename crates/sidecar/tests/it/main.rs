//! Rings, boxes, policies and the sidecar's thread on real memory, files and processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod adaptive_grace;
mod black_box_deaths;
mod boxes;
mod flap_guard;
mod layers;
#[cfg(feature = "metrics")]
mod out_metrics;
#[cfg(feature = "tracing")]
mod out_tracing;
mod peer;
mod ring_damage;
mod ring_file;
mod ring_heap;
mod scene;
mod sidecar_thread;
mod watchdog_events;
