//! What a backend keeps of the thing that it started: the enclosure around one supervisor.

use async_trait::async_trait;

use crate::agent::ports::ResourceUsage;

/// A container or a confined process tree. Dropping the last reference must end it too, whatever happened before.
#[async_trait]
pub trait Enclosure: Send + Sync + 'static {
    /// Ends everything in it at once (SIGKILL) and returns when it is gone. Idempotent.
    async fn kill(&self);

    /// Why it ended, for people (`the container was removed`), once it has ended; asked after its output closed.
    /// May wait shortly for the engine's or the system's word.
    async fn end_reason(&self) -> Option<String>;

    /// Memory and CPU in use now.
    async fn usage(&self) -> ResourceUsage;

    /// Processes killed for memory in it so far, by the host's own count (cgroup counter, engine event or the backend's
    /// watcher); `None` where the host cannot tell, and then the supervisor's own count serves.
    async fn oom_kills(&self) -> Option<u64>;
}
