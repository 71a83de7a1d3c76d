//! Walking an upstream's `tools/list` to its end, with guards against cursors that go in circles.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    handshake::{Hello, params},
    salvage::{Salvaged, salvage},
};
use crate::{
    model::{
        diagnostic::Diagnostic,
        limits::{LIST_PAGE, LIST_PAGES, UPSTREAM_TOOLS},
        name::UpstreamName,
        tool::Tool,
    },
    wire::{
        envelope::json_text,
        peer::{CallError, Peer, Reply},
    },
};

/// Why a list could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    /// No answer.
    #[error("`tools/list`: {0}")]
    Call(#[from] CallError),
    /// The upstream refused.
    #[error("`tools/list` was refused: {0}")]
    Refused(String),
    /// The answer has no list in it.
    #[error("the answer to `tools/list` has no list of tools")]
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

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

/// Lists every tool of `peer`. A repeated cursor, a page without a new tool and the bounds end the walk with a finding;
/// a page that fails after the first one keeps what was there.
pub(super) async fn list_tools(peer: &Peer, upstream: &UpstreamName, hello: &Hello) -> Result<Listed, ListError> {
    let mut walk = Walk { upstream, tools: BTreeMap::new(), findings: Vec::new(), n_entries: 0 };
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for number in 1..=LIST_PAGES {
        let (page, next) = match fetch(peer, hello, cursor.as_deref()).await {
            Ok(page) => page,
            Err(error) if number == 1 => return Err(error),
            Err(error) => {
                walk.cut(&format!("page {number} failed, the tools before it are kept: {error}"));
                break;
            }
        };
        let n_before = walk.tools.len();
        for raw in &page {
            walk.add(raw);
        }
        let Some(next) = next else { break };
        if !seen.insert(next.clone()) {
            walk.cut("a cursor came back a second time; the walk ends there");
            break;
        }
        if walk.tools.len() == n_before {
            walk.cut(&format!("page {number} has no new tool and yet another page behind it; the walk ends there"));
            break;
        }
        if walk.tools.len() > UPSTREAM_TOOLS || number == LIST_PAGES {
            walk.cut(&format!("over {UPSTREAM_TOOLS} tools or {LIST_PAGES} pages; the rest is left out"));
            break;
        }
        cursor = Some(next);
    }
    Ok(Listed { tools: walk.tools.into_values().collect(), findings: walk.findings })
}

async fn fetch(
    peer: &Peer,
    hello: &Hello,
    cursor: Option<&str>,
) -> Result<(Vec<Box<RawValue>>, Option<String>), ListError> {
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, json_text(cursor)));
    let answer = peer.call("tools/list", &params(hello.era, cursor.as_deref()), LIST_PAGE).await?;
    let raw = match answer {
        Reply::Result(raw) => raw,
        Reply::Error(error) => return Err(ListError::Refused(super::handshake::error_text(&error))),
    };
    let page: Page<'_> = serde_json::from_str(raw.get()).map_err(|_shape| ListError::Shape)?;
    Ok((page.tools.into_iter().map(RawValue::to_owned).collect(), page.next_cursor))
}

struct Walk<'a> {
    upstream: &'a UpstreamName,
    tools: BTreeMap<String, Arc<Tool>>,
    findings: Vec<Diagnostic>,
    n_entries: usize,
}

impl Walk<'_> {
    fn add(&mut self, raw: &RawValue) {
        self.n_entries += 1;
        let upstream = self.upstream;
        match salvage(raw) {
            Salvaged::Used(tool, note) => {
                if let Some(note) = note {
                    let message = format!("tool `{}` of `{upstream}`: {note}", tool.name);
                    self.findings.push(Diagnostic::warning("tool-repaired", message));
                }
                self.tools.entry(tool.name.as_str().to_owned()).or_insert_with(|| Arc::new(tool));
            }
            Salvaged::Dropped(name, reason) => {
                let which = name.map_or_else(|| format!("entry {}", self.n_entries), |name| format!("tool `{name}`"));
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
