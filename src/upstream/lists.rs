//! Walking an upstream's `tools/list` to its end, with guards against cursors that go in circles.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{
    handshake::{Hello, params},
    salvage::{Salvaged, salvage},
};
use crate::{
    model::{
        diagnostic::Diagnostic,
        hidden::visible,
        limits::{LIST_PAGE, LIST_PAGES, UPSTREAM_TOOLS},
        name::UpstreamName,
        tool::Tool,
    },
    wire::{
        envelope::{as_text, json_text},
        era::Era,
        json::items,
        peer::{CallError, Peer, Reply},
        splice::{member, members},
    },
};

/// Why a list could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    /// No answer.
    #[error("listing: {0}")]
    Call(#[from] CallError),
    /// The upstream refused.
    #[error("listing was refused: {0}")]
    Refused(String),
    /// The answer has no list in it.
    #[error("the answer to listing has no list")]
    Shape,
}

/// What walking the list gave.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Sorted by name, without repeats.
    pub(super) tools: Vec<Arc<Tool>>,
    /// What was mended, dropped or cut.
    pub(super) findings: Vec<Diagnostic>,
}

/// Walks a list of `peer` to its end and hands every entry to `take`, which says whether it is new. A repeated cursor, a
/// page without anything new and the bounds end the walk; a page that fails after the first one keeps what was there.
/// Returns why the walk was cut, if it was.
pub(super) async fn walk(
    peer: &Peer,
    era: Era,
    method: &str,
    member: &str,
    mut take: impl FnMut(&str) -> bool,
) -> Result<Option<String>, ListError> {
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut n_taken = 0;
    for number in 1..=LIST_PAGES {
        let page = match fetch(peer, era, method, cursor.as_deref()).await {
            Ok(page) => page,
            Err(error) if number == 1 => return Err(error),
            Err(error) => return Ok(Some(format!("page {number} failed, what came before it is kept: {error}"))),
        };
        let all = members(&page).ok_or(ListError::Shape)?;
        let entries = self::member(&all, member).and_then(|found| items(found.value));
        let Some(entries) = entries else {
            return if number == 1 { Err(ListError::Shape) } else { Ok(Some(format!("page {number} has no list"))) };
        };
        let n_before = n_taken;
        n_taken += entries.into_iter().filter(|entry| take(entry)).count();
        let next = self::member(&all, "nextCursor").and_then(|found| as_text(found.value)).map(Cow::into_owned);
        let Some(next) = next else { return Ok(None) };
        if !seen.insert(next.clone()) {
            return Ok(Some("a cursor came back a second time; the walk ends there".into()));
        }
        if n_taken == n_before {
            return Ok(Some(format!(
                "page {number} has nothing new and yet another page behind it; the walk ends there"
            )));
        }
        if n_taken > UPSTREAM_TOOLS {
            return Ok(Some(format!("it has over {UPSTREAM_TOOLS} entries; the rest is left out")));
        }
        cursor = Some(next);
    }
    Ok(Some(format!("it has over {LIST_PAGES} pages; the rest is left out")))
}

async fn fetch(peer: &Peer, era: Era, method: &str, cursor: Option<&str>) -> Result<Box<str>, ListError> {
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, json_text(cursor)));
    match peer.call(method, &params(era, cursor.as_deref()), LIST_PAGE).await? {
        Reply::Result(raw) => Ok(raw),
        Reply::Error(error) => Err(ListError::Refused(super::handshake::error_text(&error))),
    }
}

/// Lists every tool of `peer`.
pub(super) async fn list_tools(peer: &Peer, upstream: &UpstreamName, hello: &Hello) -> Result<Listed, ListError> {
    let mut walked = Walk { upstream, tools: BTreeMap::new(), findings: Vec::new(), n_entries: 0 };
    let cut = walk(peer, hello.era, "tools/list", "tools", |raw| {
        let n_before = walked.tools.len();
        walked.add(raw);
        walked.tools.len() > n_before
    })
    .await?;
    if let Some(why) = cut {
        walked.cut(&why);
    }
    Ok(Listed { tools: walked.tools.into_values().collect(), findings: walked.findings })
}

struct Walk<'a> {
    upstream: &'a UpstreamName,
    tools: BTreeMap<String, Arc<Tool>>,
    findings: Vec<Diagnostic>,
    n_entries: usize,
}

impl Walk<'_> {
    fn add(&mut self, raw: &str) {
        self.n_entries += 1;
        let upstream = self.upstream;
        match salvage(raw) {
            Salvaged::Used(tool, note) => {
                if let Some(note) = note {
                    let message = format!("tool `{}` of `{upstream}`: {note}", visible(tool.name.as_str()));
                    self.findings.push(Diagnostic::warning("tool-repaired", message));
                }
                self.tools.entry(tool.name.as_str().to_owned()).or_insert_with(|| Arc::new(tool));
            }
            Salvaged::Dropped(name, reason) => {
                let which = name
                    .map_or_else(|| format!("entry {}", self.n_entries), |name| format!("tool `{}`", visible(&name)));
                let message = format!("{which} of `{upstream}` is left out: {reason}");
                self.findings.push(Diagnostic::warning("tool-dropped", message));
            }
        }
    }

    fn cut(&mut self, what: &str) {
        let message = format!("the tool list of `{}` was cut: {what}", self.upstream);
        self.findings.push(Diagnostic::warning("tool-list-cut", message));
    }
}
