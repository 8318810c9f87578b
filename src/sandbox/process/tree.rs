//! The file tree of a sandbox: an empty one of its own, with what is needed of the host mounted into it read-only.

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::paths::TOP_LINKS;
use super::spec::{INNER_ID, Spec};

/// Working directory inside.
pub const WORKSPACE: &str = "/workspace";

// Of linux/mount.h and linux/fcntl.h; the libc crate has them for other systems only.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;

/// `struct mount_attr` of linux/mount.h.
#[repr(C)]
#[derive(Default)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Largest file of the font list that is copied.
const MAX_FONT_LIST: u64 = 8 << 20;

/// A failed step.
#[derive(Debug)]
pub struct Failure {
    /// What was being done.
    pub step: String,
    /// What the system said.
    pub reason: String,
}

impl Failure {
    /// For `map_err`.
    pub fn at<E: std::fmt::Display>(step: impl Into<String>) -> impl FnOnce(E) -> Self {
        let step = step.into();
        move |error| Self { step, reason: error.to_string() }
    }
}

/// Replaces the file tree of this process, which has a mount namespace of its own.
pub fn build(spec: &Spec) -> Result<(), Failure> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(Failure::at("making mounts private"))?;
    // Everything of the host is opened before anything is covered.
    let mut trees = Vec::new();
    for path in &spec.read_only {
        trees.push((clone_tree(path, 0).map_err(Failure::at(format!("opening {}", path.display())))?, path.clone()));
    }
    let mut files = Vec::new();
    for each in &spec.mounts {
        files.push((open_file(&each.host).map_err(Failure::at(format!("opening {}", each.host.display())))?, each.name.clone()));
    }
    let devices = ["null", "zero", "full", "random", "urandom"]
        .into_iter()
        .filter_map(|name| Some((clone_tree(&Path::new("/dev").join(name), 0).ok()?, name)))
        .collect::<Vec<_>>();
    let links: Vec<(PathBuf, PathBuf)> =
        TOP_LINKS.iter().filter_map(|link| Some((PathBuf::from(link), std::fs::read_link(link).ok()?))).collect();
    let fonts = spec.fonts.as_deref().map(read_fonts).unwrap_or_default();

    let root = ["/tmp", "/mnt", "/var"].into_iter().map(Path::new).find(|path| path.is_dir() && !path.is_symlink());
    let root = root.ok_or_else(|| Failure {
        step: "finding a place for the new root".to_owned(),
        reason: "there is no /tmp, /mnt or /var".to_owned(),
    })?;
    tmpfs(root, 4 << 20, "0755", MsFlags::empty()).map_err(Failure::at("mounting a root"))?;
    // Before what is mounted read-only: a cache folder may lie below `/tmp`.
    mount_scratch(root, spec)?;
    for (tree, path) in trees {
        attach(&tree, root, &path, true).map_err(Failure::at(format!("mounting {}", path.display())))?;
    }
    for (link, target) in links {
        symlink(target, inside(root, &link)).map_err(Failure::at("linking programs"))?;
    }
    populate(root, &devices).map_err(Failure::at("making /dev and /etc"))?;
    fill_scratch(root, &fonts, files)?;
    enter(root).map_err(Failure::at("changing the root"))
}

/// `/dev`, `/proc` and the files of `/etc` that libraries read.
fn populate(root: &Path, devices: &[(OwnedFd, &str)]) -> io::Result<()> {
    for folder in ["dev", "etc", "proc"] {
        folders_to(&root.join(folder))?;
    }
    for (tree, name) in devices {
        attach(tree, root, &Path::new("/dev").join(name), false)?;
    }
    for (link, target) in
        [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")]
    {
        symlink(target, root.join("dev").join(link))?;
    }
    let user = format!("sandbox:x:{INNER_ID}:{INNER_ID}::/tmp/home:/bin/sh\n");
    std::fs::write(root.join("etc/passwd"), user)?;
    std::fs::write(root.join("etc/group"), format!("sandbox:x:{INNER_ID}:\n"))?;
    std::fs::write(root.join("etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")?;
    std::fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    // With `subset=pid` there are processes only: no kcore, no sys. Some hosts (themselves in containers) let nobody mount it;
    // then there is none, and programs that want it say so.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), &root.join("proc"), Some("proc"), flags, Some("subset=pid"));
    Ok(())
}

/// The folders that can be written, in memory, bounded, nothing in them executable.
fn mount_scratch(root: &Path, spec: &Spec) -> Result<(), Failure> {
    let limits = &spec.limits;
    // `/tmp` is nobody's own, so that what is mounted below it can't be moved away.
    let folders = [
        ("workspace", limits.workspace_bytes(), "0700", true),
        ("tmp", limits.temporary_bytes(), "1777", false),
        ("dev/shm", limits.shared_bytes(), "1777", false),
    ];
    for (folder, bytes, mode, owned) in folders {
        let path = root.join(folder);
        folders_to(&path)
            .and_then(|()| Ok(tmpfs(&path, bytes, mode, MsFlags::MS_NOEXEC)?))
            .map_err(Failure::at(format!("mounting /{folder}")))?;
        if owned {
            own(&path).map_err(Failure::at(format!("giving away /{folder}")))?;
        }
    }
    Ok(())
}

/// What lies in the scratch folders from the start: a home, the list of fonts, large files of the host.
fn fill_scratch(root: &Path, fonts: &[(PathBuf, Vec<u8>)], files: Vec<(OwnedFd, PathBuf)>) -> Result<(), Failure> {
    for name in ["home", "matplotlib"] {
        let path = root.join("tmp").join(name);
        std::fs::create_dir(&path).and_then(|()| own(&path)).map_err(Failure::at("making the home folder"))?;
    }
    for (name, bytes) in fonts {
        let path = root.join("tmp/matplotlib").join(name);
        std::fs::write(&path, bytes).and_then(|()| own(&path)).map_err(Failure::at("copying the list of fonts"))?;
    }
    let workspace = root.join("workspace");
    for (tree, name) in files {
        let mut folder = workspace.clone();
        for part in name.parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            if !folder.is_dir() {
                std::fs::create_dir(&folder).and_then(|()| own(&folder)).map_err(Failure::at("making folders for a file"))?;
            }
        }
        attach(&tree, &workspace, &Path::new("/").join(&name), true).map_err(Failure::at(format!("mounting {}", name.display())))?;
    }
    Ok(())
}

fn own(path: &Path) -> io::Result<()> {
    chown(path, Some(INNER_ID), Some(INNER_ID))
}

/// Makes `root` the root of this process, and forgets the old one.
fn enter(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    // The new root over the old one at the same place: no folder for the old one is needed.
    nix::unistd::pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    std::env::set_current_dir("/")?;
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)?;
    std::env::set_current_dir(WORKSPACE)
}

fn tmpfs(path: &Path, bytes: u64, mode: &str, flags: MsFlags) -> nix::Result<()> {
    // An inode takes kernel memory: a bound against a million empty files.
    let inodes = (bytes / 8192).clamp(1024, 65_536);
    let options = format!("size={bytes},nr_inodes={inodes},mode={mode}");
    mount(Some("tmpfs"), path, Some("tmpfs"), flags | MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(options.as_str()))
}

/// A file's or folder's mount, detached, with everything mounted below it.
fn clone_tree(path: &Path, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = c_string(path.as_os_str())?;
    open_tree(libc::AT_FDCWD, &path, flags)
}

/// A regular file of the host, never by way of a link as its last part.
fn open_file(path: &Path) -> io::Result<OwnedFd> {
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    open_tree(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
}

fn open_tree(folder: libc::c_int, path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path is a C string; the result is a new descriptor or -1.
    unsafe {
        let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC.cast_unsigned() | libc::AT_RECURSIVE.cast_unsigned() | flags.cast_unsigned();
        let fd = libc::syscall(libc::SYS_open_tree, folder, path.as_ptr(), flags);
        match libc::c_int::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Mounts a detached tree at `path` below `root`, read-only. `nodev` is false for devices alone.
fn attach(tree: &OwnedFd, root: &Path, path: &Path, nodev: bool) -> io::Result<()> {
    let target = inside(root, path);
    if is_folder(tree)? {
        folders_to(&target)?;
    } else {
        folders_to(target.parent().unwrap_or(root))?;
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&target)?.flush()?;
    }
    let mut attributes = MountAttr { set: MOUNT_ATTR_NOSUID, ..MountAttr::default() };
    if nodev {
        attributes.set |= MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY;
    }
    let target = c_string(target.as_os_str())?;
    // SAFETY: pointers are valid for the calls, the size is the struct's.
    unsafe {
        let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
        if libc::syscall(libc::SYS_mount_setattr, tree.as_raw_fd(), c"".as_ptr(), flags, &raw const attributes, size_of::<MountAttr>()) != 0
        {
            return Err(io::Error::last_os_error());
        }
        if libc::syscall(libc::SYS_move_mount, tree.as_raw_fd(), c"".as_ptr(), libc::AT_FDCWD, target.as_ptr(), MOVE_MOUNT_F_EMPTY_PATH)
            != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn is_folder(tree: &OwnedFd) -> io::Result<bool> {
    let status = nix::sys::stat::fstat(tree)?;
    Ok(status.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

/// The place of an absolute path below another root.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn folders_to(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// The files of a folder, small ones only.
fn read_fonts(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FONT_LIST))
        .filter_map(|entry| Some((PathBuf::from(entry.file_name()), std::fs::read(entry.path()).ok()?)))
        .collect()
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::other)
}
