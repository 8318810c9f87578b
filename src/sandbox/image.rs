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
    "profiler/faults.py",
    "profiler/formats.py",
    "profiler/layout.py",
    "profiler/loading.py",
    "profiler/notes.py",
    "profiler/picture.py",
    "profiler/plaintext.py",
    "profiler/records.py",
    "profiler/repair.py",
    "profiler/source.py",
    "profiler/streamed.py",
    "profiler/workbook.py",
    "profiles.py",
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
