//! Files that are named on the command line.

use std::path::{Path, PathBuf};

use crate::agent::run::{ErrorKind, RunError};
use crate::session::inputs::{self, InputError};
use crate::session::request::RunFile;

/// The input files of a command. Symbolic links that a person names are followed, and the files named as the links are:
/// the name was typed, not found in a project.
pub(super) fn run_files(paths: &[PathBuf], workspace: &Path) -> Result<Vec<RunFile>, RunError> {
    let resolved = resolved(paths);
    let pairs = paths.iter().zip(&resolved).map(|(named, path)| (named.as_path(), path.as_path()));
    inputs::from_named(pairs, workspace).map_err(|error| input_error(&error))
}

/// An unreadable input as a run's error.
pub(super) fn input_error(error: &InputError) -> RunError {
    RunError::new(ErrorKind::Input, error.to_string(), error.hint.clone())
}

/// Paths with symbolic links at their end replaced by what they lead to.
pub(super) fn resolved(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths
        .iter()
        .map(|path| match std::fs::symlink_metadata(path) {
            Ok(metadata) if metadata.file_type().is_symlink() => path.canonicalize().unwrap_or_else(|_| path.clone()),
            _ => path.clone(),
        })
        .collect()
}
