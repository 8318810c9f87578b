//! What the server knows. The main loop is its one owner; jobs get snapshots of what they need and report back by
//! events.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::capabilities::ClientFeatures;
use super::chat::{Chat, EditorServices};
use super::documents::Text;
use super::event::Event;
use super::outbox::Outbox;
use super::runs::Runs;
use super::uris;
use crate::config::{self, Overrides, Settings};
use crate::profile::live::{Format, LiveProfile};
use crate::session::{Services, Session, Sessions};

/// A text of a document and what it is as a table; a profile is made of no other text than this.
#[derive(Clone, Copy, Default)]
pub struct Seen<'a> {
    /// The text; `None` where the document is closed.
    pub text: Option<&'a Text>,
    /// Its live profile; `None` where it is no table.
    pub profile: Option<&'a LiveProfile>,
}

/// Continues once there is a live profile of the text of its time, or of a later one.
pub type Waiter = Box<dyn FnOnce(&State, Seen<'_>) + Send>;

/// An open document.
pub struct Document {
    /// The language that the client gave it.
    pub language: String,
    /// The client's version of the text.
    pub version: i32,
    /// The text.
    pub text: Text,
    /// It was changed since it was opened or saved.
    pub changed: bool,
    /// Counts changes of the text; stale results are told by it.
    pub revision: Arc<AtomicU64>,
    /// How it is read as a table; `None` where it is no data file.
    pub format: Option<Format>,
    /// The live profile, with the revision that it was made of.
    pub profile: Option<(u64, Option<Arc<LiveProfile>>)>,
    /// A profile is being made.
    pub profiling: bool,
    /// A timer for the next profile runs, and the document has changed since it was set.
    pub due: Option<bool>,
    /// Requests that wait for a profile, each with the revision that it must not be older than.
    pub waiters: Vec<(u64, Waiter)>,
    /// Requests wait: a profile that is being made is of use even where the text has changed meanwhile.
    pub awaited: Arc<AtomicBool>,
    /// The client shows diagnostics of ours.
    pub diagnosed: bool,
}

/// A workspace folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// As the client names it.
    pub uri: Url,
    /// Where it is.
    pub path: PathBuf,
}

/// What the server knows.
pub struct State {
    /// What the client can do.
    pub features: ClientFeatures,
    /// Sends to the client.
    pub outbox: Outbox,
    /// Where jobs report to.
    pub events: mpsc::UnboundedSender<Event>,
    /// One session a folder.
    pub sessions: Arc<Sessions>,
    /// What sessions are given.
    pub services: Arc<EditorServices>,
    /// Chats with the editor's models.
    pub chat: Arc<Chat>,
    /// Settings of the command line: the strongest.
    pub command_line: Overrides,
    /// The person's own settings.
    pub user_settings: Settings,
    /// Those, made stricter by what the workspace says.
    pub settings: Settings,
    /// Open documents by URI, as the client spells it.
    pub documents: HashMap<Url, Document>,
    /// Workspace folders, in the client's order.
    pub folders: Vec<Folder>,
    /// Runs that were asked for over this connection.
    pub runs: Runs,
    /// Model servers that the person was told of.
    pub told: HashSet<String>,
    /// Sessions of removed folders that are ending.
    pub closing: Vec<tokio::task::JoinHandle<()>>,
    /// `shutdown` was asked for: nothing is started any more.
    pub shut_down: Arc<AtomicBool>,
    /// Ends the server.
    pub end: CancellationToken,
}

impl State {
    /// The state of a new connection.
    pub fn new(
        outbox: Outbox,
        events: mpsc::UnboundedSender<Event>,
        services: Arc<dyn Services>,
        chat: Arc<Chat>,
        command_line: Overrides,
        end: CancellationToken,
    ) -> Self {
        let settings = Settings::default();
        services.ask(Arc::new(outbox.clone()));
        let services = Arc::new(EditorServices::new(services, Arc::clone(&chat)));
        Self {
            features: ClientFeatures::default(),
            outbox,
            events,
            sessions: Arc::new(Sessions::new(Arc::clone(&services) as Arc<dyn Services>, settings.clone())),
            services,
            chat,
            command_line,
            user_settings: settings.clone(),
            settings,
            documents: HashMap::new(),
            folders: Vec::new(),
            runs: Runs::default(),
            told: HashSet::new(),
            closing: Vec::new(),
            shut_down: Arc::default(),
            end,
        }
    }

    /// Reports an event of a job to the main loop.
    pub fn report(&self, event: Event) {
        // The main loop is gone when the connection ends.
        let _ = self.events.send(event);
    }

    /// Reads the settings anew from all layers, the editor's being `editor`.
    pub fn load_settings(&mut self, editor: &Overrides) {
        let (usable, problems) = editor.usable();
        let wrong = |what: &str| self.outbox.show(tower_lsp::gen_lsp_types::MessageType::Error, format!("codeinterp: {what}"));
        if !problems.is_empty() {
            wrong(&format!("settings of the editor that can't be used: {}", problems.join("; ")));
        }
        self.user_settings = config::load(&self.command_line, &usable).unwrap_or_else(|error| {
            wrong(&format!("{error}. The defaults are used instead."));
            Settings::default()
        });
        self.apply_settings(self.user_settings.clone());
    }

    /// Puts settings into force, here and in all sessions.
    pub fn apply_settings(&mut self, settings: Settings) {
        self.sessions.set_settings(&settings);
        self.settings = settings;
    }

    /// The folder whose session serves a document: the innermost workspace folder that holds it, else the folder of
    /// the file, else the first workspace folder.
    pub fn folder_for(&self, uri: &Url) -> PathBuf {
        let Some(path) = uris::path(uri) else {
            return self.folders.first().map_or_else(config::state_dir, |folder| folder.path.clone());
        };
        let holding =
            self.folders.iter().filter(|folder| path.starts_with(&folder.path)).max_by_key(|folder| folder.path.components().count());
        match holding {
            Some(folder) => folder.path.clone(),
            None => path.parent().map_or(path.clone(), Path::to_owned),
        }
    }

    /// The session that serves a document.
    pub fn session_for(&self, uri: &Url) -> Arc<Session> {
        self.sessions.of_folder(&self.folder_for(uri))
    }

    /// Sessions of all workspace folders, and others that are open.
    pub fn all_sessions(&self) -> Vec<Arc<Session>> {
        for folder in &self.folders {
            self.sessions.of_folder(&folder.path);
        }
        self.sessions.all()
    }

    /// The workspace folder that a session of this path belongs to.
    pub fn folder_at(&self, path: &Path) -> Option<&Folder> {
        self.folders.iter().find(|folder| folder.path == path || folder.path.canonicalize().is_ok_and(|real| real == path))
    }

    /// The URI of a run's report for this client: virtual where it can show that, else the file.
    pub fn report_uri(&self, session: &Session, run: &str) -> String {
        if self.features.shows_virtual_documents() {
            return uris::report(run);
        }
        let path = session.store().run_dir(run).join("report.md");
        uris::file(&path).map_or_else(|| uris::report(run), |uri| uri.to_string())
    }
}
