//! Writing below a folder: whole or not at all, and never through a symbolic link that somebody put there.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::agent::ports::StoreError;

/// Writes `data` to `root/relative`, creating folders. The file appears whole under its name or not at all.
/// `root` is trusted; nothing below it may be a symbolic link.
pub fn write_beneath(root: &Path, relative: &Path, data: &[u8]) -> Result<PathBuf, StoreError> {
    let target = root.join(relative);
    write(root, relative, data).map_err(|error| StoreError::Io { path: target.clone(), reason: reason(&error) })?;
    Ok(target)
}

/// Removes a folder below `root` with all that is in it; what is not there is no error.
pub fn remove_beneath(root: &Path, relative: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(root.join(relative)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: root.join(relative), reason: error.to_string() })
        }
        _ => Ok(()),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space and try again".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; choose a folder that you may write to".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(target_os = "linux")]
fn write(root: &Path, relative: &Path, data: &[u8]) -> io::Result<()> {
    use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, renameat, unlinkat};

    let (folder, name) = split(relative)?;
    std::fs::create_dir_all(root)?;
    let root = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut made = PathBuf::new();
    for part in folder.components() {
        made.push(part);
        match rustix::fs::mkdirat(&root, &made, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = openat2(&root, folder, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), beneath)?;

    let temporary = format!(".{}.part", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, temporary.as_str(), flags, Mode::from_raw_mode(0o600))?;
    let mut file = std::fs::File::from(file);
    let written = file.write_all(data).and_then(|()| file.sync_data());
    let moved = written.and_then(|()| renameat(&folder, temporary.as_str(), &folder, name).map_err(io::Error::from));
    if moved.is_err() {
        // The first error is the one to tell.
        let _ = unlinkat(&folder, temporary.as_str(), AtFlags::empty());
    }
    moved
}

#[cfg(not(target_os = "linux"))]
fn write(root: &Path, relative: &Path, data: &[u8]) -> io::Result<()> {
    let (folder, name) = split(relative)?;
    std::fs::create_dir_all(root)?;
    let mut path = root.to_owned();
    for part in folder.components() {
        path.push(part);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !std::fs::symlink_metadata(&path)?.is_dir() {
            return Err(io::Error::other(format!("{} is not a folder", path.display())));
        }
    }
    let mut file = tempfile::NamedTempFile::new_in(&path)?;
    file.write_all(data)?;
    file.as_file().sync_data()?;
    file.persist(path.join(name)).map(|_| ()).map_err(|error| error.error)
}

/// Folder and file name of a relative path that holds only plain names.
fn split(relative: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    match (plain, relative.parent(), relative.file_name()) {
        (true, Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(io::Error::other("not a plain relative path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_no_part_file_stays() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        write_beneath(root.path(), Path::new("a/b/c.txt"), b"one")?;
        write_beneath(root.path(), Path::new("a/b/c.txt"), b"two")?;
        assert_eq!(std::fs::read(root.path().join("a/b/c.txt"))?, b"two");
        assert_eq!(std::fs::read_dir(root.path().join("a/b"))?.count(), 1);
        Ok(())
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        let root = tempfile::tempdir().expect("temporary folder");
        for path in ["../x", "/etc/x", "a/../../x", ""] {
            assert!(write_beneath(root.path(), Path::new(path), b"x").is_err(), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_became_a_symbolic_link_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let outside = tempfile::tempdir()?;
        std::os::unix::fs::symlink(outside.path(), root.path().join("artifacts"))?;
        assert!(write_beneath(root.path(), Path::new("artifacts/x.png"), b"x").is_err());
        assert_eq!(std::fs::read_dir(outside.path())?.count(), 0);
        Ok(())
    }
}
