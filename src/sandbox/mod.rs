//! The backends: Docker and the confined local process. Implements `agent::ports::Sandbox`.
//!
//! - [`backend`]: what a backend is.
//! - [`consent`]: being asked before packages are downloaded.
//! - [`enclosure`]: what a backend keeps of the thing that it started.
//! - [`link`]: the host's end of a supervisor's pipe.
//! - [`linked`]: the port over a link; a backend starts something and hands its pipe over.
//! - [`docker`]: containers over an API of Docker or Podman.
//! - [`image`]: the Python modules that run inside.
//! - [`owner`]: which process something belongs to.
//! - [`process`]: the confined local process.
//! - [`provision`]: the Python environments of the process backend.
//! - [`seccomp`]: the system calls that code inside may make, for both backends.

pub mod backend;
pub mod consent;
pub mod docker;
pub mod enclosure;
mod executing;
pub mod image;
pub mod link;
pub mod linked;
pub mod owner;
pub mod process;
pub mod provision;
pub mod seccomp;

pub use backend::{Backend, Mount, StartRequest};
pub use enclosure::Enclosure;
pub use linked::{LinkedSandbox, open_sandbox};
pub use process::ProcessBackend;
