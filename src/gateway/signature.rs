//! A tool in one line, as `skill_load` returns it: name, parameters with types, first sentence. The full definition is
//! `tool_describe`'s.

use serde_json::{Map, Value};

use crate::model::tool::{Tool, cut};

/// Characters of the parameter list; what is left out is counted.
const PARAMETERS_CHARS: usize = 150;
/// Characters of the sentence.
const SENTENCE_CHARS: usize = 80;
/// Values of an enum that are written out.
const ENUM_VALUES: usize = 4;
/// Alternatives of a type that are looked at; they may lead to each other.
const ARMS: usize = 8;

/// Returns `exposed(a: string, b?: 1|2) — first sentence`, required parameters first.
pub fn signature(exposed: &str, tool: &Tool) -> String {
    let schema: Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
    let parameters = parameters(&schema);
    let sentence = crate::model::tool::first_sentence(&tool.description, SENTENCE_CHARS);
    let separator = if sentence.is_empty() { "" } else { " — " };
    format!("{exposed}({parameters}){separator}{sentence}")
}

fn parameters(schema: &Value) -> String {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let is_required = |name: &str| required.contains(&name);
    let first = properties.iter().filter(|(name, _)| is_required(name));
    let then = properties.iter().filter(|(name, _)| !is_required(name));
    let mut text = String::new();
    let mut n_shown = 0;
    for (name, property) in first.chain(then) {
        let mark = if is_required(name) { "" } else { "?" };
        let part = format!("{name}{mark}: {}", type_of(property, schema, 0));
        let has_room = text.chars().count() + part.chars().count() <= PARAMETERS_CHARS;
        if !has_room && !is_required(name) {
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&part);
        n_shown += 1;
    }
    match properties.len() - n_shown {
        0 => text,
        n_left if text.is_empty() => format!("{n_left} optional"),
        n_left => format!("{text}, +{n_left}"),
    }
}

/// The type of a property in a few characters.
fn type_of(property: &Value, root: &Value, depth: usize) -> String {
    if depth > 3 {
        return "any".into();
    }
    if let Some(target) = property.get("$ref").and_then(Value::as_str) {
        let resolved = root.pointer(target.trim_start_matches('#'));
        return resolved.map_or_else(|| "any".into(), |resolved| type_of(resolved, root, depth + 1));
    }
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return values_of(values.iter());
    }
    if let Some(value) = property.get("const") {
        return value.to_string();
    }
    let arms = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| property.get(key)?.as_array());
    if let (Some(arms), None) = (arms, property.get("type")) {
        let constants: Option<Vec<&Value>> = arms.iter().map(|arm| arm.get("const")).collect();
        if let Some(constants) = constants {
            return values_of(constants.into_iter());
        }
        let mut types: Vec<String> = arms.iter().take(ARMS).map(|arm| type_of(arm, root, depth + 1)).collect();
        types.retain(|name| name != "null");
        types.dedup();
        return cut(&types.join("|"), 40);
    }
    let names: Vec<&str> = match property.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
        _ => return "any".into(),
    };
    let short = |name: &&str| match *name {
        "integer" => "int".into(),
        "boolean" => "bool".into(),
        "array" => property
            .get("items")
            .map_or_else(|| "any[]".into(), |items| format!("{}[]", type_of(items, root, depth + 1))),
        other => other.to_owned(),
    };
    names.iter().map(short).collect::<Vec<_>>().join("|")
}

fn values_of<'a>(values: impl ExactSizeIterator<Item = &'a Value>) -> String {
    let n_values = values.len();
    let shown: Vec<String> = values.filter(|value| !value.is_null()).take(ENUM_VALUES).map(Value::to_string).collect();
    let more = if n_values > ENUM_VALUES { "|…" } else { "" };
    format!("{}{more}", shown.join("|"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{name::ToolName, tool::Effect};

    fn of(schema: Value) -> String {
        let tool = Tool {
            name: ToolName::new("t"),
            definition: "{}".into(),
            input_schema: schema.to_string().into(),
            description: "Does one useful thing. And more.".into(),
            effect: Effect::Read,
            repeatable: true,
            digest: String::new(),
        };
        signature("t", &tool)
    }

    #[test]
    fn parameters_are_named_with_types_required_ones_first() {
        let schema = json!({"required": ["id"], "$defs": {"State": {"oneOf": [{"const": "new"}, {"const": "paid"}]}}, "properties": {
            "limit": {"type": ["integer", "null"]}, "id": {"type": "string"}, "state": {"$ref": "#/$defs/State"},
            "tags": {"type": "array", "items": {"type": "string"}}, "size": {"enum": [1, 2, 3, 4, 5]},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "free": {}}});
        assert_eq!(
            of(schema),
            r#"t(id: string, limit?: int, state?: "new"|"paid", tags?: string[], size?: 1|2|3|4|…, either?: string, free?: any) — Does one useful thing."#
        );
    }

    #[test]
    fn what_does_not_fit_is_counted_and_recursion_ends() {
        let many: Map<String, Value> = (0..40).map(|n| (format!("parameter_{n}"), json!({"type": "string"}))).collect();
        assert!(of(json!({"properties": many})).contains(", +33) —"), "{}", of(json!({"properties": many})));
        let own = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert_eq!(of(own), "t(x?: any) — Does one useful thing.");
        assert_eq!(of(json!({})), "t() — Does one useful thing.");
    }
}
