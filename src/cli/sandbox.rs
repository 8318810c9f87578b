//! `codeinterp sandbox`: the image, environments and containers that it owns.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;

use super::console::{Console, TerminalConsent};
use super::output::say;
use super::{Format, SandboxArgs, cancelled_by_signals, fail, print_json, settings};
use crate::agent::events::RunEvent;
use crate::agent::ports::SandboxError;
use crate::agent::run::RunError;
use crate::app::App;
use crate::config::{Overrides, cache_dir};
use crate::sandbox::docker::engine::Engine;
use crate::sandbox::docker::owned::{self, OwnedContainer, OwnedImage};
use crate::sandbox::provision::{EnvironmentEntry, list_environments, prune_environments};
use crate::session::Services;

#[derive(Debug, Subcommand)]
pub(super) enum SandboxCommand {
    /// Make a backend ready ahead of time: build its image, provision its environment
    Build {
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
    /// Containers, images and environments of codeinterp
    List {
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Remove what no living process uses: stale containers, images and environments
    Prune {
        /// Also the image that the settings ask for, which the next start has to build again
        #[arg(long)]
        all: bool,
    },
}

pub(super) async fn run(command: SandboxCommand) -> ExitCode {
    match command {
        SandboxCommand::Build { sandbox } => build(&sandbox).await,
        SandboxCommand::List { format } => list(format).await,
        SandboxCommand::Prune { all } => prune(all).await,
    }
}

async fn build(args: &SandboxArgs) -> ExitCode {
    let cancel = cancelled_by_signals();
    let mut overrides = Overrides::default();
    args.apply(&mut overrides);
    let settings = match settings(&overrides) {
        Ok(settings) => settings,
        Err(error) => return fail(&error),
    };
    let (backend, why) = match App::asking(Arc::new(TerminalConsent)).backend(&settings).await {
        Ok(chosen) => chosen,
        Err(error) => return fail(&RunError::from(&error)),
    };
    eprintln!("{why}");
    let console = Arc::new(Console::new());
    let progress = |progress| console.event(&RunEvent::Progress(progress));
    match backend.provision(&settings.sandbox, &progress, &cancel).await {
        Ok(()) => {
            say!("The {} sandbox is ready.", backend.name());
            ExitCode::SUCCESS
        }
        Err(SandboxError::Cancelled) => ExitCode::from(130),
        Err(error) => fail(&RunError::from(&error)),
    }
}

/// Everything that codeinterp owns on this machine.
#[derive(Debug, Default, Serialize)]
struct Owned {
    containers: Vec<OwnedContainer>,
    images: Vec<OwnedImage>,
    environments: Vec<EnvironmentEntry>,
}

async fn owned() -> (Owned, Option<Engine>) {
    let mut found = Owned { environments: list_environments(&cache_dir()), ..Owned::default() };
    let Ok(engine) = Engine::connect().await else { return (found, None) };
    found.containers = owned::containers(&engine).await.unwrap_or_default();
    found.images = owned::images(&engine).await.unwrap_or_default();
    (found, Some(engine))
}

async fn list(format: Format) -> ExitCode {
    let (found, engine) = owned().await;
    if format == Format::Json {
        print_json(&found);
        return ExitCode::SUCCESS;
    }
    if engine.is_none() {
        say!("No Docker engine answers; only local environments are listed.");
    }
    for container in &found.containers {
        let owner = match container.owner_alive {
            Some(true) => "in use",
            Some(false) => "stale",
            None => "unknown owner",
        };
        say!(
            "container    {}  {}  {}  {}  {owner} ({})",
            container.name,
            container.state,
            age(container.created),
            container.folder,
            container.owner
        );
    }
    for image in &found.images {
        let state = if image.in_use { "in use" } else { "not in use" };
        say!("image        {}  {}  {}  {state}", called(image), size(image.bytes.unsigned_abs()), age(image.created));
    }
    for environment in &found.environments {
        let state = if environment.in_use { "in use" } else { "not in use" };
        let age = age(jiff::Timestamp::now().as_second().saturating_sub_unsigned(environment.age_seconds));
        say!("environment  {}  {}  {age}  {}  {state}", environment.path.display(), size(environment.bytes), environment.sets.join(" + "));
    }
    if found.containers.is_empty() && found.images.is_empty() && found.environments.is_empty() {
        say!("Nothing yet. `codeinterp sandbox build` makes a sandbox ready ahead of time.");
    }
    ExitCode::SUCCESS
}

async fn prune(all: bool) -> ExitCode {
    let (found, engine) = owned().await;
    let current = match settings(&Overrides::default()) {
        Ok(settings) if !all => owned::current_tags(&settings.sandbox),
        Ok(_) => Vec::new(),
        Err(error) => return fail(&error),
    };
    let mut code = ExitCode::SUCCESS;
    if let Some(engine) = &engine {
        for container in found.containers.iter().filter(|container| container.owner_alive == Some(false)) {
            code = say(&container.name, owned::remove_container(engine, &container.id).await, code);
        }
        // Asked again: an image of a container that has just gone is free now.
        for image in owned::images(engine).await.unwrap_or_default() {
            if !image.in_use && !image.tags.iter().any(|tag| current.contains(tag)) {
                code = say(&called(&image), owned::remove_image(engine, &image).await, code);
            }
        }
    }
    for environment in prune_environments(&cache_dir(), None) {
        say!("removed {}", environment.path.display());
    }
    code
}

/// What people see of an image.
fn called(image: &OwnedImage) -> String {
    if image.tags.is_empty() {
        return format!("{} (of a build)", image.id.trim_start_matches("sha256:").chars().take(12).collect::<String>());
    }
    image.tags.join(" ")
}

fn say(what: &str, removed: Result<(), SandboxError>, code: ExitCode) -> ExitCode {
    match removed {
        Ok(()) => {
            say!("removed {what}");
            code
        }
        Err(error) => fail(&RunError::from(&error)),
    }
}

fn age(created: i64) -> String {
    let seconds = jiff::Timestamp::now().as_second().saturating_sub(created).max(0);
    match seconds {
        0..120 => format!("{seconds} s old"),
        120..7200 => format!("{} min old", seconds / 60),
        7200..172_800 => format!("{} h old", seconds / 3600),
        _ => format!("{} days old", seconds / 86_400),
    }
}

fn size(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
