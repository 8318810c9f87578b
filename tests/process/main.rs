//! The process sandbox: real Python behind the real confinement, driven through the sandbox port.
//!
//! The Python environment is built once, in the folder of real test parts; a machine that can't confine fails these tests.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod faults;
mod isolation;
mod lifecycle;
mod provision;
mod resources;
mod start;
mod support;
