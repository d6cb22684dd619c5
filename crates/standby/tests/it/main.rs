//! The public interface.
