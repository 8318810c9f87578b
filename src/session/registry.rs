//! The sessions of a process, one a workspace folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dashmap::DashMap;

use super::{Services, Session, lock};
use crate::config::Settings;

/// All sessions of a process.
pub struct Sessions {
    services: Arc<dyn Services>,
    open: DashMap<PathBuf, Arc<Session>>,
    settings: Mutex<Settings>,
}

impl Sessions {
    /// No session yet.
    pub fn new(services: Arc<dyn Services>, settings: Settings) -> Self {
        Self { services, open: DashMap::new(), settings: Mutex::new(settings) }
    }

    /// The session of `folder`, opened where there is none yet. Must be called on a tokio runtime.
    pub fn of_folder(&self, folder: &Path) -> Arc<Session> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let settings = lock(&self.settings).clone();
        Arc::clone(&self.open.entry(folder.clone()).or_insert_with(|| Session::open(&folder, Arc::clone(&self.services), settings)))
    }

    /// All open sessions.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.open.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// The session that has this run, among the open ones.
    pub fn of_run(&self, run: &str) -> Option<Arc<Session>> {
        self.all().into_iter().find(|session| session.run(run).is_some())
    }

    /// Settings for all sessions from now on.
    pub fn set_settings(&self, settings: &Settings) {
        *lock(&self.settings) = settings.clone();
        for session in self.all() {
            session.set_settings(settings.clone());
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// What the sessions were given.
    pub fn services(&self) -> &Arc<dyn Services> {
        &self.services
    }

    /// Ends the session of `folder` and everything in it.
    pub async fn close(&self, folder: &Path) {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if let Some((_, session)) = self.open.remove(&folder) {
            session.close().await;
        }
    }

    /// Ends all sessions and everything in them.
    pub async fn close_all(&self) {
        let sessions = self.all();
        self.open.clear();
        futures::future::join_all(sessions.iter().map(|session| session.close())).await;
    }
}
