//! `codeinterp editor nvim`: writes the Neovim plugin that is embedded in this binary and prints its folder, so that
//! plugin and server are always of one version.

use super::output::say;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use include_dir::{Dir, include_dir};

use crate::agent::ports::StoreError;
use crate::config::state_dir;
use crate::store::files::write_beneath;

static PLUGIN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/editors/nvim");

/// Parts of the plugin's folder that only its development needs.
const UNSHIPPED: &[&str] = &[".emmyrc.json"];

/// The editors whose plugin this binary carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Editor {
    /// Write the Neovim plugin and print its folder, for 'runtimepath' or a plugin manager.
    Nvim,
}

/// Writes the plugin and prints where it is.
pub fn run(editor: Editor) -> ExitCode {
    let written = match editor {
        Editor::Nvim => write_nvim_plugin(&state_dir()),
    };
    match written {
        Ok(folder) => {
            say!("{}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("codeinterp: the plugin could not be written: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes the plugin below `state`, into a folder named after this version, and returns that folder. Files that are
/// there already and are the same stay untouched, so that this may run at every start of the editor.
pub fn write_nvim_plugin(state: &Path) -> Result<PathBuf, StoreError> {
    let relative = Path::new("nvim").join(env!("CARGO_PKG_VERSION"));
    let mut files = Vec::new();
    collect(&PLUGIN, &mut files);
    let help: String = files
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|(path, contents)| help_tags(path, &String::from_utf8_lossy(contents)))
        .collect();
    files.push((PathBuf::from("doc/tags"), help.into_bytes()));
    files.push((PathBuf::from("lua/codeinterp/installed.lua"), installed().into_bytes()));
    for (path, contents) in files {
        let path = relative.join(path);
        if std::fs::read(state.join(&path)).is_ok_and(|present| present == contents) {
            continue;
        }
        write_beneath(state, &path, &contents)?;
    }
    Ok(state.join(relative))
}

fn collect(folder: &Dir<'_>, into: &mut Vec<(PathBuf, Vec<u8>)>) {
    for file in folder.files() {
        if !UNSHIPPED.iter().any(|name| file.path() == Path::new(name)) {
            into.push((file.path().to_owned(), file.contents().to_vec()));
        }
    }
    for inner in folder.dirs() {
        collect(inner, into);
    }
}

/// Lines of Vim's `doc/tags` for one help file, sorted as Vim wants them. The format: `:help tags-file-format`.
fn help_tags(path: &Path, help: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_tag =
        |word: &&str| word.len() > 2 && word.starts_with('*') && word.ends_with('*') && !word[1..word.len() - 1].contains(['*', '|']);
    let mut tags: Vec<&str> = help.split_whitespace().filter(is_tag).map(|word| &word[1..word.len() - 1]).collect();
    tags.sort_unstable();
    tags.dedup();
    tags.iter().fold(String::new(), |mut lines, tag| {
        // Writing into a string can't fail.
        let _ = writeln!(lines, "{tag}\t{name}\t/*{tag}*");
        lines
    })
}

/// The Lua module that tells the plugin which binary it came with.
fn installed() -> String {
    let binary = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let binary = binary.map_or_else(|| "nil".to_owned(), |path| lua_string(&path));
    format!(
        "-- Written by `codeinterp editor nvim`.\nreturn {{ binary = {binary}, version = {} }}\n",
        lua_string(env!("CARGO_PKG_VERSION"))
    )
}

/// `text` as a string of Lua 5.1: everything but plain characters as decimal escapes.
fn lua_string(text: &str) -> String {
    let mut quoted = String::from("'");
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'\\') || byte == b' ' {
            quoted.push(char::from(byte));
        } else {
            let _ = write!(quoted, "\\{byte:03}");
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_written_whole_with_tags_and_the_binary_it_came_with() -> Result<(), StoreError> {
        let state = tempfile::tempdir().expect("temporary folder");
        let folder = write_nvim_plugin(state.path())?;
        for name in ["plugin/codeinterp.lua", "lsp/codeinterp.lua", "lua/codeinterp/init.lua", "doc/codeinterp.txt"] {
            assert!(folder.join(name).is_file(), "{name}");
        }
        assert!(!folder.join(".emmyrc.json").exists());
        let tags = std::fs::read_to_string(folder.join("doc/tags")).expect("tags");
        assert!(tags.contains(":CodeInterp\tcodeinterp.txt\t/*:CodeInterp*\n"), "{tags}");
        assert!(tags.is_ascii() && tags.lines().is_sorted());
        let installed = std::fs::read_to_string(folder.join("lua/codeinterp/installed.lua")).expect("installed.lua");
        assert!(installed.contains(env!("CARGO_PKG_VERSION")), "{installed}");
        Ok(())
    }

    #[test]
    fn writing_it_again_touches_nothing_that_is_the_same_and_mends_what_is_not() -> Result<(), StoreError> {
        let state = tempfile::tempdir().expect("temporary folder");
        let folder = write_nvim_plugin(state.path())?;
        let kept = folder.join("plugin/codeinterp.lua");
        let broken = folder.join("lua/codeinterp/init.lua");
        let before = std::fs::metadata(&kept).and_then(|facts| facts.modified()).expect("time");
        std::fs::write(&broken, "half").expect("written");
        write_nvim_plugin(state.path())?;
        assert_eq!(std::fs::metadata(&kept).and_then(|facts| facts.modified()).expect("time"), before);
        assert!(std::fs::read_to_string(&broken).expect("read").contains("M.setup"));
        Ok(())
    }

    #[test]
    fn paths_become_lua_strings_whatever_they_hold() {
        assert_eq!(lua_string("/home/me/bin"), "'/home/me/bin'");
        assert_eq!(lua_string("C:\\a 'b'\n"), "'C:\\092a \\039b\\039\\010'");
        assert_eq!(lua_string("ü"), "'\\195\\188'");
    }
}
