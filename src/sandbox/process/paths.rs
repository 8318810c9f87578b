//! What of the host's file system the sandbox sees, read-only.

use std::path::{Path, PathBuf};

use crate::sandbox::provision::Python;

/// Folders and files of the system that programs need to run: libraries, programs, fonts, time zones, locales.
/// Of `/etc` only what a program needs to find these.
const SYSTEM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share/fonts",
    "/usr/share/fontconfig",
    "/usr/share/i18n",
    "/usr/share/locale",
    "/usr/share/mime",
    "/usr/share/terminfo",
    "/usr/share/zoneinfo",
    "/usr/local/share/fonts",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
];

/// Links at the top of most systems, made again inside where the host has them as links.
pub const TOP_LINKS: &[&str] = &["/bin", "/lib", "/lib64"];

/// Everything read-only for this Python, each path once and none below another.
pub fn read_only(python: &Python, own: &[&Path]) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let mut paths: Vec<PathBuf> = SYSTEM
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .filter(|path| !(TOP_LINKS.iter().any(|link| path == Path::new(link)) && path.is_symlink()))
        .collect();
    for prefix in &python.prefixes {
        if prefix.starts_with("/nix/store") {
            paths.push("/nix/store".into());
        } else if !is_broad(prefix, home.as_deref()) {
            paths.push(prefix.clone());
        }
    }
    paths.push(python.executable.clone());
    paths.extend(own.iter().map(|path| path.to_path_buf()));
    outermost(paths)
}

/// Folders that hold more than a Python: a Python installed there brings its standard library's folder by itself.
fn is_broad(path: &Path, home: Option<&Path>) -> bool {
    const BROAD: &[&str] = &["/", "/usr", "/usr/local", "/opt", "/var", "/home", "/root", "/etc", "/srv", "/mnt", "/media", "/tmp", "/run"];
    BROAD.iter().any(|broad| path == Path::new(broad)) || home.is_some_and(|home| home.starts_with(path))
}

/// Sorted, without those that lie below another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|each| path.starts_with(each)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_in_the_home_folder_does_not_open_the_home_folder() {
        let home = Path::new("/home/ada");
        for broad in ["/", "/usr", "/home", "/home/ada"] {
            assert!(is_broad(Path::new(broad), Some(home)), "{broad}");
        }
        for narrow in ["/home/ada/.pyenv/versions/3.12.1", "/opt/python3.12", "/usr/lib/python3.11"] {
            assert!(!is_broad(Path::new(narrow), Some(home)), "{narrow}");
        }
    }

    #[test]
    fn what_lies_below_another_path_is_left_out() {
        let paths = ["/usr/lib/python3", "/usr/lib", "/usr/libexec", "/a"].map(PathBuf::from).to_vec();
        assert_eq!(outermost(paths), ["/a", "/usr/lib", "/usr/libexec"].map(PathBuf::from));
    }
}
