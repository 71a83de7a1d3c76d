//! Schemas of tools: made by schemars, trimmed for reading by models, and enforced before a handler runs.
//!
//! Absent and null mean the same in this server, in arguments and in results. That lets every schema say it
//! in the short way: an optional member is simply not required, and never "string or null".

use jsonschema::{Validator, error::ValidationErrorKind};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::error::ShopError;

/// Formats that only repeat the Rust type.
const MACHINE_FORMATS: [&str; 7] = ["int64", "int32", "uint64", "uint32", "uint8", "uint", "double"];

/// Makes the schema of a tool's parameters.
pub(crate) fn input<P: JsonSchema>() -> Map<String, Value> {
    root::<P>(SchemaSettings::draft2020_12(), false)
}

/// Makes the schema of a tool's result.
pub(crate) fn output<R: JsonSchema>() -> Map<String, Value> {
    root::<R>(SchemaSettings::draft2020_12().for_serialize(), true)
}

fn root<T: JsonSchema>(settings: SchemaSettings, is_output: bool) -> Map<String, Value> {
    let generator = settings.with(|s| s.meta_schema = None).into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    trim(&mut schema, is_output);
    match schema {
        Value::Object(mut root) => {
            root.remove("description");
            root.remove("examples");
            // Some clients refuse an object schema without this member.
            root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            root
        }
        _ => Map::new(),
    }
}

/// Trims one schema in place; says whether it allowed null.
fn trim(schema: &mut Value, is_output: bool) -> bool {
    let Value::Object(map) = schema else {
        return false;
    };
    map.remove("title");
    if is_output {
        // What helps to write a value is of no use to those who read one.
        for key in ["examples", "default", "pattern"] {
            map.remove(key);
        }
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if map.get("format").and_then(Value::as_str).is_some_and(|f| MACHINE_FORMATS.contains(&f)) {
        map.remove("format");
    }
    trim_members(map, is_output);
    for key in ["items", "additionalProperties"] {
        if let Some(member) = map.get_mut(key) {
            trim(member, is_output);
        }
    }
    let allowed_null = drop_null_alternative(map);
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = map.get_mut(key) {
            for member in members {
                trim(member, is_output);
            }
        }
    }
    allowed_null
}

/// Trims the schemas of members and definitions; members that allowed null are no longer required.
fn trim_members(map: &mut Map<String, Value>, is_output: bool) {
    let mut optional = Vec::new();
    for key in ["properties", "$defs"] {
        if let Some(Value::Object(members)) = map.get_mut(key) {
            for (name, member) in members {
                if trim(member, is_output) && key == "properties" {
                    optional.push(name.clone());
                }
            }
        }
    }
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required.retain(|name| !optional.iter().any(|o| name == o));
        if required.is_empty() {
            map.remove("required");
        }
    }
}

/// Takes null out of `type`, `enum` and `anyOf`; says whether it was there.
fn drop_null_alternative(map: &mut Map<String, Value>) -> bool {
    let mut found = false;
    if let Some(Value::Array(types)) = map.get_mut("type") {
        let before = types.len();
        types.retain(|t| t != "null");
        found |= types.len() < before;
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|v| !v.is_null());
    }
    if let Some(Value::Array(members)) = map.get_mut("anyOf") {
        let before = members.len();
        members.retain(|m| m.get("type").is_none_or(|t| t != "null"));
        found |= members.len() < before;
        if let [Value::Object(only)] = members.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
    found
}

/// Takes members that are null out of all objects.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Checks arguments against the schema of the tool's parameters.
///
/// # Errors
/// `Refused` with code `invalid` for the first finding: the path, the value found, what is allowed.
pub(crate) fn check(validator: &Validator, schema: &Map<String, Value>, arguments: &Value) -> Result<(), ShopError> {
    let Some(error) = validator.iter_errors(arguments).next() else {
        return Ok(());
    };
    let path = dotted(&error.instance_path().to_string());
    let (field, hint) = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map_or("", String::as_str);
            let hint = if path.is_empty() {
                format!("parameters of this tool: {}", names(schema))
            } else {
                format!("leave it out; the schema of `{path}` has the members it may have")
            };
            (join(&path, name), hint)
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            (join(&path, name), "add it; the tool's schema has an example".to_owned())
        }
        _ => (path, "the parameter's schema has the allowed values and an example".to_owned()),
    };
    let message = format!("`{field}`: {error}");
    Err(ShopError::refused(crate::error::Code::Invalid, message, hint).at(&field))
}

fn names(schema: &Map<String, Value>) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Turns a JSON pointer into a dotted path: `/items/0/sku` into `items[0].sku`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
            path.push_str(&format!("[{part}]"));
        } else {
            path = join(&path, part);
        }
    }
    path
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
