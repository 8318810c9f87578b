//! Building the image, with progress. One build at a time on a machine.

use std::collections::HashMap;
use std::fs::File;
use std::time::Duration;

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::context::{self, Context};
use super::engine::{Engine, is_not_found, reason, refused};
use super::owned::{self, LABEL};
use super::packages;
use crate::agent::ports::{Progress, SandboxError, Sink};
use crate::config::{SandboxSettings, cache_dir};
use crate::sandbox::consent::Consent;
use crate::sandbox::provision::installer;

/// Time in which a build must say something: a large package may be on its way.
const BUILD_SILENCE: Duration = Duration::from_secs(15 * 60);

/// What begins a line that a recipe prints for us and not for people.
const TOLD: &str = "codeinterp-";

/// Lines of the build's output that an error shows.
const SHOWN_LINES: usize = 12;

/// The image that the settings ask for, and the one that it is made from where packages are added.
pub(super) fn tags(settings: &SandboxSettings) -> (String, Option<String>) {
    let base = Context::new(settings).tag;
    if settings.packages.is_empty() {
        return (base, None);
    }
    (packages::tag(&base, &settings.packages), Some(base))
}

/// Whether the engine has the image that the settings ask for.
pub(super) async fn is_there(engine: &Engine, settings: &SandboxSettings) -> bool {
    exists(engine, &tags(settings).0).await.unwrap_or(false)
}

/// The tag of the image that the settings ask for, built where it is missing.
pub(super) async fn ensure(
    engine: &Engine,
    settings: &SandboxSettings,
    consent: &dyn Consent,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<String, SandboxError> {
    let (tag, base) = tags(settings);
    if exists(engine, &tag).await? {
        return Ok(tag);
    }
    progress(Progress { what: "Making the sandbox image ready (another process may be building it)".to_owned(), fraction: None });
    let _one_build = tokio::select! {
        lock = build_lock() => lock?,
        () = cancel.cancelled() => return Err(SandboxError::Cancelled),
    };
    let context = Context::new(settings);
    // Another process may have built it meanwhile.
    if !exists(engine, &context.tag).await? {
        build_base(engine, context, progress, cancel).await?;
        tell_of_older(engine, &tag, progress).await;
    }
    if let Some(base) = base
        && !exists(engine, &tag).await?
    {
        packages::add(engine, &base, &settings.packages, consent, progress, cancel).await?;
    }
    Ok(tag)
}

async fn build_base(
    engine: &Engine,
    context: Context,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<(), SandboxError> {
    let what = if context.downloads {
        format!(
            "Building the sandbox image once: about 300 MB of Python packages go into the store of {} (from {})",
            engine.description, context.base
        )
    } else {
        format!("Adding the supervisor to the image {}", context.base)
    };
    progress(Progress { what, fraction: None });
    let recipe = Recipe { tag: context.tag, arguments: context.arguments, files: context.files, fresh: false };
    build(engine, &recipe, "Building the sandbox image", progress, cancel).await.map(|_| ())
}

/// What is built.
pub(super) struct Recipe {
    /// Its name.
    pub tag: String,
    /// Build arguments.
    pub arguments: HashMap<String, String>,
    /// The build's context, a file named `Dockerfile` in it.
    pub files: Vec<(String, Vec<u8>)>,
    /// Every step is carried out, whatever the engine has kept of earlier builds.
    pub fresh: bool,
}

/// Says what earlier builds still take. They stay: another workspace's settings may ask for one.
async fn tell_of_older(engine: &Engine, tag: &str, progress: Sink<'_, Progress>) {
    let Ok(images) = owned::images(engine).await else { return };
    let older: Vec<_> = images.iter().filter(|image| !image.in_use && !image.tags.iter().any(|own| own == tag)).collect();
    if older.is_empty() {
        return;
    }
    let megabytes = older.iter().map(|image| image.bytes).sum::<i64>() / 1_000_000;
    let what =
        format!("{} images of earlier builds are not in use (up to {megabytes} MB): `codeinterp sandbox prune` removes them", older.len());
    progress(Progress { what, fraction: None });
}

async fn exists(engine: &Engine, tag: &str) -> Result<bool, SandboxError> {
    match engine.in_time(engine.api.inspect_image(tag)).await {
        Ok(_) => Ok(true),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(refused("look for the sandbox image", &error)),
    }
}

/// Builds an image, and gives the lines that its recipe printed for us. Cancelling makes the engine stop it.
pub(super) async fn build(
    engine: &Engine,
    recipe: &Recipe,
    doing: &str,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<Vec<String>, SandboxError> {
    tokio::select! {
        built = run(engine, recipe, doing, progress) => built,
        // Dropping the request makes the engine stop the build.
        () = cancel.cancelled() => Err(SandboxError::Cancelled),
    }
}

async fn run(engine: &Engine, recipe: &Recipe, doing: &str, progress: Sink<'_, Progress>) -> Result<Vec<String>, SandboxError> {
    let say = |what: String, fraction: Option<f64>| progress(Progress { what, fraction });
    let archive = context::archive(&recipe.files).map_err(|error| SandboxError::Unavailable {
        message: format!("the image's build context could not be made: {error}"),
        hint: "Free some memory and try again.".to_owned(),
    })?;
    let labels = HashMap::from([(LABEL.to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .t(&recipe.tag)
        .buildargs(&recipe.arguments)
        .labels(&labels)
        .nocache(recipe.fresh)
        .rm(true)
        .forcerm(true)
        .build();
    let mut stream = engine.api.build_image(options, None, Some(bollard::body_full(archive.into())));
    let (mut tail, mut told): (Vec<String>, Vec<String>) = Default::default();
    let mut fraction = 0.0;
    loop {
        let Ok(info) = tokio::time::timeout(BUILD_SILENCE, stream.next()).await else {
            return Err(failed(&format!("the engine said nothing for {} minutes", BUILD_SILENCE.as_secs() / 60), &tail));
        };
        let Some(info) = info else { break };
        let info = info.map_err(|error| failed(&reason(&error), &tail))?;
        if let Some(detail) = info.error_detail {
            return Err(failed(&detail.message.unwrap_or_default(), &tail));
        }
        for line in info.stream.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(now) = step_fraction(line) {
                fraction = now;
            }
            if line.starts_with(TOLD) {
                told.push(line.to_owned());
                continue;
            }
            // What a layer is called tells a person nothing; what pip and apt do tells that it goes on.
            if !line.starts_with("--->") && !line.starts_with("Removing intermediate") {
                say(format!("{doing}: {}", crate::report::escape::head(line, 100)), Some(fraction));
            }
            tail.push(line.to_owned());
            if tail.len() > SHOWN_LINES {
                tail.remove(0);
            }
        }
        if let Some(status) = info.status {
            say(format!("{doing}: {status}"), Some(fraction));
        }
    }
    // A stream that was cut ends like one that is complete.
    if exists(engine, &recipe.tag).await? { Ok(told) } else { Err(failed("the build ended without an image", &tail)) }
}

/// `Step 3/9 : RUN …` as a fraction.
fn step_fraction(line: &str) -> Option<f64> {
    let (done, all) = line.strip_prefix("Step ")?.split(' ').next()?.split_once('/')?;
    let (done, all): (u32, u32) = (done.parse().ok()?, all.parse().ok()?);
    (all > 0).then(|| f64::from(done.saturating_sub(1)) / f64::from(all))
}

fn failed(message: &str, tail: &[String]) -> SandboxError {
    let own = tail.iter().rev().find_map(|line| line.strip_prefix("codeinterp: "));
    let hint = if own.is_some() {
        "Mend the image that `sandbox.image` names, or unset it."
    } else if message.contains("pull access denied")
        || message.contains("no such host")
        || message.contains("manifest unknown")
        || message.contains("lookup ")
    {
        "The base image can't be pulled here: name one that the engine has in CODEINTERP_SANDBOX_BASE, or use `--sandbox process`."
    } else if tail.iter().any(|line| line.contains("ERROR: ") || line.contains("WARNING: Retrying")) {
        installer::hint(&tail.join("\n"))
    } else {
        "Check that the engine's builds reach your package index (PIP_INDEX_URL, proxies, SSL_CERT_FILE), or use `--sandbox process`."
    };
    let reason = own.map_or_else(|| message.trim().to_owned(), str::to_owned);
    let shown = if own.is_some() || tail.is_empty() { String::new() } else { format!("\n{}", tail.join("\n")) };
    SandboxError::Unavailable { message: format!("the sandbox image could not be built: {reason}{shown}"), hint: hint.to_owned() }
}

/// A lock that a dying process gives up.
async fn build_lock() -> Result<File, SandboxError> {
    let path = cache_dir().join("image-build.lock");
    let locked = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(cache_dir())?;
        let file = File::create(path)?;
        file.lock()?;
        Ok::<_, std::io::Error>(file)
    })
    .await;
    match locked {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(error)) => Err(SandboxError::Unavailable {
            message: format!("the cache folder {} can't be written: {error}", cache_dir().display()),
            hint: "Make it writable, or set XDG_CACHE_HOME to a folder that is.".to_owned(),
        }),
        Err(_) => Err(SandboxError::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_build_become_a_fraction() {
        assert_eq!(step_fraction("Step 3/9 : RUN x"), Some(2.0 / 9.0));
        assert_eq!(step_fraction("Collecting numpy"), None);
    }
}
