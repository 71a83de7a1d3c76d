//! The Skills extension (SEP-2640): our skills as resources. Reading one opens nothing; `skill_load` does. Upstreams' own
//! skills stand among them under their upstream's name.
//!
//! **Source:** the extension's specification, `io.modelcontextprotocol/skills`.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use serde_json::{Value, json};

use super::dispatch::{Gateway, Request};
use crate::{
    catalog::{SkillFor, Snapshot},
    model::{limits::CACHE_MS, principal::Principal},
    skill::{SKILL_FILE, Skill},
    upstream::Offering,
    wire::era::{Era, INVALID_PARAMS},
};

/// The extension's name.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// What every skill's URI starts with.
const SCHEME: &str = "skill://";

/// What the caller is to be told of the skill that a URI names, and the path below its folder.
fn named<'a>(snapshot: &'a Snapshot, principal: &Principal, uri: &str) -> Option<(SkillFor<'a>, String)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    Some((snapshot.skill_for(name, principal), path.trim_end_matches('/').to_owned()))
}

/// The URI of a skill's folder.
fn root(skill: &Skill) -> String {
    format!("{SCHEME}{}", skill.name)
}

impl Gateway {
    /// Answers a request about a skill of ours; says whether it was one.
    pub(super) fn answer_own_skill(self: &Arc<Self>, request: &Request<'_>, method: &str) -> bool {
        let Some(uri) = request.params.text_of("uri") else { return false };
        let snapshot = Arc::clone(&request.snapshot);
        let Some((found, path)) = named(&snapshot, &request.session.principal, &uri) else { return false };
        let skill = match found {
            SkillFor::Known(skill) => Some(skill).filter(|skill| snapshot.is_free(skill)),
            SkillFor::Forbidden => {
                self.forbid(request, &uri);
                return true;
            }
            SkillFor::Unknown => None,
        };
        let Some((known, skill)) = skill.and_then(|skill| Some((skill, skill.on_disk.as_ref()?))) else { return false };
        if !skill.is_servable() {
            return false;
        }
        if !request.has_waited() {
            // Files are read away from the thread that serves everybody.
            let skill = skill.clone();
            self.later(request, async move { drop(tokio::task::spawn_blocking(move || skill.manifest().len()).await) });
            return true;
        }
        let answer = match method {
            "skills/get" if path == SKILL_FILE => Some(json!({"skill": skill.entry(&root(skill))})),
            "resources/directory/read" => directory(skill, &path),
            "resources/read" => contents(skill, &path, &uri),
            _ => None,
        };
        match answer {
            Some(mut answer) => {
                if method == "resources/read" {
                    self.record_reading(request, known, Some(&path));
                }
                if request.era == Era::Modern && method != "resources/directory/read" {
                    answer["ttlMs"] = json!(CACHE_MS);
                    answer["cacheScope"] = json!("private");
                }
                request.answer(answer);
            }
            None if method == "resources/read" => super::relay::not_there(request, &uri),
            None => {
                request.refuse_with(INVALID_PARAMS, "the skill has no such file or folder", Some(&json!({"uri": uri})))
            }
        }
        true
    }

    /// What of our own belongs into a list of upstreams' offers, as JSON.
    pub(super) fn own_entries(&self, request: &Request<'_>, offering: Offering) -> Vec<String> {
        let servable = servable(&request.snapshot, &request.session.principal);
        match offering {
            Offering::Skills => servable.map(|skill| skill.entry(&root(skill)).to_string()).collect(),
            Offering::Resources => servable.map(|skill| resource(skill).to_string()).collect(),
            Offering::Templates | Offering::Prompts | Offering::Tasks => Vec::new(),
        }
    }
}

/// The skills that `principal` sees as resources.
fn servable<'a>(snapshot: &'a Snapshot, principal: &Principal) -> impl Iterator<Item = &'a Skill> {
    let known = snapshot.skills.values().filter(|skill| !skill.is_hidden && snapshot.knows_skill(skill, principal));
    let all = known.filter(|skill| snapshot.is_free(skill)).filter_map(|skill| skill.on_disk.as_ref());
    all.filter(|skill| skill.is_servable()).collect::<Vec<_>>().into_iter()
}

/// Of what [`servable`] returns, with the digests of all files.
pub(super) fn digest(snapshot: &Snapshot, principal: &Principal) -> u64 {
    let mut hasher = DefaultHasher::new();
    for skill in servable(snapshot, principal) {
        (skill.name.as_str(), &skill.digest, &skill.references, skill.revision).hash(&mut hasher);
    }
    hasher.finish()
}

/// Reads the files of all skills, away from the thread that serves everybody.
pub(super) async fn read_all(snapshot: Arc<Snapshot>) {
    let read = tokio::task::spawn_blocking(move || {
        for skill in snapshot.skills.values().filter_map(|skill| skill.on_disk.as_ref()) {
            skill.manifest();
        }
    });
    if let Err(error) = read.await {
        tracing::error!(%error, "reading the skills failed");
    }
}

/// A skill in the list of resources.
fn resource(skill: &Skill) -> Value {
    json!({
        "uri": format!("{}/{SKILL_FILE}", root(skill)),
        "name": skill.name.as_str(),
        "description": skill.description,
        "mimeType": "text/markdown",
    })
}

/// A file, byte for byte.
fn contents(skill: &Skill, path: &str, uri: &str) -> Option<Value> {
    let bytes = skill
        .read_listed(path)
        .inspect_err(|error| tracing::warn!(skill = %skill.name, path, %error, "a file of a skill is not served"))
        .ok()?;
    let mime = mime_type(path, std::str::from_utf8(&bytes).is_ok());
    let content = match String::from_utf8(bytes) {
        Ok(text) => json!({"uri": uri, "mimeType": mime, "text": text}),
        Err(error) => {
            json!({"uri": uri, "mimeType": mime, "blob": data_encoding::BASE64.encode(error.as_bytes())})
        }
    };
    Some(json!({"contents": [content]}))
}

/// The direct children of a folder.
fn directory(skill: &Skill, path: &str) -> Option<Value> {
    let here = if path.is_empty() { root(skill) } else { format!("{}/{path}", root(skill)) };
    let child = |(name, file): (String, Option<&crate::skill::SkillFile>)| {
        let uri = format!("{here}/{name}");
        match file {
            Some(file) => {
                json!({"uri": uri, "name": name, "mimeType": mime_type(&name, true), "size": file.size_bytes})
            }
            None => json!({"uri": uri, "name": name, "mimeType": "inode/directory"}),
        }
    };
    let children: Vec<Value> = skill.children(path)?.into_iter().map(child).collect();
    Some(json!({"resources": children}))
}

/// By the ending; what is in no table is text or bytes.
fn mime_type(path: &str, is_text: bool) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "md" | "markdown" => "text/markdown",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "py" => "text/x-python",
        "sh" => "application/x-sh",
        "js" | "mjs" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        _ if is_text => "text/plain",
        _ => "application/octet-stream",
    }
}
