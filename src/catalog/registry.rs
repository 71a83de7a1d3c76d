//! Exposed name → upstream tool. Built once a snapshot; exposed names are looked up here and never taken apart.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::pin::{Doubt, Looks, Unaccepted};
use crate::{
    config::Intent,
    model::{
        diagnostic::Diagnostic,
        hidden::visible,
        limits::{SCHEMA_PARTS, SCHEMA_REFERENCES},
        name::{ExposedName, ToolName, UpstreamName, did_you_mean},
        tool::{Tool, cut},
    },
    wire::{
        envelope::{as_text, json_text},
        splice::{Edits, member, members},
    },
};

/// The tools of one upstream, to be registered.
#[derive(Debug, Clone)]
pub struct UpstreamTools {
    /// The upstream's number.
    pub index: usize,
    /// As the config calls it.
    pub name: UpstreamName,
    /// Put before its tools' names.
    pub prefix: String,
    /// In any order.
    pub tools: Arc<[Arc<Tool>]>,
}

/// A tool under its exposed name.
#[derive(Debug)]
pub struct Registered {
    /// Its upstream's number.
    pub upstream_index: usize,
    /// Its upstream.
    pub upstream: UpstreamName,
    /// As clients see it.
    pub exposed: ExposedName,
    /// As the upstream knows it.
    pub tool: Arc<Tool>,
    /// What is wrong with it, if anything.
    pub doubt: Option<Doubt>,
    /// Its one-line form for models, once it was made.
    pub signature: OnceLock<String>,
    listed: OnceLock<String>,
    /// Absent where the schema cannot be used, as with references to elsewhere.
    validator: OnceLock<Option<jsonschema::Validator>>,
}

/// Findings about arguments that are told at once.
const WRONG_ARGUMENTS: usize = 5;

/// Every tool of every upstream, sorted by exposed name.
#[derive(Debug, Default)]
pub struct Registry {
    tools: Vec<Registered>,
    by_name: HashMap<ExposedName, usize>,
    /// Renamed tools.
    pub findings: Vec<Diagnostic>,
}

impl Registry {
    /// Registers the tools of `upstreams`, the first of which keeps a name on a clash. Names in `reserved` are ours.
    pub fn build(upstreams: &[UpstreamTools], unaccepted: &Unaccepted, reserved: &[&str]) -> Self {
        let mut looks = Looks::new(reserved);
        let mut taken: HashSet<ExposedName> = reserved.iter().map(|name| ExposedName::new(*name)).collect();
        let mut tools = Vec::new();
        let mut findings = Vec::new();
        for upstream in upstreams {
            let mut own: Vec<&Arc<Tool>> = upstream.tools.iter().collect();
            own.sort_by(|a, b| a.name.cmp(&b.name));
            for tool in own {
                let wanted = format!("{}{}", upstream.prefix, tool.name);
                let imitated = looks.imitated(&upstream.name, &wanted);
                if let Some(imitated) = &imitated {
                    findings.push(imitation(&upstream.name, &tool.name, imitated));
                }
                let key = (upstream.name.clone(), tool.name.clone());
                let doubt = imitated.map(Doubt::Imitates).or_else(|| unaccepted.tools.get(&key).cloned());
                let exposed = free_name(&wanted, &upstream.name, &taken);
                if exposed.as_str() != wanted {
                    let is_clash = taken.contains(&ExposedName::for_name(&wanted));
                    findings.push(renamed(&upstream.name, &wanted, &exposed, is_clash));
                }
                taken.insert(exposed.clone());
                let (upstream_index, upstream, tool) = (upstream.index, upstream.name.clone(), Arc::clone(tool));
                tools.push(Registered {
                    upstream_index,
                    upstream,
                    exposed,
                    tool,
                    doubt,
                    signature: OnceLock::new(),
                    listed: OnceLock::new(),
                    validator: OnceLock::new(),
                });
            }
        }
        tools.sort_by(|a, b| a.exposed.cmp(&b.exposed));
        let by_name = tools.iter().enumerate().map(|(index, tool)| (tool.exposed.clone(), index)).collect();
        Self { tools, by_name, findings }
    }

    /// Every tool, sorted by exposed name; positions are those of [`Registry::position`].
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// Where the tool of this exact name stands.
    pub fn position(&self, exposed: &str) -> Option<usize> {
        self.by_name.get(exposed).copied()
    }

    /// The closest names among those that `is_known`.
    pub fn close_to(&self, wanted: &str, is_known: impl Fn(usize, &Registered) -> bool) -> Vec<&str> {
        let known = self.tools.iter().enumerate().filter(|(index, tool)| is_known(*index, tool));
        did_you_mean(wanted, known.map(|(_, tool)| tool.exposed.as_str()))
    }
}

impl Registered {
    /// The definition for `tools/list`, as JSON: under the exposed name, and with `intent` where that is asked for.
    pub fn listed(&self, intent: Intent) -> &str {
        self.listed.get_or_init(|| {
            let text = &*self.tool.definition;
            let Some(all) = members(text) else { return text.to_owned() };
            let mut edits = Edits::new(text);
            if let Some(name) = member(&all, "name").filter(|_| self.exposed.as_str() != self.tool.name.as_str()) {
                edits.replace(name.value, json_text(self.exposed.as_str()));
                // People and models may know the tool by its own name.
                let original = format!("(`{}` of `{}`)", self.tool.name, self.upstream);
                match member(&all, "description").and_then(|found| Some((found, as_text(found.value)?))) {
                    Some((found, known)) => {
                        edits.replace(found.value, json_text(&format!("{known} {original}")));
                    }
                    None => edits.insert(text, "description", &json_text(&original)),
                }
            }
            if intent != Intent::Off
                && let Some(schema) = member(&all, "inputSchema")
            {
                add_intent(&mut edits, schema.value, intent);
            }
            edits.apply()
        })
    }

    /// What is wrong with `arguments`, a JSON object, by the tool's own schema. What cannot be judged is not wrong.
    pub fn wrong_arguments(&self, arguments: &str) -> Vec<String> {
        let compile = || {
            let schema: Value = serde_json::from_str(&self.tool.input_schema).ok()?;
            // What cannot be told in reasonable time is for the server to judge.
            is_bounded(&schema).then_some(())?;
            jsonschema::options().offline().build(&schema).ok()
        };
        let Some(validator) = self.validator.get_or_init(compile) else { return Vec::new() };
        let Ok(arguments) = serde_json::from_str(arguments) else { return Vec::new() };
        let describe = |error: jsonschema::ValidationError<'_>| {
            let path = error.instance_path().to_string();
            let at = if path.is_empty() { String::new() } else { format!("`{}`: ", path.trim_start_matches('/')) };
            format!("{at}{}", cut(&error.to_string(), 200))
        };
        validator.iter_errors(&arguments).take(WRONG_ARGUMENTS).map(describe).collect()
    }

    /// Whether the tool itself has a parameter called `intent`, so that ours stays away.
    pub fn has_own_intent(&self) -> bool {
        has_intent(&self.tool.input_schema)
    }
}

/// Whether a schema comes to an end: with every reference followed it has no more parts than somebody would write. One that
/// leads to itself, or to twice as many parts at each step, would hold up all clients.
fn is_bounded(schema: &Value) -> bool {
    fn walk(root: &Value, part: &Value, n_followed: usize, left: &mut usize) -> Option<()> {
        *left = left.checked_sub(1)?;
        let Value::Object(members) = part else {
            return part.as_array().into_iter().flatten().try_for_each(|item| walk(root, item, n_followed, left));
        };
        if members.contains_key("$dynamicRef") || members.contains_key("$recursiveRef") {
            return None;
        }
        if let Some(Value::String(reference)) = members.get("$ref") {
            let target = root.pointer(reference.strip_prefix('#')?)?;
            (n_followed < SCHEMA_REFERENCES).then_some(())?;
            walk(root, target, n_followed + 1, left)?;
        }
        members.values().try_for_each(|value| walk(root, value, n_followed, left))
    }
    walk(schema, schema, 0, &mut SCHEMA_PARTS.clone()).is_some()
}

fn has_intent(schema: &str) -> bool {
    let all = members(schema).unwrap_or_default();
    let properties = member(&all, "properties").and_then(|found| members(found.value));
    properties.is_some_and(|properties| member(&properties, "intent").is_some())
}

/// Adds the `intent` parameter to a schema.
fn add_intent<'a>(edits: &mut Edits<'a>, schema: &'a str, intent: Intent) {
    const PARAMETER: &str = r#"{"type":"string","description":"One sentence for the user: what this call is for."}"#;
    let Some(all) = members(schema) else { return };
    if has_intent(schema) {
        return;
    }
    match member(&all, "properties").filter(|found| found.value.starts_with('{')) {
        Some(properties) => edits.insert(properties.value, "intent", PARAMETER),
        None => edits.insert(schema, "properties", &format!(r#"{{"intent":{PARAMETER}}}"#)),
    }
    if intent == Intent::Required {
        match member(&all, "required").map(|required| required.value) {
            Some(list) => {
                let rest = list.trim_start_matches('[').trim_start();
                let comma = if rest.starts_with(']') { "" } else { "," };
                edits.replace(list, format!(r#"["intent"{comma}{rest}"#));
            }
            None => edits.insert(schema, "required", r#"["intent"]"#),
        }
    }
}

fn imitation(upstream: &UpstreamName, name: &ToolName, imitated: &str) -> Diagnostic {
    let message =
        format!("`{}` of `{upstream}` could be taken for `{imitated}`, so it is withheld", visible(name.as_str()));
    let hint = format!("give `{upstream}` a `prefix` if you trust it");
    Diagnostic::error("name-imitates", message).hint(hint)
}

/// The first of: the name itself, the upstream's name before it, and that with a hash of both.
fn free_name(wanted: &str, upstream: &UpstreamName, taken: &HashSet<ExposedName>) -> ExposedName {
    let plain = ExposedName::for_name(wanted);
    if !taken.contains(&plain) {
        return plain;
    }
    let joined = format!("{upstream}_{wanted}");
    let qualified = ExposedName::for_name(&joined);
    if !taken.contains(&qualified) {
        return qualified;
    }
    let hashed = |number: usize| ExposedName::rewritten(&joined, &format!("{upstream}\0{wanted}\0{number}"));
    let free = (0..=taken.len()).map(hashed).find(|name| !taken.contains(name));
    // One of n + 1 different names is not among n.
    free.unwrap_or(qualified)
}

fn renamed(upstream: &UpstreamName, wanted: &str, exposed: &ExposedName, is_clash: bool) -> Diagnostic {
    if is_clash {
        let message = format!("`{}` of `{upstream}` is exposed as `{exposed}`: the name is taken", visible(wanted));
        Diagnostic::note("name-clash", message)
    } else {
        let message =
            format!("`{}` of `{upstream}` is exposed as `{exposed}`: model APIs refuse its own name", visible(wanted));
        Diagnostic::note("name-rewritten", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{name::is_exposable, tool::Effect};

    fn tool(name: &str, schema: &str) -> Arc<Tool> {
        Arc::new(Tool {
            name: ToolName::new(name),
            definition: format!(r#"{{"name":{},"inputSchema":{schema}}}"#, json_text(name)).into(),
            input_schema: schema.into(),
            description: String::new(),
            effect: Effect::Write,
            repeatable: false,
            digest: String::new(),
        })
    }

    fn upstream(name: &str, prefix: &str, tools: &[&str]) -> UpstreamTools {
        let tools = tools.iter().map(|name| tool(name, "{}")).collect();
        UpstreamTools { index: 0, name: UpstreamName::new(name), prefix: prefix.into(), tools }
    }

    /// `exposed=upstream|tool`, sorted.
    fn names(upstreams: &[UpstreamTools]) -> Vec<String> {
        let registry = Registry::build(upstreams, &Unaccepted::default(), &["skill_load"]);
        assert!(registry.tools().iter().all(|tool| is_exposable(tool.exposed.as_str())));
        registry.tools().iter().map(|tool| format!("{}={}|{}", tool.exposed, tool.upstream, tool.tool.name)).collect()
    }

    #[test]
    fn a_schema_that_never_ends_is_not_asked() {
        let doubled = |number: usize| {
            format!(r##""d{number}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, number + 1)
        };
        let endless = (0..15).map(doubled).collect::<Vec<_>>().join(",");
        for (schema, expected) in [
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/a"},"$ref":{"type":"string"}},"$defs":{"a":{"type":"string"}}}"##,
                true,
            ),
            (r##"{"properties":{"child":{"$ref":"#"}}}"##, false),
            (r##"{"allOf":[{"$ref":"#"}]}"##, false),
            (r##"{"$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}"##, false),
            (r##"{"$ref":"file:///etc/passwd"}"##, false),
            (&format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{endless},"d15":{{}}}}}}"##), false),
        ] {
            assert_eq!(is_bounded(&serde_json::from_str(schema).unwrap()), expected, "{schema}");
        }
    }

    #[test]
    fn the_first_upstream_keeps_a_name_and_a_later_one_never_renames_it() {
        let (alpha, beta) = (upstream("alpha", "", &["search", "fetch"]), upstream("beta", "", &["search"]));
        let both = names(&[alpha.clone(), beta]);
        assert_eq!(both, ["beta_search=beta|search", "fetch=alpha|fetch", "search=alpha|search"]);
        assert_eq!(names(&[alpha]), ["fetch=alpha|fetch", "search=alpha|search"]);
    }

    #[test]
    fn separators_inside_names_confuse_nothing() {
        let upstreams = [
            upstream("my__srv", "", &["do__it"]),
            upstream("my", "", &["srv__do__it", "_do"]),
            upstream("my_", "", &["do"]),
        ];
        assert_eq!(
            names(&upstreams),
            ["_do=my|_do", "do=my_|do", "do__it=my__srv|do__it", "srv__do__it=my|srv__do__it"]
        );
    }

    #[test]
    fn a_joined_name_that_is_taken_too_gets_a_hash() {
        let found = names(&[upstream("a", "", &["x", "b_x"]), upstream("b", "", &["x"])]);
        assert_eq!(found.len(), 3);
        assert!(found.iter().any(|name| name.starts_with("b_x_") && name.ends_with("=b|x")), "{found:?}");
    }

    #[test]
    fn our_own_names_are_taken_and_prefixes_are_put_before() {
        assert_eq!(names(&[upstream("evil", "", &["skill_load"])]), ["evil_skill_load=evil|skill_load"]);
        assert_eq!(names(&[upstream("gh", "gh_", &["search"])]), ["gh_search=gh|search"]);
    }

    #[test]
    fn a_listed_definition_has_the_exposed_name_and_says_the_original() {
        let registry = Registry::build(&[upstream("odd", "", &["a.b"])], &Unaccepted::default(), &[]);
        let tool = &registry.tools()[0];
        let listed: serde_json::Value = serde_json::from_str(tool.listed(Intent::Off)).unwrap();
        assert_eq!(listed["name"], tool.exposed.as_str());
        assert_eq!(listed["description"], "(`a.b` of `odd`)");
    }

    #[test]
    fn an_intent_is_added_to_the_schema_unless_the_tool_has_one() {
        for (schema, expected) in [
            (r#"{}"#, r#"["intent"]"#),
            (r#"{"properties":{},"required":[]}"#, r#"["intent"]"#),
            (r#"{"properties":{"a":{}},"required":[ "a" ]}"#, r#"["intent","a"]"#),
            (r#"{"properties":{"intent":{}},"required":["intent"]}"#, r#"["intent"]"#),
        ] {
            let tools = UpstreamTools {
                index: 0,
                name: UpstreamName::new("u"),
                prefix: String::new(),
                tools: [tool("t", schema)].into(),
            };
            let registry = Registry::build(&[tools], &Unaccepted::default(), &[]);
            let listed: serde_json::Value = serde_json::from_str(registry.tools()[0].listed(Intent::Required)).unwrap();
            assert_eq!(listed["inputSchema"]["required"].to_string(), expected, "{schema}");
            assert!(listed["inputSchema"]["properties"]["intent"].is_object());
        }
    }
}
