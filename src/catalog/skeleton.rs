//! The first draft of a skill, made of its tools: what it is for in the words that people may use, what each tool does, and
//! which tool needs what another returns. Pure; its author goes on from there.

use serde_json::Value;

use super::{
    auto::{subject, words},
    lint_words::is_empty_name,
    registry::Registered,
    snapshot::{CatalogSkill, Origin, Snapshot},
};
use crate::model::{
    hidden::hidden,
    limits::DESCRIPTION_CHARS,
    tool::{Effect, cut, first_sentence},
};

/// Phrases in a description, of different tools.
const PHRASES: usize = 8;
/// Characters of a tool's sentence in a description, and in the playbook.
const SENTENCE_CHARS: [usize; 2] = [90, 200];
/// Sentences of tools in a description.
const SENTENCES: usize = 3;
/// Last words of a parameter's name that say that it names something which another tool knows.
const NAMING: &[&str] = &["code", "codes", "id", "ids", "key", "number", "ref", "slug", "uuid"];
/// First or last words of tools that find things.
const FINDING: &[&str] = &["list", "search", "find", "query", "lookup", "browse"];

/// A draft.
#[derive(Debug)]
pub struct Skeleton {
    /// As the Agent Skills standard wants names.
    pub name: String,
    /// SKILL.md, whole.
    pub text: String,
}

impl Snapshot {
    /// Drafts a skill that was made of an upstream, under a name that is not `taken`.
    pub fn skeleton(&self, skill: &CatalogSkill, taken: &[String]) -> Skeleton {
        let tools: Vec<&Registered> = skill.tools.iter().map(|position| &self.registry.tools()[*position]).collect();
        let name = standard_name(skill.name.as_str());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let is_free = |name: &String| !taken.contains(name);
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name);
        let description = description(skill, &tools);
        let header = format!("---\nname: {name}\ndescription: {}\n---\n", quoted(&description));
        let mut text = format!("{header}# {}\n\n{}", title(&name), body(skill, &tools));
        // What nobody sees in a definition is not handed on.
        let hidden: Vec<usize> = hidden(&text).map(|hidden| hidden.at).collect();
        for at in hidden.into_iter().rev() {
            text.remove(at);
        }
        Skeleton { text, name }
    }
}

/// Lower case, digits and single hyphens, at most 64; a name that says nothing gets a second word.
fn standard_name(name: &str) -> String {
    let parts =
        words(name).into_iter().map(|word| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("-");
    if name.is_empty() || is_empty_name(&name) {
        name = [&name, "upstream", "tools"].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    }
    // Room for a number behind it.
    name.truncate(60);
    name.trim_matches('-').to_owned()
}

fn title(name: &str) -> String {
    let text = name.replace('-', " ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What it is for, when to use it, and what its tools say of themselves.
fn description(skill: &CatalogSkill, tools: &[&Registered]) -> String {
    let mut phrases: Vec<String> = Vec::new();
    // First those that are about different things.
    let mut subjects: Vec<String> = Vec::new();
    for is_new_subject in [true, false] {
        for tool in tools {
            let (words, about) = (words(tool.tool.name.as_str()), subject(tool.tool.name.as_str()));
            let phrase = as_said(&words);
            if phrases.len() < PHRASES && !phrases.contains(&phrase) && is_new_subject != subjects.contains(&about) {
                subjects.push(about);
                phrases.push(phrase);
            }
        }
    }
    let phrases: Vec<String> = phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect();
    let sentences = tools.iter().map(|tool| first_sentence(&tool.tool.description, SENTENCE_CHARS[0]));
    let sentences: Vec<String> = sentences.filter(|sentence| !sentence.is_empty()).take(SENTENCES).collect();
    // What an upstream says of itself says nothing of its parts.
    let what = match (&skill.origin, tools.first()) {
        (Origin::Upstream(upstream), Some(tool)) if upstream.as_str() != skill.name.as_str() => {
            format!("{} of {upstream}", title(&subject(tool.tool.name.as_str())))
        }
        _ => cut(skill.description.trim_end_matches('.'), 120),
    };
    let more = sentences.iter().map(|sentence| format!(" {}.", sentence.trim_end_matches(['.', '…'])));
    let whole = format!("{what}. Use for {}.{}", phrases.join(", "), more.collect::<String>());
    cut(&whole.replace(['<', '>', '`'], ""), DESCRIPTION_CHARS)
}

/// A tool's words in the order of speech: the verb first.
fn as_said(words: &[String]) -> String {
    match words.split_last() {
        Some((verb, rest)) if !rest.is_empty() && super::auto::is_verb(verb) => format!("{verb} {}", rest.join(" ")),
        _ => words.join(" "),
    }
}

fn body(skill: &CatalogSkill, tools: &[&Registered]) -> String {
    let needs: Vec<Vec<(String, &Registered)>> = tools.iter().map(|tool| needs(tool, tools)).collect();
    let mut text = String::new();
    if let Some((_, said)) = skill.body.split_once("says of itself:") {
        text.push_str(&format!("{}\n\n", said.trim()));
    }
    text.push_str("## In which order\n\n");
    let in_order = in_order(tools, &needs);
    let first: Vec<String> = in_order
        .iter()
        .filter(|index| tools[**index].tool.effect == Effect::Read && needs[**index].is_empty())
        .take(5)
        .map(|index| format!("`{}`", tools[*index].exposed))
        .collect();
    if !first.is_empty() {
        text.push_str(&format!("- Look first: {}.\n", first.join(", ")));
    }
    let mut depending = false;
    for index in &in_order {
        for (parameter, provider) in &needs[*index] {
            text.push_str(&format!(
                "- `{}` needs `{parameter}`: `{}` finds it.\n",
                tools[*index].exposed, provider.exposed
            ));
            depending = true;
        }
    }
    if !depending {
        text.push_str("- No tool needs what another one returns, as far as their parameters say.\n");
    }
    text.push_str("- Ask before a tool that changes something, and say what it will change.\n\n## Tools\n\n");
    for index in in_order {
        let tool = tools[index];
        let effect = if tool.tool.effect == Effect::Read { "reads" } else { "may change something" };
        let sentence = first_sentence(&tool.tool.description, SENTENCE_CHARS[1]);
        let sentence = if sentence.is_empty() { "says nothing of itself.".to_owned() } else { sentence };
        text.push_str(&format!("- `{}` ({effect}): {sentence}\n", tool.exposed));
    }
    text
}

/// The parameters that a tool cannot do without and another tool of these finds, with that tool.
fn needs<'a>(tool: &Registered, tools: &[&'a Registered]) -> Vec<(String, &'a Registered)> {
    let about = subject(tool.tool.name.as_str());
    let provider = |parameter: String| {
        let mut noun = words(&parameter);
        let last = noun.pop()?;
        if !NAMING.contains(&last.as_str()) {
            return None;
        }
        let noun = noun.pop().unwrap_or_else(|| about.clone());
        let is_of_noun = |word: &String| singular(word) == singular(&noun);
        let finds = |other: &&&Registered| {
            let words = words(other.tool.name.as_str());
            words.iter().any(|word| FINDING.contains(&word.as_str()))
                && words.iter().any(is_of_noun)
                && !required(&other.tool.input_schema).contains(&parameter)
        };
        let found = tools.iter().filter(finds).min_by_key(|other| required(&other.tool.input_schema).len())?;
        (found.exposed != tool.exposed).then_some((parameter.clone(), *found))
    };
    required(&tool.tool.input_schema).into_iter().filter_map(provider).collect()
}

fn singular(word: &str) -> &str {
    if word.len() > 3 { word.trim_end_matches('s') } else { word }
}

fn required(schema: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Positions of tools: what finds before what needs it, reading before changing, else by name.
fn in_order(tools: &[&Registered], needs: &[Vec<(String, &Registered)>]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..tools.len()).collect();
    left.sort_by_key(|index| {
        (tools[*index].tool.effect == Effect::Write, needs[*index].len(), tools[*index].exposed.clone())
    });
    let mut ordered: Vec<usize> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_ready = |index: &usize| {
            needs[*index]
                .iter()
                .all(|(_, provider)| ordered.iter().any(|known| tools[*known].exposed == provider.exposed))
        };
        // Those that need each other come as they are.
        let next = left.iter().position(is_ready).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// A YAML text in double quotes, which JSON's are too.
fn quoted(text: &str) -> String {
    Value::from(text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        catalog::{Registry, Unaccepted, UpstreamTools},
        model::{
            name::{ToolName, UpstreamName},
            tool::Tool,
        },
    };

    #[test]
    fn names_are_those_of_the_standard() {
        for (name, expected) in [
            ("shop-orders", "shop-orders"),
            ("My Server_2", "my-server-2"),
            ("mcp.example.com", "mcp-example-com"),
            ("tools", "tools-upstream-tools"),
            ("日本", "upstream-tools"),
        ] {
            assert_eq!(standard_name(name), expected);
        }
        assert!(standard_name(&"long-name-".repeat(20)).len() <= 64);
    }

    #[test]
    fn a_tool_that_finds_what_another_needs_stands_before_it() {
        let tool = |name: &str, required: &[&str]| {
            let effect = if name.ends_with("list") { Effect::Read } else { Effect::Write };
            Arc::new(Tool {
                name: ToolName::new(name),
                definition: format!(r#"{{"name":"{name}"}}"#).into(),
                input_schema: serde_json::json!({"required": required}).to_string().into(),
                description: String::new(),
                effect,
                repeatable: false,
                digest: String::new(),
            })
        };
        let tools = [
            tool("invoices_send", &["id", "customer_id", "text"]),
            tool("customers_list", &[]),
            tool("invoices_list", &["customer_id"]),
            tool("a_ping", &["host_id"]),
        ];
        let upstream =
            UpstreamTools { index: 0, name: UpstreamName::new("u"), prefix: String::new(), tools: tools.into() };
        let registry = Registry::build(&[upstream], &Unaccepted::default(), &[]);
        let tools: Vec<&Registered> = registry.tools().iter().collect();
        let needs: Vec<Vec<(String, &Registered)>> = tools.iter().map(|tool| needs(tool, &tools)).collect();
        let said: Vec<String> = tools
            .iter()
            .zip(&needs)
            .flat_map(|(tool, needs)| {
                needs.iter().map(move |(name, of)| format!("{} {name} {}", tool.exposed, of.exposed))
            })
            .collect();
        assert_eq!(
            said,
            [
                "invoices_list customer_id customers_list",
                "invoices_send id invoices_list",
                "invoices_send customer_id customers_list",
            ]
        );
        let order: Vec<&str> =
            in_order(&tools, &needs).into_iter().map(|index| tools[index].exposed.as_str()).collect();
        assert_eq!(order, ["customers_list", "invoices_list", "a_ping", "invoices_send"]);
    }

    #[test]
    fn a_tools_name_is_said_with_its_verb_first() {
        for (name, expected) in [
            ("orders_list", "list orders"),
            ("list_orders", "list orders"),
            ("orderItemCancel", "cancel order item"),
            ("echo", "echo"),
        ] {
            assert_eq!(as_said(&words(name)), expected);
        }
    }
}
