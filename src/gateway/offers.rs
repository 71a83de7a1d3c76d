//! Resources, templates and prompts of all upstreams in one list, and the way back from what a client names to the
//! upstream that has it. An upstream keeps its own names and URIs; where two have the same, the one that stands first in
//! the config keeps it, and the other's has its upstream before it: `mail_summary`, `x-mail+file:///etc/motd`. Skills always
//! have it, `skill://mail/summary/SKILL.md`, since ours stand among them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;

use super::{dispatch::Gateway, finish::Expected};
use crate::{
    model::limits::SEEN_URIS,
    upstream::{Link, Offer, Offering},
    wire::{
        envelope::{as_text, json_text},
        json::items,
        splice::{Edits, member, members},
    },
};

/// What one upstream offers, under the name that clients know.
#[derive(Debug)]
pub(super) struct Entry {
    /// Number of the upstream.
    pub(super) upstream: usize,
    /// As the upstream calls it.
    pub(super) original: String,
    /// As clients see it.
    pub(super) exposed: String,
    /// The entry of the list, as clients get it.
    pub(super) listed: String,
}

/// Everything of one kind, in the order of upstreams.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
    by_exposed: HashMap<String, usize>,
    /// What it was made of, to tell whether it is still right.
    parts: Vec<Part>,
}

/// Number of an upstream, and what it listed, if it was asked.
type Part = (usize, Option<Arc<[Offer]>>);

fn parts_of(offering: Offering, links: &[Arc<Link>]) -> Vec<Part> {
    links.iter().map(|link| (link.index(), link.known(offering))).collect()
}

/// The tables in use, and URIs that results of upstreams named.
#[derive(Debug, Default)]
pub(super) struct Offers {
    tables: Mutex<HashMap<Offering, Arc<Table>>>,
    seen: Mutex<Seen>,
    /// See [`Gateway::has_shared_uris`].
    has_shared_uris: AtomicBool,
}

/// URIs that no list has, oldest first.
#[derive(Debug, Default)]
struct Seen {
    order: VecDeque<String>,
    upstreams: HashMap<String, usize>,
}

impl Table {
    fn build(offering: Offering, links: &[Arc<Link>]) -> Self {
        let parts = parts_of(offering, links);
        let is_shared = parts.iter().filter_map(|(_, part)| part.as_ref()).filter(|part| !part.is_empty()).count() > 1;
        let mut table = Self::default();
        for (link, (upstream, offers)) in links.iter().zip(&parts) {
            let upstream = *upstream;
            for offer in offers.iter().flat_map(|offers| offers.iter()) {
                let mut exposed = offer.key.clone();
                if table.by_exposed.contains_key(&exposed) || is_skill(&exposed) {
                    exposed = qualified(offering, link.name().as_str(), &offer.key);
                }
                if table.by_exposed.contains_key(&exposed) {
                    continue;
                }
                let origin = is_shared.then(|| link.name().as_str());
                let listed = listed(offering, offer, &exposed, link.name().as_str(), origin);
                table.by_exposed.insert(exposed.clone(), table.entries.len());
                table.entries.push(Entry { upstream, original: offer.key.clone(), exposed, listed });
            }
        }
        table.parts = parts;
        table
    }

    fn is_of(&self, parts: &[Part]) -> bool {
        let is_same = |(a, b): (&Part, &Part)| match (a, b) {
            ((a_index, Some(a)), (b_index, Some(b))) => a_index == b_index && Arc::ptr_eq(a, b),
            ((a_index, a), (b_index, b)) => a_index == b_index && a.is_none() && b.is_none(),
        };
        self.parts.len() == parts.len() && self.parts.iter().zip(parts).all(is_same)
    }

    /// The entry that clients know by this name.
    pub(super) fn find(&self, exposed: &str) -> Option<&Entry> {
        self.by_exposed.get(exposed).map(|index| &self.entries[*index])
    }
}

/// The entry under its exposed name; with several upstreams it says whose it is.
fn listed(offering: Offering, offer: &Offer, exposed: &str, upstream: &str, origin: Option<&str>) -> String {
    let text = &*offer.raw;
    let Some(all) = members(text) else { return text.to_owned() };
    let mut edits = Edits::new(text);
    if let Some(key) = member(&all, offering.key()).filter(|_| exposed != offer.key) {
        edits.replace(key.value, json_text(exposed));
    }
    if offering == Offering::Skills
        && let Some(files) = member(&all, "resources")
        && let Some(files) = items(files.value)
    {
        for uri in files.iter().filter_map(|file| Some(member(&members(file)?, "uri")?.value)) {
            edits.replace(uri, json_text(&qualified_uri(upstream, &as_text(uri).unwrap_or_default())));
        }
    }
    if let Some(origin) = origin {
        let origin = json_text(origin);
        match member(&all, "_meta").filter(|meta| meta.value.starts_with('{')) {
            Some(meta) => edits.insert(meta.value, ORIGIN, &origin),
            None => edits.insert(text, "_meta", &format!(r#"{{"{ORIGIN}":{origin}}}"#)),
        }
    }
    edits.apply()
}

/// `_meta` key by which we say which upstream something is of, and by which a client may say which it means.
pub(super) const ORIGIN: &str = "gatekey/upstream";

fn qualified(offering: Offering, upstream: &str, key: &str) -> String {
    match offering {
        Offering::Prompts | Offering::Tasks => format!("{upstream}_{key}"),
        Offering::Resources | Offering::Templates | Offering::Skills => qualified_uri(upstream, key),
    }
}

/// A URI with its upstream before it, so that it is still a URI, and one of a skill still is one of a skill.
fn qualified_uri(upstream: &str, uri: &str) -> String {
    match uri.strip_prefix(SKILL) {
        Some(rest) => format!("{SKILL}{}/{rest}", label(upstream)),
        None => format!("x-{}+{uri}", label(upstream)),
    }
}

/// The upstream's own URI, where `uri` has this upstream before it.
fn unqualified_uri(upstream: &str, uri: &str) -> Option<String> {
    let label = label(upstream);
    match uri.strip_prefix(SKILL) {
        Some(rest) => Some(format!("{SKILL}{}", rest.strip_prefix(&label)?.strip_prefix('/')?)),
        None => uri.strip_prefix("x-")?.strip_prefix(&label)?.strip_prefix('+').map(str::to_owned),
    }
}

const SKILL: &str = "skill://";

fn is_skill(uri: &str) -> bool {
    uri.starts_with(SKILL)
}

/// An upstream's name as a part of a URI.
fn label(upstream: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' };
    upstream.chars().map(allowed).collect()
}

/// Where something that a client names is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) upstream: usize,
    /// As the upstream calls it.
    pub(super) original: String,
}

impl Gateway {
    /// Everything of one kind, as the upstreams say now.
    pub(super) async fn ask_all(self: &Arc<Self>, offering: Offering) -> Arc<Table> {
        let links: Vec<Arc<Link>> = self.pool.links().iter().filter(|link| link.offers(offering)).cloned().collect();
        let mut asked = tokio::task::JoinSet::new();
        for link in links {
            asked.spawn(async move { drop(link.list_offers(offering).await) });
        }
        asked.join_all().await;
        self.table(offering)
    }

    /// Everything of one kind, as far as it was listed.
    pub(super) fn table(&self, offering: Offering) -> Arc<Table> {
        let links = self.pool.links();
        let parts = parts_of(offering, &links);
        let mut tables = self.offers.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(offering).or_default();
        if !table.is_of(&parts) {
            *table = Arc::new(Table::build(offering, &links));
        }
        Arc::clone(table)
    }

    /// Whether an upstream has such things and was never asked for them.
    pub(super) fn is_unasked(&self, offering: Offering) -> bool {
        let is_unasked =
            |link: &Arc<Link>| link.peer().is_some() && link.offers(offering) && link.known(offering).is_none();
        self.pool.links().iter().any(is_unasked)
    }

    /// The upstream of a URI that a client names: what is listed, then what results named, then what a template fits, then
    /// an upstream before the URI; where only one upstream has resources, whatever it is.
    pub(super) fn find_uri(&self, uri: &str) -> Option<Found> {
        let links = self.pool.links();
        for offering in [Offering::Resources, Offering::Skills] {
            if let Some(entry) = self.table(offering).find(uri) {
                return Some(Found { upstream: entry.upstream, original: entry.original.clone() });
            }
        }
        let seen = self.offers.seen().upstreams.get(uri).copied();
        if let Some(upstream) = seen.filter(|upstream| self.pool.link(*upstream).is_some()) {
            return Some(Found { upstream, original: uri.to_owned() });
        }
        for entry in &self.table(Offering::Templates).entries {
            if entry.exposed == uri || fits(&entry.exposed, uri) {
                let own = self.pool.link(entry.upstream).and_then(|link| unqualified_uri(link.name().as_str(), uri));
                let original = own.filter(|_| entry.exposed != entry.original).unwrap_or_else(|| uri.to_owned());
                return Some(Found { upstream: entry.upstream, original });
            }
        }
        let own = links.iter().find_map(|link| {
            Some(Found { upstream: link.index(), original: unqualified_uri(link.name().as_str(), uri)? })
        });
        own.or_else(|| {
            let mut having = links.iter().filter(|link| link.offers(Offering::Resources));
            let upstream = having.next()?.index();
            having.next().is_none().then(|| Found { upstream, original: uri.to_owned() })
        })
    }

    /// What a file of an upstream's skill must be, where the upstream listed it.
    pub(super) fn expected(&self, found: &Found) -> Option<Expected> {
        let listed = self.pool.link(found.upstream)?.known(Offering::Skills)?;
        listed.iter().find_map(|offer| {
            let entry: Value = serde_json::from_str(&offer.raw).ok()?;
            let file = entry["resources"].as_array()?.iter().find(|file| file["uri"] == found.original.as_str())?;
            Some(Expected { digest: file["digest"].as_str()?.to_owned(), size_bytes: file["size"].as_u64()? })
        })
    }

    /// A URI of a result of `upstream`, as clients can use it.
    pub(super) fn expose_uri(&self, upstream: usize, uri: &str) -> String {
        let Some(link) = self.pool.link(upstream) else { return uri.to_owned() };
        for offering in [Offering::Resources, Offering::Templates, Offering::Skills] {
            let table = self.table(offering);
            if let Some(entry) = table.entries.iter().find(|entry| entry.upstream == upstream && entry.original == uri)
            {
                return entry.exposed.clone();
            }
        }
        if is_skill(uri) {
            return qualified_uri(link.name().as_str(), uri);
        }
        match self.find_uri(uri) {
            Some(found) if found.upstream == upstream => uri.to_owned(),
            Some(_) => qualified_uri(link.name().as_str(), uri),
            None => {
                self.offers.seen().add(uri, upstream);
                uri.to_owned()
            }
        }
    }

    /// Whether URIs of results must be looked at: with one upstream, and no skills of it, they are all its own.
    pub(super) fn has_shared_uris(&self) -> bool {
        self.offers.has_shared_uris.load(Ordering::Relaxed)
    }

    /// Looks again whether upstreams share URIs: one has said what it can do.
    pub(super) fn note_shared_uris(&self) {
        let n_having = self.pool.links().iter().filter(|link| link.offers(Offering::Resources)).count();
        self.offers.has_shared_uris.store(n_having > 1 || self.has(Offering::Skills), Ordering::Relaxed);
    }
}

impl Offers {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn add(&mut self, uri: &str, upstream: usize) {
        if self.upstreams.insert(uri.to_owned(), upstream).is_none() {
            self.order.push_back(uri.to_owned());
        }
        while self.order.len() > SEEN_URIS
            && let Some(oldest) = self.order.pop_front()
        {
            self.upstreams.remove(&oldest);
        }
    }
}

/// Whether `uri` can be an expansion of `template` (RFC 6570): its literal parts stand there in their order.
fn fits(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = template.split('{');
    let Some(first) = parts.next() else { return false };
    let Some(after_first) = rest.strip_prefix(first) else { return false };
    rest = after_first;
    let mut has_expression = false;
    for part in parts {
        has_expression = true;
        let literal = part.split_once('}').map_or("", |(_, literal)| literal);
        match rest.find(literal) {
            _ if literal.is_empty() => {}
            Some(at) => rest = rest.get(at + literal.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    // What follows the last literal belongs to an expression at the end only.
    has_expression && (template.ends_with('}') || rest.is_empty())
}

/// Names of a list without repeats, for messages.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_a_template_whose_literal_parts_it_has() {
        for (template, uri, expected) in [
            ("note://{id}", "note://7", true),
            ("note://{id}", "notes://7", false),
            ("note://{id}/body", "note://7/body", true),
            ("note://{id}/body", "note://7/bodies", false),
            ("file:///{+path}{?v}", "file:///a/b?v=1", true),
            ("info://about", "info://about", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn a_qualified_uri_has_a_valid_scheme() {
        for (uri, qualified) in [
            ("file:///etc/motd", "x-my-mail+file:///etc/motd"),
            ("skill://a/b/SKILL.md", "skill://my-mail/a/b/SKILL.md"),
        ] {
            assert_eq!(qualified_uri("My Mail", uri), qualified);
            assert_eq!(unqualified_uri("My Mail", qualified).as_deref(), Some(uri));
            assert_eq!(unqualified_uri("other", qualified), None);
        }
    }
}
