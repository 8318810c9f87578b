//! The supervisor and its kernel, the real ones, as a plain subprocess of the Python that has the sandbox's packages.
//!
//! Nothing is confined here: this is about executions, outputs, files and deaths, which are the same on every backend.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod deaths;
mod displays;
mod executions;
mod files;
mod hostile;
mod interrupts;
mod outputs;
mod pipe;
mod profiles;
mod rig;
