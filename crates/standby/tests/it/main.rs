//! The public interface.

mod actuator;
mod actuator_random;
mod authority;
mod frame;
mod frame_random;
mod golden;
mod peer;
mod plain;
mod plant;
mod store;
mod transfer;
mod transfer_random;
