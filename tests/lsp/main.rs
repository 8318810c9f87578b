//! The language server over streams in memory, with a client that does not let a message go unclaimed.
//!
//! Sandbox and model are scripted here, so that what the server makes of them is all that can differ; the whole over
//! stdio with a real sandbox and clients of others is in `tests/e2e`.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod agreement;
mod cells;
mod client;
mod conduct;
mod data;
mod lifecycle;
mod live;
mod privacy;
mod recall;
mod rig;
mod runs;
