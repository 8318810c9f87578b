//! What several test binaries share. Each binary uses a part of it.
#![allow(dead_code, reason = "each test binary uses another part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

pub mod loop_run;
pub mod provider;
pub mod sandbox;
