//! Building the image, with progress. One build at a time on a machine.

use std::collections::HashMap;
use std::fs::File;
use std::time::Duration;

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::engine::{Engine, is_not_found, reason, refused};
use super::owned::{self, LABEL};
use crate::agent::ports::{Progress, SandboxError, Sink};
use crate::config::{SandboxSettings, cache_dir};

/// Time in which a build must say something: a large package may be on its way.
const BUILD_SILENCE: Duration = Duration::from_secs(15 * 60);

/// Lines of the build's output that an error shows.
const SHOWN_LINES: usize = 12;

/// The tag of the image that the settings ask for, built where it is missing.
pub(super) async fn ensure(
    engine: &Engine,
    settings: &SandboxSettings,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<String, SandboxError> {
    let context = Context::new(settings);
    if exists(engine, &context.tag).await? {
        return Ok(context.tag);
    }
    progress(Progress { what: "Making the sandbox image ready (another process may be building it)".to_owned(), fraction: None });
    let _one_build = tokio::select! {
        lock = build_lock() => lock?,
        () = cancel.cancelled() => return Err(SandboxError::Cancelled),
    };
    // Another process may have built it meanwhile.
    if !exists(engine, &context.tag).await? {
        tokio::select! {
            built = build(engine, &context, progress) => built?,
            // Dropping the request makes the engine stop the build.
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
        }
        tell_of_older(engine, &context.tag, progress).await;
    }
    Ok(context.tag)
}

/// Says what earlier builds still take. They stay: another workspace's settings may ask for one.
async fn tell_of_older(engine: &Engine, tag: &String, progress: Sink<'_, Progress>) {
    let Ok(images) = owned::images(engine).await else { return };
    let older: Vec<_> = images.iter().filter(|image| !image.in_use && !image.tags.contains(tag)).collect();
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

async fn build(engine: &Engine, context: &Context, progress: Sink<'_, Progress>) -> Result<(), SandboxError> {
    let say = |what: String, fraction: Option<f64>| progress(Progress { what, fraction });
    if context.downloads {
        say(
            format!(
                "Building the sandbox image once: about 300 MB of Python packages go into the store of {} (from {})",
                engine.description, context.base
            ),
            None,
        );
    } else {
        say(format!("Adding the supervisor to the image {}", context.base), None);
    }
    let archive = context.archive().map_err(|error| SandboxError::Unavailable {
        message: format!("the image's build context could not be made: {error}"),
        hint: "Free some memory and try again.".to_owned(),
    })?;
    let labels = HashMap::from([(LABEL.to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .t(&context.tag)
        .buildargs(&context.arguments)
        .labels(&labels)
        .rm(true)
        .forcerm(true)
        .build();
    let mut stream = engine.api.build_image(options, None, Some(bollard::body_full(archive.into())));
    let mut tail: Vec<String> = Vec::new();
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
            // What a layer is called tells a person nothing; what pip and apt do tells that it goes on.
            if !line.starts_with("--->") && !line.starts_with("Removing intermediate") {
                say(format!("Building the sandbox image: {}", crate::report::escape::head(line, 100)), Some(fraction));
            }
            tail.push(line.to_owned());
            if tail.len() > SHOWN_LINES {
                tail.remove(0);
            }
        }
        if let Some(status) = info.status {
            say(format!("Building the sandbox image: {status}"), Some(fraction));
        }
    }
    // A stream that was cut ends like one that is complete.
    if exists(engine, &context.tag).await? { Ok(()) } else { Err(failed("the build ended without an image", &tail)) }
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
