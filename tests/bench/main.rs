//! How fast it is, as ratios measured side by side in one run:
//!
//! ```text
//! cargo bench --bench speed             # everything
//! cargo bench --bench speed -- server   # agent, server, process or docker alone
//! ```
//!
//! Needs the Python of the end-to-end tests (`bash tests/setup/test-python.sh`), and a Docker engine for the rows about
//! Docker. Prints one Markdown table; a missed target is printed as such and is no failure, since a busy machine
//! misses it too.

mod agent;
mod client;
#[path = "../support/provider.rs"]
#[expect(dead_code, clippy::expect_used, reason = "the scripted server of the tests; only its turns are needed here")]
mod provider;
mod sandbox;
mod server;
mod stream;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result};
use codeinterp::config::BackendChoice;

fn main() -> Result<()> {
    // Cargo passes `--bench`; what else is given names groups of rows.
    let groups: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|name| name == group);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;

    let mut rows = Vec::new();
    if wanted("agent") {
        rows.extend(runtime.block_on(agent::rows())?);
    }
    if wanted("server") {
        rows.extend(server::rows(&python()?)?);
    }
    if wanted("process") || wanted("docker") {
        let peer = sandbox::Peer::measure(&python()?)?;
        for (group, choice) in [("process", BackendChoice::Process), ("docker", BackendChoice::Docker)] {
            if wanted(group) {
                rows.extend(runtime.block_on(sandbox::rows(choice, &peer))?);
            }
        }
    }
    table::print(&rows);
    Ok(())
}

/// The Python with ipykernel and ruff, where tests/setup puts it.
fn python() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("TEST_PYTHON") {
        return Ok(path.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor a home folder")?;
    let python = cache.join("codeinterp-testbed/test-python/bin/python");
    anyhow::ensure!(python.is_file(), "{} is missing; run: bash tests/setup/test-python.sh", python.display());
    Ok(python)
}
