//! The Docker backend against a real engine. An engine or a base image that is missing fails these tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that finds something missing fails there")]

mod code;
mod endings;
mod engines;
mod faults;
mod isolation;
mod lifecycle;
mod packages;
mod proxy;
mod resources;
mod restart;
mod support;
