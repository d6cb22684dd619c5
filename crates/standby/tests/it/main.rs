//! The public interface.

mod frame;
mod frame_random;
mod golden;
mod plain;
mod transfer;
mod transfer_random;
