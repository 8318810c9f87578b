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
    "channel.py",
    "figures.py",
    "frames.py",
    "hooks.py",
    "kernel.py",
    "processes.py",
    "shell.py",
    "streams.py",
    "tracebacks.py",
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
