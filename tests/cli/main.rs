//! The command line as a person and a program use it: the binary itself, on real sandboxes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that finds something missing fails there")]

mod analyze;
mod bad_input;
mod runs;
mod support;
