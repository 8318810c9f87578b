//! `$/progress` of a run: begun when the client agrees, reported at most five times a second, ended when dropped.

use std::time::Duration;

use tokio::sync::watch;
use tower_lsp::gen_lsp_types as lsp;

use super::outbox::Outbox;

/// Time between two reports: an eye does not follow faster.
const PACE: Duration = Duration::from_millis(200);

/// What a progress shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// What is being done.
    pub message: String,
    /// Percent where it can be told.
    pub percentage: Option<u32>,
}

/// Shows the progress of one run. Dropping it ends it.
#[derive(Debug)]
pub struct Progress {
    shown: watch::Sender<Shown>,
}

/// The token of a run's progress.
pub fn token(run: &str) -> lsp::ProgressToken {
    lsp::ProgressToken::String(format!("codeinterp/{run}"))
}

/// The run that a token belongs to.
pub fn run_of(token: &lsp::ProgressToken) -> Option<&str> {
    match token {
        lsp::ProgressToken::String(token) => token.strip_prefix("codeinterp/"),
        lsp::ProgressToken::Int(_) => None,
    }
}

impl Progress {
    /// Begins.
    pub fn begin(outbox: Outbox, run: &str, title: String) -> Self {
        let (shown, mut watched) = watch::channel(Shown::default());
        let token = token(run);
        tokio::spawn(async move {
            if !outbox.create_progress(token.clone()).await {
                return;
            }
            let send = |value: serde_json::Value| outbox.progress(lsp::ProgressParams { token: token.clone(), value });
            send(serde_json::json!({"kind": "begin", "title": title, "cancellable": true}));
            // An error means that the sender was dropped: the run is over.
            while watched.changed().await.is_ok() {
                let now = watched.borrow_and_update().clone();
                let mut report = serde_json::json!({"kind": "report", "cancellable": true, "message": now.message});
                if let Some(percentage) = now.percentage {
                    report["percentage"] = percentage.into();
                }
                send(report);
                tokio::time::sleep(PACE).await;
            }
            send(serde_json::json!({"kind": "end"}));
        });
        Self { shown }
    }

    /// Shows something else.
    pub fn show(&self, shown: Shown) {
        self.shown.send_if_modified(|old| {
            let changed = *old != shown;
            *old = shown;
            changed
        });
    }
}
