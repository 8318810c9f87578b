//! What runs inside every sandbox: the supervisor's Python modules, embedded in the binary.

use std::path::Path;

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("image/", $name)))),*]
    };
}

/// Path relative to one folder, and contents, of every module; `supervisor.py` is the one to start.
///
/// A backend puts them into a folder of their own that the sandbox can read and not write, and runs
/// `python -I FOLDER/supervisor.py --workdir DIR [--memory BYTES] [--threads N]`.
pub const MODULES: &[(&str, &str)] = modules![
    "capture.py",
    "channel.py",
    "children.py",
    "executions.py",
    "figures.py",
    "files.py",
    "frames.py",
    "hooks.py",
    "kernel.py",
    "loop.py",
    "processes.py",
    "profiler/__init__.py",
    "profiler/__main__.py",
    "profiler/arrays.py",
    "profiler/cells.py",
    "profiler/charset.py",
    "profiler/columnar.py",
    "profiler/columns.py",
    "profiler/database.py",
    "profiler/delimited.py",
    "profiler/dialect.py",
    "profiler/drawn.py",
    "profiler/faults.py",
    "profiler/fixed.py",
    "profiler/foreign.py",
    "profiler/formats.py",
    "profiler/hashes.py",
    "profiler/layout.py",
    "profiler/loading.py",
    "profiler/marks.py",
    "profiler/measure.py",
    "profiler/notes.py",
    "profiler/pages.py",
    "profiler/picture.py",
    "profiler/plaintext.py",
    "profiler/plan.py",
    "profiler/records.py",
    "profiler/repair.py",
    "profiler/source.py",
    "profiler/streamed.py",
    "profiler/transcode.py",
    "profiler/workbook.py",
    "profiles.py",
    "replies.py",
    "shell.py",
    "snapshot.py",
    "streams.py",
    "supervisor.py",
    "tracebacks.py",
    "transfers.py",
    "variables.py",
    "worker.py",
    "zygote.py",
];

/// Writes [`MODULES`] below `folder`, which must exist.
pub fn write_modules(folder: &Path) -> std::io::Result<()> {
    for (name, text) in MODULES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn python_files(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                python_files(&entry.path(), &format!("{name}/"), found);
            } else if Path::new(&name).extension().is_some_and(|extension| extension == "py") {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_module_of_the_image_folder_is_embedded() {
        let mut found = BTreeSet::new();
        python_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox/image"), "", &mut found);
        let embedded: BTreeSet<String> = MODULES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(embedded, found, "MODULES in src/sandbox/image.rs must name every Python file below src/sandbox/image");
    }
}
