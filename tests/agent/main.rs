//! The loop, its models and the playbook, through their public surface: against a scripted provider on loopback,
//! with a sandbox in memory where an execution must be known exactly.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod acting;
mod bounds;
mod faults;
mod playbook;
mod privacy;
mod providers;
mod sending;
