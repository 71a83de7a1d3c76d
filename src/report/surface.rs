//! What a fresh client costs before it does anything, by what it is made of.

use serde::Serialize;
use serde_json::Value;

use super::said::Start;
use crate::{
    catalog::Snapshot,
    gateway::catalogue_parts,
    tokens::Counter,
    wire::{envelope::json_text, era::Era},
};

/// Tokens of what a fresh client is sent. Definitions are counted as the JSON that stands in the list, instructions as the
/// text that the model gets.
#[derive(Debug, Clone, Serialize)]
pub struct Surface {
    /// How the client speaks.
    pub era: Era,
    /// Our own tools.
    pub n_meta_tools: usize,
    /// Their definitions without the next two.
    pub meta_tools: usize,
    /// The catalogue of skills in them.
    pub catalogue: usize,
    /// The core skill's body in them.
    pub core_body: usize,
    /// The upstreams' tools that are always open.
    pub n_core_tools: usize,
    /// Their definitions.
    pub core_tools: usize,
    /// Of all of these: the list.
    pub list: usize,
    /// Its share of the full registry, in percent.
    pub list_percent_of_full: f64,
    /// The server's instructions, which not every client passes on; they repeat the catalogue, and the core skill's body
    /// where it is short.
    pub instructions: usize,
    /// With them.
    pub total: usize,
    /// Its share of the full registry, in percent.
    pub percent_of_full: f64,
    /// Bytes of the list's definitions and of the instructions.
    pub bytes: usize,
}

/// Counts what `start` says.
pub(super) fn surface(snapshot: &Snapshot, start: &Start, full_tokens: usize, counter: &mut Counter) -> Surface {
    let all: Vec<&str> = start.own.iter().chain(&start.always).map(String::as_str).collect();
    let always: Vec<&str> = start.always.iter().map(String::as_str).collect();
    let list = counter.count_list(&all);
    let core_tools = counter.count_list(&always);
    let (mut catalogue, mut core_body) = (0, 0);
    for text in catalogue_texts(&start.own) {
        let parts = catalogue_parts(snapshot, &text);
        catalogue += counter.count(inner(&json_text(parts.catalogue)));
        core_body += counter.count(inner(&json_text(parts.core)));
    }
    let instructions = counter.count(&start.instructions);
    let total = list + instructions;
    Surface {
        era: start.era,
        n_meta_tools: start.own.len(),
        meta_tools: list.saturating_sub(core_tools + catalogue + core_body),
        catalogue,
        core_body,
        n_core_tools: start.always.len(),
        core_tools,
        list,
        list_percent_of_full: super::table::percent(list, full_tokens),
        instructions,
        total,
        percent_of_full: super::table::percent(total, full_tokens),
        bytes: all.iter().map(|tool| tool.len()).sum::<usize>() + start.instructions.len(),
    }
}

/// The texts of `skill_load` that the catalogue may stand in.
fn catalogue_texts(own: &[String]) -> Vec<String> {
    let definitions = own.iter().filter_map(|tool| serde_json::from_str::<Value>(tool).ok());
    let Some(load) = definitions.into_iter().find(|tool| tool["name"] == "skill_load") else { return Vec::new() };
    let places = ["/description", "/inputSchema/properties/name/description"];
    places.iter().filter_map(|place| Some(load.pointer(place)?.as_str()?.to_owned())).collect()
}

/// A JSON text without its quotes.
fn inner(json: &str) -> &str {
    json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json)
}
