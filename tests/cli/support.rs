//! Running the binary.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A workspace with state of its own. The cache is the person's: images and environments are made once.
pub struct Workspace {
    pub folder: tempfile::TempDir,
}

impl Workspace {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Writes a file of the workspace.
    pub fn write(&self, name: &str, data: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, data).expect("it is written");
        path
    }

    /// The binary in this workspace, without settings of the person who runs the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let work = self.folder.path().join("work");
        std::fs::create_dir_all(&work).expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_codeinterp"));
        command
            .args(arguments)
            .current_dir(work)
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env_remove("CODEINTERP_MODEL")
            .env_remove("CODEINTERP_ENDPOINT")
            .env_remove("CODEINTERP_API_KEY");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Runs with `--format json`: exit code and the one object on standard output.
    pub fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let mut all = arguments.to_vec();
        all.extend(["--format", "json"]);
        let output = self.run(&all);
        let text = String::from_utf8_lossy(&output.stdout);
        let value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}\n{}", String::from_utf8_lossy(&output.stderr)));
        (code(&output), value)
    }
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The table that the project ships.
pub const SALES: &str = include_str!("../fixtures/sales.csv");
