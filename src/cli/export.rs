//! `codeinterp runs export`: a run as a notebook, a script, or markdown with its charts beside it.

use super::output::{self, say};
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::runs::ExportFormat;
use crate::agent::run::{ErrorKind, Run, RunError};
use crate::app::App;
use crate::config::Settings;
use crate::session::export::{ExportKind, export};
use crate::store::RunStore;
use crate::store::files::write_beneath;

/// Writes the export to `out`, or to standard output. What a replay of it found is told on standard error.
pub(super) async fn run(
    store: &RunStore,
    run: &Run,
    settings: &Settings,
    to: ExportFormat,
    out: Option<&Path>,
    cancel: &CancellationToken,
) -> Result<(), RunError> {
    let kind = match to {
        ExportFormat::Notebook => ExportKind::Notebook,
        ExportFormat::Script => ExportKind::Script,
        ExportFormat::Markdown => ExportKind::Markdown,
    };
    let out = out.map(|out| std::path::absolute(out).unwrap_or_else(|_| out.to_owned()));
    if let Some(out) = &out {
        check_target(out)?;
    }
    let name = out.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let exported = export(&App::new(), settings, store, run, kind, name.as_deref(), cancel).await;
    if cancel.is_cancelled() {
        return Ok(());
    }
    for remark in &exported.remarks {
        eprintln!("{}", crate::report::escape::plain(remark));
    }
    let Some(out) = out else {
        output::write(exported.text.as_bytes());
        return Ok(());
    };
    let (Some(folder), Some(name)) = (out.parent(), out.file_name()) else {
        return Err(RunError::new(ErrorKind::Usage, format!("{} is not a file name", out.display()), "Name a file with --out."));
    };
    write_beneath(folder, Path::new(name), exported.text.as_bytes()).map_err(|error| RunError::from(&error))?;
    for (relative, artifact) in &exported.beside {
        let data = std::fs::read(&artifact.path)
            .map_err(|error| RunError::new(ErrorKind::Output, format!("{}: {error}", artifact.path.display()), "Run it again."))?;
        write_beneath(folder, Path::new(relative), &data).map_err(|error| RunError::from(&error))?;
    }
    say!("{}", out.display());
    Ok(())
}

/// Only a file is replaced: not a folder, a device or a pipe, and not what a link leads to.
fn check_target(out: &Path) -> Result<(), RunError> {
    let refused = |what: &str, hint: &str| Err(RunError::new(ErrorKind::Usage, format!("{}: {what}", out.display()), hint));
    match std::fs::symlink_metadata(out) {
        Ok(found) if found.is_dir() => refused("it is a directory", "Name a file in it with --out."),
        Ok(found) if !found.is_file() => refused("it is no regular file", "Leave out --out to print, or name a file."),
        _ => Ok(()),
    }
}
