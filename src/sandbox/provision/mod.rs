//! Python environments for the process backend: found, built once from the locked requirements, listed and removed.
//!
//! - [`python`]: which Python of this machine can serve.
//! - [`lock`]: the locked requirements, their hash, and the sizes of their downloads.
//! - [`environment`]: where an environment lies and how it is built.
//! - [`installer`]: running pip or uv, with progress, cancellation and readable failures.
//! - [`packages`]: `sandbox.packages`, resolved and downloaded by the host.
//! - [`wheels`]: what pip chose for it, the size, and the question whether to download it.
//! - [`inventory`]: what lies in the cache, for `sandbox list` and `sandbox prune`.
//!
//! May import `config` (folders) and `agent::ports` (progress, errors); nothing of the backends.

pub mod environment;
pub mod installer;
pub mod inventory;
pub mod lock;
pub mod packages;
pub mod python;
pub mod wheels;

pub use environment::{Environment, Provisioner};
pub use inventory::{EnvironmentEntry, list_environments, prune_environments};
pub use python::Python;
