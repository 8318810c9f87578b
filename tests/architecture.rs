//! The direction of dependencies, and what else the layout of the project promises (see the map in `src/lib.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that finds something missing fails there")]

use std::fs;
use std::path::{Path, PathBuf};

/// What the lines of a module may not name, and why.
struct Rule {
    modules: &'static [&'static str],
    forbidden: &'static [&'static str],
    because: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        modules: &["agent", "profile", "report"],
        forbidden: &[
            "crate::llm",
            "crate::jupyter",
            "crate::sandbox",
            "crate::store",
            "crate::session",
            "crate::lsp",
            "crate::cli",
            "crate::app",
        ],
        because: "the core imports no edge; edges implement its ports",
    },
    Rule {
        modules: &["agent", "profile", "report"],
        forbidden: &[
            "bollard",
            "reqwest",
            "genai",
            "jupyter_protocol",
            "landlock",
            "std::fs",
            "tokio::fs",
            "std::process",
            "tokio::process",
        ],
        because: "the core knows no Docker, HTTP, process or file-system types",
    },
    Rule {
        modules: &["agent", "app", "cli", "config", "jupyter", "llm", "profile", "report", "sandbox", "session", "store"],
        forbidden: &["tower_lsp", "lsp_types"],
        because: "only `lsp` knows the protocol's types",
    },
    Rule {
        modules: &["jupyter", "llm", "sandbox", "store"],
        forbidden: &["crate::session", "crate::lsp", "crate::cli", "crate::app"],
        because: "edges implement ports and know nobody above them",
    },
    Rule { modules: &["session"], forbidden: &["crate::lsp", "crate::cli", "crate::app"], because: "a session does not know who shows it" },
    Rule { modules: &["app"], forbidden: &["crate::lsp", "crate::cli"], because: "the composition root serves both, and knows neither" },
    Rule { modules: &["lsp"], forbidden: &["crate::cli"], because: "the server is one way in, the command line another" },
];

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Every Rust file of the crate, with its path below `src`.
fn sources() -> Vec<(PathBuf, String)> {
    let source = Path::new(ROOT).join("src");
    let mut found = Vec::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.strip_prefix(&source).unwrap().to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

/// The top-level module that a file belongs to: `agent` for `agent/ports.rs` and for `agent.rs`.
fn module_of(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Does the line name this path as a whole word (`genai` but not `genais`)?
fn names(line: &str, word: &str) -> bool {
    let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(part_of_a_word) && !line[at + word.len()..].chars().next().is_some_and(part_of_a_word)
    })
}

#[test]
fn modules_depend_in_one_direction() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let module = module_of(&path);
        for rule in RULES.iter().filter(|rule| rule.modules.contains(&module.as_str())) {
            for (index, line) in text.lines().enumerate() {
                // Comments and documents may speak of anything; strings hold names of models and crates.
                let code = line.split("//").next().unwrap_or_default();
                let code = code.split('"').step_by(2).collect::<String>();
                if let Some(word) = rule.forbidden.iter().find(|word| names(&code, word)) {
                    broken.push(format!("src/{}:{}: names {word}, but {}", path.display(), index + 1, rule.because));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_module_of_the_crate_has_its_place_in_the_rules() {
    let known =
        ["agent", "app", "cli", "config", "jupyter", "lib", "llm", "lsp", "main", "profile", "report", "sandbox", "session", "store"];
    for (path, _) in sources() {
        let module = module_of(&path);
        assert!(known.contains(&module.as_str()), "src/{} is in no known module", path.display());
    }
}

#[test]
fn files_stay_readable() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > 500)
        .map(|(path, lines)| format!("src/{} has {lines} lines; 500 is the most", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_top_level_holds_only_what_it_should() {
    let expected = ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "editors", "rustfmt.toml", "src", "target", "tests"];
    for entry in fs::read_dir(ROOT).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || expected.contains(&name.as_str()), "{name} has no place at the top level");
    }
}
