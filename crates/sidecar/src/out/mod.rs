//! Ways out, to what the program around has for its logs and figures. Each is a feature, off by default.

#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "tracing")]
pub mod tracing;
