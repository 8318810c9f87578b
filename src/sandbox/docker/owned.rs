//! Containers and images of ours: told by their labels, never by their names.

use std::collections::{HashMap, HashSet};

use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
};
use serde::Serialize;

use super::build;
use super::context::REPOSITORY;
use super::engine::{Engine, is_going, is_not_found, refused};
use crate::agent::ports::SandboxError;
use crate::config::SandboxSettings;
use crate::sandbox::StartRequest;
use crate::sandbox::owner::Owner;

/// On everything of ours; its value is the version that made it.
pub(super) const LABEL: &str = "codeinterp.version";
const WORKSPACE: &str = "codeinterp.workspace";
const FOLDER: &str = "codeinterp.folder";
const OWNER: &str = "codeinterp.owner";

/// A container of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnedContainer {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `running`, `created`, `exited`, …
    pub state: String,
    /// The workspace folder.
    pub folder: String,
    /// When it was made, seconds since 1970.
    pub created: i64,
    /// The process that it belongs to.
    pub owner: String,
    /// Whether that process is alive; unknown where it belongs to another machine.
    pub owner_alive: Option<bool>,
}

/// An image of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnedImage {
    /// Its id.
    pub id: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Bytes.
    pub bytes: i64,
    /// When it was made, seconds since 1970.
    pub created: i64,
    /// A container is made of it, ours or anybody's.
    pub in_use: bool,
}

/// A name that tells people what it is.
pub(super) fn container_name(workspace: &str) -> String {
    let plain: String = workspace.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("codeinterp-{plain}-{}", &random[..8])
}

/// The labels of a container.
pub(super) fn labels(request: &StartRequest) -> HashMap<String, String> {
    let folder = request.folder.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default();
    HashMap::from([
        (LABEL.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        (WORKSPACE.to_owned(), request.workspace.clone()),
        (FOLDER.to_owned(), folder),
        (OWNER.to_owned(), Owner::current().to_string()),
    ])
}

/// All containers of ours, running or not.
pub async fn containers(engine: &Engine) -> Result<Vec<OwnedContainer>, SandboxError> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = engine.in_time(engine.api.list_containers(Some(options))).await.map_err(|error| refused("list containers", &error))?;
    let found = listed.into_iter().filter_map(|container| {
        let mut labels = container.labels.unwrap_or_default();
        let owner = labels.remove(OWNER).unwrap_or_default();
        Some(OwnedContainer {
            id: container.id?,
            name: container.names.unwrap_or_default().first().map(|name| name.trim_start_matches('/').to_owned()).unwrap_or_default(),
            state: container.state.map(|state| state.to_string()).unwrap_or_default(),
            folder: labels.remove(FOLDER).unwrap_or_default(),
            created: container.created.unwrap_or_default(),
            owner_alive: owner.parse::<Owner>().ok().and_then(|owner| owner.is_alive()),
            owner,
        })
    });
    Ok(found.collect())
}

/// All images of ours, tagged or not: stages of their builds are among them.
pub async fn images(engine: &Engine) -> Result<Vec<OwnedImage>, SandboxError> {
    let options = ListContainersOptionsBuilder::default().all(true).build();
    let containers = engine.in_time(engine.api.list_containers(Some(options))).await.map_err(|error| refused("list containers", &error))?;
    let used: HashSet<String> = containers.into_iter().filter_map(|container| container.image_id).map(|id| plain_id(&id)).collect();
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let options = ListImagesOptionsBuilder::default().filters(&filters).build();
    let listed = engine.in_time(engine.api.list_images(Some(options))).await.map_err(|error| refused("list images", &error))?;
    Ok(listed
        .into_iter()
        .map(|image| OwnedImage {
            in_use: used.contains(&plain_id(&image.id)),
            id: image.id,
            tags: image.repo_tags.into_iter().filter_map(|tag| own_tag(&tag)).collect(),
            bytes: image.size,
            created: image.created,
        })
        .collect())
}

/// An id without the name of its hash, which Podman leaves out.
fn plain_id(id: &str) -> String {
    id.trim_start_matches("sha256:").to_owned()
}

/// A tag as we gave it: Podman puts the name of a registry before it.
fn own_tag(tag: &str) -> Option<String> {
    let plain = tag.trim_start_matches("localhost/").trim_start_matches("docker.io/library/");
    plain.strip_prefix(REPOSITORY)?.starts_with(':').then(|| plain.to_owned())
}

/// The tags of the images that these settings ask for, built or not.
pub fn current_tags(settings: &SandboxSettings) -> Vec<String> {
    let (tag, base) = build::tags(settings);
    std::iter::once(tag).chain(base).collect()
}

/// Removes containers whose process on this machine has died. Others' containers, and those of living processes,
/// are left alone. Failures are logged: they must not keep a new sandbox from starting.
pub async fn reap(engine: &Engine) {
    match containers(engine).await {
        Ok(found) => {
            for container in found.iter().filter(|container| container.owner_alive == Some(false)) {
                if let Err(error) = remove_container(engine, &container.id).await {
                    tracing::warn!(%error, name = container.name, "a stale container can't be removed");
                }
            }
        }
        Err(error) => tracing::warn!(%error, "stale containers can't be looked for"),
    }
}

/// Removes a container, running or not.
pub async fn remove_container(engine: &Engine, id: &str) -> Result<(), SandboxError> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match engine.in_time(engine.api.remove_container(id, Some(options))).await {
        Ok(()) => Ok(()),
        Err(error) if is_going(&error) => Ok(()),
        Err(error) => Err(refused("remove a container", &error)),
    }
}

/// Removes an image of ours. Names that others gave it stay, and the image with them.
pub async fn remove_image(engine: &Engine, image: &OwnedImage) -> Result<(), SandboxError> {
    let own = image.tags.iter().map(String::as_str);
    for name in own.chain(image.tags.is_empty().then_some(image.id.as_str())) {
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        match engine.in_time(engine.api.remove_image(name, Some(options), None)).await {
            Ok(_) => {}
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(refused("remove an image", &error)),
        }
    }
    Ok(())
}
