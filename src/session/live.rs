//! The record of a run while it grows.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::lock;
use super::request::RunRequest;
use crate::agent::events::RunEvent;
use crate::agent::run::{Run, RunStatus};

/// A run of this process.
pub(crate) struct LiveRun {
    /// Cancels it.
    pub cancel: CancellationToken,
    started: Instant,
    /// Copied on write, so that snapshots are cheap for many readers.
    record: Mutex<Arc<Run>>,
}

impl LiveRun {
    /// A queued run.
    pub fn new(id: &str, request: &RunRequest) -> Self {
        let record = Run {
            run: id.to_owned(),
            status: RunStatus::Queued,
            question: request.question().to_owned(),
            uri: request.uri.clone(),
            selection: request.selection.as_ref().map(|selection| selection.place.clone()),
            parent: request.parent().map(str::to_owned),
            started_at: jiff::Timestamp::now().to_string(),
            ..Run::default()
        };
        Self { cancel: CancellationToken::new(), started: Instant::now(), record: Mutex::new(Arc::new(record)) }
    }

    /// The record as it is now.
    pub fn snapshot(&self) -> Arc<Run> {
        Arc::clone(&lock(&self.record))
    }

    /// Takes an event into the record.
    pub fn apply(&self, event: &RunEvent) {
        self.change(|run| run.apply(event));
    }

    /// Changes the record.
    pub fn change(&self, change: impl FnOnce(&mut Run)) {
        let mut record = lock(&self.record);
        let run = Arc::make_mut(&mut record);
        change(run);
        run.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    }
}
