//! `sandbox.packages` as a thin layer on top of the image: chosen, agreed to, downloaded and installed before any
//! container starts, since inside there is no network.

use bollard::query_parameters::{RemoveImageOptionsBuilder, TagImageOptionsBuilder};
use tokio_util::sync::CancellationToken;

use super::build::{Recipe, build};
use super::context::{self, REPOSITORY};
use super::engine::{Engine, refused};
use crate::agent::ports::{Progress, SandboxError, Sink};
use crate::sandbox::consent::Consent;
use crate::sandbox::provision::{lock, wheels};

const RESOLVE: &str = include_str!("../image/Dockerfile.resolve");
const INSTALL: &str = include_str!("../image/Dockerfile.packages");

/// What begins the line of a build that holds the chosen wheels.
const MARK: &str = "codeinterp-wheels: ";

/// The tag of the image `base` with these packages.
pub(super) fn tag(base: &str, packages: &[String]) -> String {
    let mut sorted: Vec<&str> = packages.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let files = [("Dockerfile".to_owned(), INSTALL.as_bytes().to_vec()), ("packages.txt".to_owned(), sorted.join("\n").into_bytes())];
    context::tag(base, &files)
}

/// Builds the image `base` with these packages under its [`tag`].
pub(super) async fn add(
    engine: &Engine,
    base: &str,
    packages: &[String],
    consent: &dyn Consent,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<(), SandboxError> {
    for name in packages {
        wheels::check(name)?;
    }
    let chosen = resolve(engine, base, packages, progress, cancel).await?;
    let tag = tag(base, packages);
    if chosen.is_empty() {
        // All of it is in the image already, which gets a second name: nobody resolves the list again.
        let name = tag.trim_start_matches(REPOSITORY).trim_start_matches(':');
        let options = TagImageOptionsBuilder::default().repo(REPOSITORY).tag(name).build();
        let tagged = engine.in_time(engine.api.tag_image(base, Some(options))).await;
        return tagged.map_err(|error| refused("name an image", &error));
    }
    wheels::agree(&chosen, format!("the store of {}", engine.description), consent, progress, cancel).await?;
    let files = vec![text("Dockerfile", INSTALL), text("wheels.txt", &wheels::requirements(&chosen)), certificates()];
    let recipe = Recipe { tag, arguments: context::arguments(base), files, fresh: false };
    build(engine, &recipe, "Adding sandbox.packages", progress, cancel).await.map(|_| ())
}

async fn resolve(
    engine: &Engine,
    base: &str,
    packages: &[String],
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<Vec<wheels::Wheel>, SandboxError> {
    let what = format!("resolving the packages of sandbox.packages: {}", packages.join(", "));
    progress(Progress { what, fraction: None });
    let files = vec![
        text("Dockerfile", RESOLVE),
        text("packages.txt", &packages.join("\n")),
        text("constraints.txt", &lock::constraints()),
        text("wheels.py", wheels::SCRIPT),
        certificates(),
    ];
    // Not from the engine's cache: a layer that is taken from there prints nothing.
    let tag = format!("{REPOSITORY}:resolve-{}", uuid::Uuid::new_v4().simple());
    let recipe = Recipe { tag: tag.clone(), arguments: context::arguments(base), files, fresh: true };
    let lines = build(engine, &recipe, "Resolving sandbox.packages", progress, cancel).await;
    let options = RemoveImageOptionsBuilder::default().force(false).build();
    if let Err(error) = engine.in_time(engine.api.remove_image(&tag, Some(options), None)).await {
        tracing::debug!(%error, "the image of a resolution was not removed");
    }
    let lines = lines?;
    let line = lines.iter().rev().find_map(|line| line.strip_prefix(MARK));
    wheels::read(line.unwrap_or_default())
}

fn text(name: &str, text: &str) -> (String, Vec<u8>) {
    (name.to_owned(), text.as_bytes().to_vec())
}

fn certificates() -> (String, Vec<u8>) {
    ("ca.pem".to_owned(), context::certificates())
}
