//! The backends: Docker and the confined local process. Implements `agent::ports::Sandbox`.
//!
//! - [`backend`]: what a backend is.

pub mod backend;

pub use backend::{Backend, Mount, StartRequest};
