//! An input file as a tree in which every value knows its place, whether it was TOML or JSON with comments. Must not
//! know what the file means.

use std::{
    collections::HashMap,
    ops::Range,
    path::{Path, PathBuf},
};

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::{
    diagnostic::{Diagnostic, Place},
    name::did_you_mean,
};

/// A parsed file.
#[derive(Debug)]
pub struct Source {
    file: PathBuf,
    text: String,
    /// The whole file.
    pub value: Value,
    /// Byte offsets by JSON pointer, of the key where there is one.
    offsets: HashMap<String, usize>,
}

impl Source {
    /// Parses TOML.
    ///
    /// # Errors
    /// Every syntax error of the file, as `config-syntax`.
    pub fn from_toml(file: &Path, text: String) -> Result<Self, Vec<Diagnostic>> {
        let (table, errors) = toml::de::DeTable::parse_recoverable(&text);
        let mut offsets = HashMap::new();
        let value = toml_table(table.get_ref(), String::new(), &mut offsets);
        let errors: Vec<_> = errors.iter().map(|error| (error.span(), error.message().to_owned())).collect();
        Self { file: file.into(), text, value, offsets }.unless(errors)
    }

    /// Parses JSON in which comments and trailing commas may stand.
    ///
    /// # Errors
    /// The first syntax error of the file, as `config-syntax`.
    pub fn from_json(file: &Path, text: String) -> Result<Self, Vec<Diagnostic>> {
        let options = jsonc_parser::ParseOptions { allow_comments: true, allow_trailing_commas: true, ..strict_json() };
        let mut offsets = HashMap::new();
        let mut errors = Vec::new();
        let value = match jsonc_parser::parse_to_ast(&text, &jsonc_parser::CollectOptions::default(), &options) {
            Ok(parsed) => parsed.value.map_or(Value::Null, |value| json_value(value, String::new(), &mut offsets)),
            Err(error) => {
                let range = error.range();
                errors.push((Some(range.start..range.end), error.kind().to_string()));
                Value::Null
            }
        };
        Self { file: file.into(), text, value, offsets }.unless(errors)
    }

    fn unless(self, errors: Vec<(Option<Range<usize>>, String)>) -> Result<Self, Vec<Diagnostic>> {
        if errors.is_empty() {
            return Ok(self);
        }
        let diagnose = |(span, message): (Option<Range<usize>>, String)| {
            let place = self.place_at(span.map_or(0, |span| span.start));
            Diagnostic::error("config-syntax", message.to_lowercase()).at(place)
        };
        let mut found: Vec<Diagnostic> = errors.into_iter().map(diagnose).collect();
        found.sort_by(|a, b| a.at.cmp(&b.at));
        Err(found)
    }

    /// The place of the value at `pointer`, or of the nearest value around it.
    pub fn place(&self, pointer: &str) -> Place {
        let mut pointer = pointer;
        loop {
            if let Some(offset) = self.offsets.get(pointer) {
                return self.place_at(*offset);
            }
            let Some((outer, _)) = pointer.rsplit_once('/') else { return self.place_at(0) };
            pointer = outer;
        }
    }

    fn place_at(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place { file: self.file.clone(), line, column }
    }

    /// Checks the file against its schema; returns every finding, in the file's order.
    pub fn validate(&self, schema: &Value) -> Vec<Diagnostic> {
        let validator = match jsonschema::options().offline().build(schema) {
            Ok(validator) => validator,
            Err(error) => return vec![Diagnostic::error("config-invalid", format!("own schema is broken: {error}"))],
        };
        let mut found: Vec<Diagnostic> = Vec::new();
        for error in validator.iter_errors(&self.value) {
            let pointer = error.instance_path().to_string();
            if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
                let known = known_members(schema, &self.value, &pointer);
                found.extend(unexpected.iter().map(|name| self.unknown_member(&pointer, name, &known)));
                continue;
            }
            let name = if pointer.is_empty() { "the file" } else { pointer.trim_start_matches('/') };
            // Members below may be tokens and passwords.
            let is_secret = ["/env/", "/headers/", "/key-secret"].iter().any(|part| pointer.contains(part));
            let choices = one_of(schema, &error);
            let message = match choices {
                Some(choices) => format!("{} is not one of {}", error.instance(), choices.join(", ")),
                None if is_secret => error.masked().to_string(),
                None => error.to_string(),
            };
            found.push(Diagnostic::error("config-invalid", format!("`{name}`: {message}")).at(self.place(&pointer)));
        }
        found.sort_by(|a, b| a.at.cmp(&b.at));
        found
    }

    fn unknown_member(&self, pointer: &str, name: &str, known: &[String]) -> Diagnostic {
        let place = self.place(&format!("{pointer}/{}", escaped(name)));
        let mut finding = Diagnostic::error("config-invalid", format!("unknown member `{name}`")).at(place);
        if let Some(close) = did_you_mean(name, known.iter().map(String::as_str)).first() {
            finding = finding.hint(format!("did you mean `{close}`?"));
        } else if !known.is_empty() {
            finding = finding.hint(format!("known here: {}", known.join(", ")));
        }
        finding
    }
}

/// One token of a JSON pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reads `version` first: a newer one is refused by name.
pub fn check_version(source: &Source, newest: u64) -> Option<Diagnostic> {
    let found = source.value.get("version")?.as_u64()?;
    let message = format!("`version` is {found}, this program reads up to {newest}");
    (found > newest)
        .then(|| Diagnostic::error("config-newer", message).at(source.place("/version")).hint("use a newer gatekey"))
}

fn strict_json() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn toml_table(table: &toml::de::DeTable<'_>, pointer: String, offsets: &mut HashMap<String, usize>) -> Value {
    let mut entries: Vec<_> = table.iter().collect();
    // The file's order has a meaning; the table's is alphabetical.
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut object = Map::new();
    for (key, value) in entries {
        let pointer = format!("{pointer}/{}", escaped(key.get_ref()));
        offsets.insert(pointer.clone(), key.span().start);
        object.insert(key.get_ref().to_string(), toml_value(value.get_ref(), pointer, offsets));
    }
    Value::Object(object)
}

fn toml_value(value: &toml::de::DeValue<'_>, pointer: String, offsets: &mut HashMap<String, usize>) -> Value {
    use toml::de::DeValue;
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| number.as_str().into(), Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or_else(|_| number.as_str().into(), Value::from),
        DeValue::Datetime(moment) => Value::from(moment.to_string()),
        DeValue::Array(array) => {
            let mut items = Vec::new();
            for (index, item) in array.iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                offsets.insert(pointer.clone(), item.span().start);
                items.push(toml_value(item.get_ref(), pointer, offsets));
            }
            Value::Array(items)
        }
        DeValue::Table(table) => toml_table(table, pointer, offsets),
    }
}

fn json_value(value: jsonc_parser::ast::Value<'_>, pointer: String, offsets: &mut HashMap<String, usize>) -> Value {
    use jsonc_parser::ast::Value as Ast;
    match value {
        Ast::Object(object) => {
            let mut members = Map::new();
            for property in object.properties {
                let name = property.name.as_str().to_owned();
                let pointer = format!("{pointer}/{}", escaped(&name));
                offsets.insert(pointer.clone(), property.range.start);
                members.insert(name, json_value(property.value, pointer, offsets));
            }
            Value::Object(members)
        }
        Ast::Array(array) => {
            let items = array.elements.into_iter().enumerate().map(|(index, item)| {
                let pointer = format!("{pointer}/{index}");
                json_value(item, pointer, offsets)
            });
            Value::Array(items.collect())
        }
        scalar => scalar.into(),
    }
}

/// The values to choose from, where the schema lists each with a description of its own.
fn one_of(schema: &Value, error: &jsonschema::ValidationError<'_>) -> Option<Vec<String>> {
    let ValidationErrorKind::OneOfNotValid { .. } = error.kind() else { return None };
    let path = error.schema_path().to_string();
    let arms = schema.pointer(&path)?.as_array()?;
    arms.iter().map(|arm| arm.get("const").map(Value::to_string)).collect()
}

/// The members that the schema knows for the object at `pointer`.
fn known_members(schema: &Value, instance: &Value, pointer: &str) -> Vec<String> {
    fn resolve<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
        let target =
            part.get("$ref").and_then(Value::as_str).and_then(|path| schema.pointer(path.trim_start_matches('#')));
        target.unwrap_or(part)
    }
    let mut at = schema;
    let mut here = instance;
    for token in pointer.split('/').skip(1) {
        let next = if here.is_array() {
            at.get("items")
        } else {
            at.get("properties").and_then(|known| known.get(token)).or_else(|| at.get("additionalProperties"))
        };
        let Some(next) = next else { return Vec::new() };
        at = resolve(schema, next);
        here = match here {
            Value::Array(items) => token.parse().ok().and_then(|index: usize| items.get(index)).unwrap_or(&Value::Null),
            other => other.get(token.replace("~1", "/").replace("~0", "~")).unwrap_or(&Value::Null),
        };
    }
    at.get("properties").and_then(Value::as_object).map(|known| known.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show(found: &[Diagnostic]) -> String {
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn toml_keeps_the_files_order_and_places() {
        let text = "b = 1\n\n[z.\"x/y\"]\nlist = [1,\n  \"two\"]\n[a]\n";
        let source = Source::from_toml(Path::new("f.toml"), text.into()).unwrap();
        assert_eq!(source.value.to_string(), r#"{"b":1,"z":{"x/y":{"list":[1,"two"]}},"a":{}}"#);
        assert_eq!(source.place("/z/x~1y/list/1").to_string(), "f.toml:5:3");
        assert_eq!(source.place("/z/x~1y/nowhere").to_string(), "f.toml:3:4");
    }

    #[test]
    fn json_may_have_comments_and_trailing_commas_and_nothing_else() {
        let text = "{\n  // why\n  \"a\": {\"b\": [1, 2,],}, /* end */\n}";
        let source = Source::from_json(Path::new("f.json"), text.into()).unwrap();
        assert_eq!(source.value, json!({"a": {"b": [1, 2]}}));
        assert_eq!(source.place("/a/b").to_string(), "f.json:3:9");
        for text in ["{a: 1}", "{'a': 1}", "{\"a\": 1 \"b\": 2}", "{\"a\": 0x1}", "{"] {
            assert!(Source::from_json(Path::new("f.json"), text.into()).is_err(), "{text}");
        }
    }

    #[test]
    fn every_syntax_error_of_a_toml_file_is_found() {
        let found = Source::from_toml(Path::new("f.toml"), "a = \nb = [1,,2]\nc = 1\n".into()).unwrap_err();
        assert_eq!(found.iter().filter_map(|f| f.at.as_ref()).map(|at| at.line).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn every_finding_has_its_place_and_a_hint() {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {
            "mode": {"enum": ["auto", "list"]},
            "servers": {"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}},
            "$defs": {"server": {"type": "object", "additionalProperties": false, "properties": {
                "command": {"type": "string"}, "env": {"additionalProperties": {"type": "string"}}}}}});
        let text = "mode = \"fast\"\n[servers.a]\ncomand = 1\nenv = { TOKEN = 12345 }\n";
        let source = Source::from_toml(Path::new("f.toml"), text.into()).unwrap();
        insta::assert_snapshot!(show(&source.validate(&schema)), @r#"
        f.toml:1:1: error[config-invalid]: `mode`: "fast" is not one of "auto" or "list"
        f.toml:3:1: error[config-invalid]: unknown member `comand`
          hint: did you mean `command`?
        f.toml:4:9: error[config-invalid]: `servers/a/env/TOKEN`: value is not of type "string"
        "#);
    }
}
