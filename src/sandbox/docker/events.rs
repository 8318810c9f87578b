//! What the engine tells of one container: kills for memory, and its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt;
use tokio::sync::watch;

use super::engine::{Engine, is_not_found};

/// How far back a new stream of events begins, in seconds. The container's name is unique, so that only its own events
/// come; they reach this far back because the clock of an engine on another machine may differ from ours.
const LOOK_BACK: i64 = 600;

/// Between a stream of events that broke and the next one.
const RETRY: Duration = Duration::from_millis(500);

/// Follows the events of one container until it is gone, across broken streams. Why it ended goes to `ended`.
pub(super) async fn follow(engine: Arc<Engine>, name: String, oom_kills: Arc<AtomicU64>, ended: watch::Sender<Option<String>>) {
    let mut follower = Follower { name, oom_kills, ended, killed: false, seen: 0 };
    loop {
        if follower.read(&engine).await {
            return;
        }
        // The stream broke, which alone says nothing about the container.
        match engine.in_time(engine.api.inspect_container(&follower.name, None)).await {
            Ok(_) => tokio::time::sleep(RETRY).await,
            Err(error) if is_not_found(&error) => return follower.end("its container was removed"),
            Err(_) => return follower.end("the Docker engine went away"),
        }
    }
}

struct Follower {
    name: String,
    /// Kills for memory that were told of.
    oom_kills: Arc<AtomicU64>,
    ended: watch::Sender<Option<String>>,
    /// Somebody killed it, or removed it by force.
    killed: bool,
    /// Time of the last event, nanoseconds since 1970: a new stream tells the old ones again.
    seen: i64,
}

impl Follower {
    /// Reads one stream of events; whether the container is gone.
    async fn read(&mut self, engine: &Engine) -> bool {
        let filters = HashMap::from([("container".to_owned(), vec![self.name.clone()])]);
        let since = (jiff::Timestamp::now().as_second() - LOOK_BACK).to_string();
        let options = EventsOptionsBuilder::default().filters(&filters).since(&since).build();
        let mut events = engine.api.events(Some(options));
        while let Some(Ok(event)) = events.next().await {
            if self.take(event) {
                return true;
            }
        }
        false
    }

    /// Takes an event; whether it was the container's last.
    fn take(&mut self, event: EventMessage) -> bool {
        let time = event.time_nano.unwrap_or(i64::MAX);
        if time <= self.seen {
            return false;
        }
        self.seen = event.time_nano.unwrap_or(self.seen);
        match event.action.as_deref() {
            Some("oom") => {
                self.oom_kills.fetch_add(1, Ordering::Relaxed);
            }
            Some("kill") => self.killed = true,
            Some("die" | "died") => {
                let attributes = event.actor.and_then(|actor| actor.attributes).unwrap_or_default();
                // Docker's name for it, and Podman's.
                let code = attributes.get("exitCode").or_else(|| attributes.get("containerExitCode")).map_or("unknown", String::as_str);
                let why = match (self.killed, code) {
                    (true, _) => "its container was killed or removed".to_owned(),
                    (false, "137") => "its container was killed (exit code 137)".to_owned(),
                    (false, code) => format!("its supervisor ended (exit code {code})"),
                };
                self.end(&why);
            }
            Some("destroy" | "remove") => {
                self.end("its container was removed");
                return true;
            }
            _ => {}
        }
        false
    }

    /// Says why it ended, unless that was said already.
    fn end(&self, why: &str) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why.to_owned());
            }
            first
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[(&str, i64)], reason: Option<&str>, kills: u64) {
        let (ended, seen) = watch::channel(None);
        let oom_kills = Arc::new(AtomicU64::new(0));
        let mut follower = Follower { name: String::new(), oom_kills: Arc::clone(&oom_kills), ended, killed: false, seen: 0 };
        for (action, time) in events {
            follower.take(EventMessage { action: Some((*action).to_owned()), time_nano: Some(*time), ..EventMessage::default() });
        }
        assert_eq!((seen.borrow().as_deref(), oom_kills.load(Ordering::Relaxed)), (reason, kills));
    }

    #[test]
    fn a_second_stream_tells_nothing_twice() {
        check(&[("start", 1), ("oom", 2), ("start", 1), ("oom", 2), ("oom", 3)], None, 2);
    }

    #[test]
    fn the_first_word_about_the_end_stands() {
        check(&[("kill", 1), ("die", 2), ("destroy", 3)], Some("its container was killed or removed"), 0);
        check(&[("die", 2), ("destroy", 3)], Some("its supervisor ended (exit code unknown)"), 0);
        check(&[("destroy", 3)], Some("its container was removed"), 0);
    }
}
