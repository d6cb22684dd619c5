//! The public interface.

mod authority;
mod frame;
mod frame_random;
mod golden;
mod peer;
mod plain;
mod store;
mod transfer;
mod transfer_random;
