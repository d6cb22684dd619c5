//! The public interface.

mod transfer;
mod transfer_random;
