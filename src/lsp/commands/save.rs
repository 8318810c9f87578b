//! Artifacts and exports written where a person wants them: inside the workspace folder at once, elsewhere only after
//! the person in the editor agreed, never over a file that is there unless asked, and never through a link.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_lsp::gen_lsp_types::MessageType;
use tower_lsp::jsonrpc;
use url::Url;

use super::{find, no_run};
use crate::lsp::convert::failed;
use crate::lsp::event::Reply;
use crate::lsp::ext::{ArtifactArgument, ExportArgument, ExportFormat};
use crate::lsp::outbox::Outbox;
use crate::lsp::state::State;
use crate::lsp::uris;
use crate::report::escape;
use crate::session::Session;
use crate::session::export::ExportKind;
use crate::store::files::write_beneath;

/// Largest artifact that is saved.
const MAX_BYTES: u64 = 1 << 30;

/// `codeinterp.saveArtifact`
pub fn save_artifact(state: &State, argument: ArtifactArgument, reply: Reply<Option<Value>>) {
    let (sessions, outbox) = (state.all_sessions(), state.outbox.clone());
    tokio::spawn(async move {
        let ArtifactArgument { run, name, to, overwrite } = argument;
        let read = tokio::task::spawn_blocking(move || {
            let (session, _) = find(&sessions, &run).ok_or_else(|| no_run(&run))?;
            let source = session.store().artifact_path(&run, &name).map_err(|error| failed(error.to_string()))?;
            let size = std::fs::metadata(&source).map_or(0, |metadata| metadata.len());
            if size > MAX_BYTES {
                return Err(failed(format!("{name} has {size} bytes, too many to be copied; it is in {}", source.display())));
            }
            let data = std::fs::read(&source).map_err(|error| failed(format!("{}: {error}", source.display())))?;
            let to = to.unwrap_or_else(|| name.clone());
            Ok((session.folder().to_owned(), target(session.folder(), &to)?, data))
        });
        let answer = finish(read.await, overwrite, &outbox).await;
        // The client may have cancelled the request.
        let _ = reply.send(answer);
    });
}

/// `codeinterp.export`
pub fn export(state: &State, argument: ExportArgument, reply: Reply<Option<Value>>) {
    let (sessions, outbox) = (state.all_sessions(), state.outbox.clone());
    tokio::spawn(async move {
        let answer = exported(argument, sessions, &outbox).await;
        // The client may have cancelled the request.
        let _ = reply.send(answer);
    });
}

async fn exported(argument: ExportArgument, sessions: Vec<Arc<Session>>, outbox: &Outbox) -> jsonrpc::Result<Option<Value>> {
    let ExportArgument { run, to, path, overwrite } = argument;
    let found = tokio::task::spawn_blocking(move || {
        let (session, record) = find(&sessions, &run).ok_or_else(|| no_run(&run))?;
        let target = target(session.folder(), &path)?;
        Ok((session, record, target))
    });
    let (session, record, target) = found.await.map_err(|error| failed(error.to_string()))??;
    let kind = match to {
        ExportFormat::Markdown => ExportKind::Markdown,
        ExportFormat::Script => ExportKind::Script,
        ExportFormat::Notebook => ExportKind::Notebook,
    };
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
    let exported = session.export(&record, kind, name.as_deref(), &CancellationToken::new()).await;
    let (folder, parent) = (session.folder().to_owned(), target.parent().unwrap_or(Path::new("/")).to_owned());
    let answer = finish(Ok(Ok((folder, target, exported.text.into_bytes()))), overwrite, outbox).await?;
    let beside = exported.beside;
    // Whoever agreed to the document agreed to the charts that it shows.
    let written = tokio::task::spawn_blocking(move || {
        for (relative, artifact) in beside {
            let data = std::fs::read(&artifact.path).map_err(|error| failed(format!("{}: {error}", artifact.path.display())))?;
            write_beneath(&parent, Path::new(&relative), &data).map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    });
    written.await.map_err(|error| failed(error.to_string()))??;
    if !exported.remarks.is_empty() {
        outbox.show(MessageType::Info, escape::plain(&format!("codeinterp: {}", exported.remarks.join(" "))));
    }
    Ok(answer)
}

type Made = jsonrpc::Result<(PathBuf, PathBuf, Vec<u8>)>;

/// Asks where that is needed, and writes.
async fn finish(made: Result<Made, tokio::task::JoinError>, overwrite: bool, outbox: &Outbox) -> jsonrpc::Result<Option<Value>> {
    let (folder, path, data) = made.map_err(|error| failed(error.to_string()))??;
    if let Some(place) = doubt(&folder, &path) {
        let question = format!("codeinterp: {} {place}. Write there?", path.display());
        if outbox.ask(question, &["Write", "Cancel"]).await.as_deref() != Some("Write") {
            return Err(failed(format!("{} {place} and was not agreed to", path.display())));
        }
    }
    let shown = path.display().to_string();
    tokio::task::spawn_blocking(move || write(&path, &data, overwrite)).await.map_err(|error| failed(error.to_string()))??;
    Ok(Some(json!({ "path": shown })))
}

/// The absolute path that a person means: a `file:` URI, an absolute path, or one relative to the folder.
fn target(folder: &Path, to: &str) -> jsonrpc::Result<PathBuf> {
    if to.is_empty() || to.chars().any(char::is_control) {
        return Err(failed("the path to write to is empty or has control characters"));
    }
    let path = match to.strip_prefix("file:").and_then(|_| Url::parse(to).ok()) {
        Some(uri) => uris::path(&uri).ok_or_else(|| failed(format!("{to} is no file of this machine")))?,
        None => PathBuf::from(to),
    };
    let path = folder.join(path);
    if path.components().any(|part| matches!(part, Component::ParentDir)) || path.file_name().is_none() {
        return Err(failed(format!("{} is not the plain path of a file; leave out \"..\"", path.display())));
    }
    if path.is_dir() {
        return Err(failed(format!("{} is a folder; name a file in it", path.display())));
    }
    Ok(path)
}

/// Why a person is asked before the path is written to, as the end of a sentence; links are resolved. Nothing is asked
/// inside the folder, but among the settings of a tool: code that those run must not come out of a sandbox unasked.
fn doubt(folder: &Path, path: &Path) -> Option<String> {
    let below = |folder: &Path| {
        // The nearest parent that is there; what is not there yet can't be a link.
        let (parent, real) = path.ancestors().skip(1).find_map(|parent| Some((parent, parent.canonicalize().ok()?)))?;
        let whole = real.join(path.strip_prefix(parent).ok()?);
        whole.strip_prefix(folder.canonicalize().ok()?).ok().map(Path::to_owned)
    };
    let Some(below) = below(folder) else { return Some("is outside of the workspace folder".to_owned()) };
    let hidden = below.components().find_map(|part| match part {
        Component::Normal(name) if name.to_string_lossy().starts_with('.') => Some(name.to_string_lossy().into_owned()),
        _ => None,
    })?;
    Some(if below.ends_with(&hidden) {
        "is a hidden file, as tools keep their settings in".to_owned()
    } else {
        format!("is in the hidden folder {hidden}, as tools keep their settings in")
    })
}

/// Writes whole or not at all: beside the target, then in its place.
fn write(path: &Path, data: &[u8], overwrite: bool) -> jsonrpc::Result<()> {
    let error = |error: &std::io::Error| failed(format!("{} can't be written: {error}", path.display()));
    let parent = path.parent().unwrap_or(Path::new("/"));
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(failed(format!("{} is not a regular file", path.display()))),
        Ok(_) if !overwrite => {
            return Err(failed(format!(
                "{} is there already; choose another name, or ask for it to be replaced (overwrite)",
                path.display()
            )));
        }
        _ => {}
    }
    std::fs::create_dir_all(parent).map_err(|cause| error(&cause))?;
    let mut temporary = tempfile::NamedTempFile::new_in(parent).map_err(|cause| error(&cause))?;
    temporary.write_all(data).map_err(|cause| error(&cause))?;
    let placed = if overwrite { temporary.persist(path) } else { temporary.persist_noclobber(path) };
    placed.map_err(|cause| error(&cause.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_places_in_the_folder_need_no_question() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let outside = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        let asked = |path: &Path, about: &str| doubt(&root, path).is_some_and(|place| place.contains(about));
        assert_eq!(doubt(&root, &root.join("charts/new/a.png")), None);
        assert!(asked(&root.join(".git/hooks/pre-commit"), "in the hidden folder .git"));
        assert!(asked(&root.join("a/.env"), "a hidden file"));
        assert!(asked(&outside.path().join("a.png"), "outside of the workspace folder"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), root.join("link"))?;
            assert!(asked(&root.join("link/a.png"), "outside of the workspace folder"));
            std::fs::create_dir(root.join(".vscode"))?;
            std::os::unix::fs::symlink(root.join(".vscode"), root.join("settings"))?;
            assert!(asked(&root.join("settings/a.png"), "in the hidden folder .vscode"));
        }
        Ok(())
    }

    #[test]
    fn paths_are_read_as_uris_and_paths() {
        let folder = Path::new("/w");
        assert_eq!(target(folder, "a b.png"), Ok(PathBuf::from("/w/a b.png")));
        assert_eq!(target(folder, "/x/a.png"), Ok(PathBuf::from("/x/a.png")));
        assert_eq!(target(folder, "file:///x/a%20b.png"), Ok(PathBuf::from("/x/a b.png")));
        for wrong in ["", "../a.png", "a/../../b", "a\nb", "/"] {
            assert!(target(folder, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_folder_is_refused_as_one() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for to in [".", &folder.path().to_string_lossy()] {
            let refused = target(folder.path(), to).err().map(|error| error.message.into_owned()).unwrap_or_default();
            assert!(refused.contains("is a folder"), "{refused}");
        }
        Ok(())
    }

    #[test]
    fn nothing_is_replaced_unless_asked() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.txt");
        assert!(write(&path, b"one", false).is_ok());
        assert!(write(&path, b"two", false).is_err());
        assert!(write(&path, b"three", true).is_ok());
        assert_eq!(std::fs::read(&path)?, b"three");
        Ok(())
    }
}
