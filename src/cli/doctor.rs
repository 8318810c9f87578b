//! `codeinterp doctor`: what works here, and what to do about the rest.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::say;
use super::{Format, fail, print_json, settings_with};
use crate::agent::ports::{EDITOR, SandboxError};
use crate::app::App;
use crate::config::{Overrides, Settings, cache_dir, config_file, state_dir};
use crate::sandbox::docker::engine::Engine;
use crate::sandbox::docker::owned;
use crate::sandbox::process;
use crate::session::Services;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// An editor's settings, as it hands them to the language server: what its server would use is looked at
    #[arg(long, value_name = "JSON", value_parser = |text: &str| serde_json::from_str::<serde_json::Value>(text))]
    settings: Option<serde_json::Value>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// `docker`, `process`, `model`, …
    area: &'static str,
    /// What was looked at.
    name: String,
    /// Whether it works.
    ok: bool,
    /// What was found.
    detail: String,
    /// What to do, where it does not work.
    hint: String,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    version: &'static str,
    /// Some backend works, so that code can run here.
    ready: bool,
    /// The backend that `auto` would choose, and why.
    sandbox: String,
    checks: Vec<Check>,
}

pub(super) async fn run(args: &DoctorArgs) -> ExitCode {
    // What an editor has wrong is told where its server starts; it starts with the rest.
    let (editor, _) = args.settings.as_ref().map(Overrides::from_editor).unwrap_or_default().usable();
    let settings = match settings_with(&Overrides::default(), &editor) {
        Ok(settings) => settings,
        Err(error) => return fail(&error),
    };
    let app = App::new();
    let mut checks = docker_checks().await;
    let facts = process::facts(&cache_dir()).await;
    checks.extend(facts.into_iter().map(|fact| Check {
        area: "process",
        name: fact.name,
        ok: fact.ok,
        detail: fact.detail,
        hint: fact.hint.unwrap_or_default(),
    }));
    checks.push(model_check(&app, &settings));
    checks.extend(folder_checks());
    let (ready, sandbox) = match app.backend(&settings).await {
        Ok((_, why)) => (true, why),
        Err(error) => (false, error.to_string()),
    };
    let diagnosis = Diagnosis { version: env!("CARGO_PKG_VERSION"), ready, sandbox, checks };
    match args.format {
        Format::Json => print_json(&diagnosis),
        Format::Text => print(&diagnosis),
    }
    ExitCode::from(if ready { 0 } else { 3 })
}

async fn docker_checks() -> Vec<Check> {
    let check = |name: &str, ok, detail: String, hint: String| Check { area: "docker", name: name.to_owned(), ok, detail, hint };
    let engine = match Engine::connect().await {
        Ok(engine) => engine,
        Err(SandboxError::Unavailable { message, hint }) => return vec![check("engine", false, message, hint)],
        Err(error) => return vec![check("engine", false, error.to_string(), String::new())],
    };
    let mut checks = vec![check("engine", true, engine.description.clone(), String::new())];
    checks.push(match owned::images(&engine).await {
        Ok(images) if images.is_empty() => check(
            "image",
            false,
            "the sandbox image is not built yet; the first question builds it".to_owned(),
            "Build it ahead of time: codeinterp sandbox build --sandbox docker".to_owned(),
        ),
        Ok(images) => {
            check("image", true, images.iter().flat_map(|image| image.tags.clone()).collect::<Vec<_>>().join(", "), String::new())
        }
        Err(error) => check("image", false, error.to_string(), String::new()),
    });
    checks
}

fn model_check(app: &App, settings: &Settings) -> Check {
    let (ok, detail, hint) = match app.model(settings) {
        Err(_) if settings.model.as_deref().map(str::trim) == Some(EDITOR) => {
            (true, "the editor's own; which one there is, the editor knows alone".to_owned(), String::new())
        }
        Ok(model) => {
            let info = model.info();
            let place = info.destination.map(|host| format!(" at {host}")).unwrap_or_default();
            let hint = if info.language_model {
                String::new()
            } else {
                "Name a language model with `model` or CODEINTERP_MODEL to ask free questions.".to_owned()
            };
            (true, format!("{}{place}", info.name), hint)
        }
        Err(error) => (false, error.to_string(), "Mend `model` or `endpoint`.".to_owned()),
    };
    Check { area: "model", name: "model".to_owned(), ok, detail, hint }
}

fn folder_checks() -> Vec<Check> {
    let writable = |folder: &std::path::Path| std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder).map(|_| ()));
    let mut checks: Vec<Check> = [("state", state_dir()), ("cache", cache_dir())]
        .into_iter()
        .map(|(name, folder)| {
            let result = writable(&folder);
            let hint = if result.is_ok() { String::new() } else { format!("Make it writable, or set XDG_{}_HOME.", name.to_uppercase()) };
            let detail = result.map_or_else(|error| format!("{}: {error}", folder.display()), |()| folder.display().to_string());
            Check { area: "folders", name: name.to_owned(), ok: hint.is_empty(), detail, hint }
        })
        .collect();
    if let Some(file) = config_file() {
        let there = if file.exists() { "" } else { " (not there: defaults are used)" };
        checks.push(Check {
            area: "folders",
            name: "settings".to_owned(),
            ok: true,
            detail: format!("{}{there}", file.display()),
            hint: String::new(),
        });
    }
    checks
}

fn print(diagnosis: &Diagnosis) {
    say!("codeinterp {}\n", diagnosis.version);
    for check in &diagnosis.checks {
        let mark = if check.ok { "ok " } else { "no " };
        say!("{mark} {:<8} {:<16} {}", check.area, check.name, check.detail);
        if !check.hint.is_empty() {
            say!("    {:<25} {}", "", check.hint);
        }
    }
    say!("\n{}", diagnosis.sandbox);
    if diagnosis.ready {
        say!("Try: codeinterp analyze FILE.csv");
    }
}
