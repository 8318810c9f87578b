//! Which files are put into the sandbox, and under which names.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::request::RunFile;
use crate::agent::ports::FileSource;
use crate::agent::run::Run;
use crate::store::RunStore;

/// Why a file can't be an input.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{path}: {reason}")]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// What to do next.
    pub hint: String,
}

/// Checks that `path` is a file that may be read as an input of a run in `workspace`.
///
/// Directories, FIFOs and devices are refused. A symbolic link is followed only where it stays within the workspace:
/// a hostile project must not be able to point at a person's other files.
pub fn check_input(path: &Path, workspace: &Path) -> Result<(), InputError> {
    let error = |reason: &str, hint: &str| InputError { path: path.to_owned(), reason: reason.to_owned(), hint: hint.to_owned() };
    let link = std::fs::symlink_metadata(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => error("there is no such file", "Check the path."),
        std::io::ErrorKind::PermissionDenied => error("permission denied", "Make the file readable for you."),
        _ => error(&cause.to_string(), "Check the path."),
    })?;
    if link.file_type().is_symlink() {
        let target = path.canonicalize().map_err(|_| error("it is a symbolic link that leads nowhere", "Name the file itself."))?;
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        if !target.starts_with(&workspace) {
            return Err(error("it is a symbolic link out of the workspace", &format!("Name the file itself: {}", target.display())));
        }
    }
    let metadata = std::fs::metadata(path).map_err(|cause| error(&cause.to_string(), "Check the path."))?;
    if metadata.is_dir() {
        return Err(error("it is a directory", "Name the files in it, for example with a pattern: DIR/*.csv"));
    }
    if !metadata.is_file() {
        return Err(error("it is not a regular file", "Copy its contents into a file first."));
    }
    // Opening tells about permissions before anything is started.
    std::fs::File::open(path).map(|_| ()).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::PermissionDenied => error("permission denied", "Make the file readable for you."),
        _ => error(&cause.to_string(), "Check the path."),
    })
}

/// Path of `path` inside the sandbox: relative to the workspace where it is inside, else its file name.
pub fn sandbox_name(path: &Path, workspace: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let workspace = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
    let relative =
        absolute.strip_prefix(&workspace).ok().filter(|relative| relative.components().all(|part| matches!(part, Component::Normal(_))));
    let relative =
        relative.map(Path::to_owned).or_else(|| absolute.file_name().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("file"));
    // Control characters have no place in a prompt or in Python code.
    relative.to_string_lossy().chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

/// The input files of a run on `paths`, with names of their own each.
pub fn from_paths(paths: &[PathBuf], workspace: &Path) -> Result<Vec<RunFile>, InputError> {
    from_named(paths.iter().map(|path| (path.as_path(), path.as_path())), workspace)
}

/// The input files of a run on pairs of the path that a person named and the one that it leads to, named as the person did.
pub fn from_named<'a>(paths: impl IntoIterator<Item = (&'a Path, &'a Path)>, workspace: &Path) -> Result<Vec<RunFile>, InputError> {
    let mut taken = HashSet::new();
    let mut files = Vec::new();
    for (named, path) in paths {
        check_input(path, workspace)?;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let wish = sandbox_name(named, workspace);
        let mut name = wish.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = crate::store::names::numbered(&wish, number);
        }
        files.push(RunFile { name, source: FileSource::Path(absolute.clone()), origin: absolute.display().to_string() });
    }
    Ok(files)
}

/// The input files of a recorded run: read anew where they stand on disk, else as they were kept with the record.
/// What is in neither place is left out.
pub(super) fn of_record(store: &RunStore, run: &Run) -> Vec<RunFile> {
    let mut files = Vec::new();
    for (place, input) in run.inputs.iter().enumerate() {
        let path = Path::new(&input.source);
        let source = if path.is_absolute() && path.is_file() { Some(path.to_owned()) } else { store.input_path(&run.run, place) };
        files.extend(source.map(|path| RunFile { name: input.name.clone(), source: FileSource::Path(path), origin: input.source.clone() }));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_to_the_workspace() {
        assert_eq!(sandbox_name(Path::new("/w/data/a b.csv"), Path::new("/w")), "data/a b.csv");
        assert_eq!(sandbox_name(Path::new("/elsewhere/销售 100%.csv"), Path::new("/w")), "销售 100%.csv");
    }

    #[test]
    fn same_named_files_of_other_folders_get_names_of_their_own() -> Result<(), Box<dyn std::error::Error>> {
        let (one, two, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?);
        let paths = [one.path().join("a.csv"), two.path().join("a.csv")];
        for path in &paths {
            std::fs::write(path, "x\n")?;
        }
        let names: Vec<String> = from_paths(&paths, workspace.path())?.into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["a.csv", "a-2.csv"]);
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_workspace_and_directories_are_refused() -> Result<(), Box<dyn std::error::Error>> {
        let workspace = tempfile::tempdir()?;
        let outside = tempfile::NamedTempFile::new()?;
        let link = workspace.path().join("link.csv");
        std::os::unix::fs::symlink(outside.path(), &link)?;
        assert!(check_input(&link, workspace.path()).is_err_and(|error| error.reason.contains("out of the workspace")));
        assert!(check_input(workspace.path(), workspace.path()).is_err_and(|error| error.reason.contains("directory")));
        Ok(())
    }
}
