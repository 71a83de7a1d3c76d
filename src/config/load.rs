//! From a config file to a checked [`Config`]. What is wrong with one upstream costs that upstream; what is wrong with
//! the file's shape costs the file.

use std::{path::Path, sync::LazyLock};

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    auth,
    config::Config,
    entry, models,
    raw::{RawConfig, RawUpstream},
    variables::Environment,
};
use crate::model::{
    diagnostic::{Diagnostic, Place},
    hidden::visible,
    name::UpstreamName,
    source::{Source, check_version},
};

/// The newest `version` of a config that is read.
const VERSION: u64 = 1;

/// What is read of a server in a client's file.
const CLIENTS_MEMBERS: &[&str] = &["command", "args", "env", "cwd", "url", "headers", "disabled"];

/// What the lock file is called.
const LOCK_FILE: &str = "gatekey.lock";

/// A config with what was found while reading it.
#[derive(Debug)]
pub struct Loaded {
    /// Absent where the file cannot be used at all.
    pub config: Option<Config>,
    /// Everything that was found.
    pub findings: Vec<Diagnostic>,
}

/// The JSON Schema of `gatekey.toml`.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(RawConfig).to_value());
    &SCHEMA
}

/// Reads a config file: `gatekey.toml`, or JSON in the clients' common `mcpServers` shape.
pub fn load_file(file: &Path, environment: &Environment) -> Loaded {
    match std::fs::read_to_string(file) {
        Ok(text) => load_text(file, text, environment),
        Err(error) => {
            let place = Place { file: file.into(), ..Place::default() };
            let finding = Diagnostic::error("config-syntax", format!("cannot be read: {error}")).at(place);
            Loaded { config: None, findings: vec![finding] }
        }
    }
}

/// Reads a config's text; `file` tells its format by its ending, and relative paths start at its folder.
pub fn load_text(file: &Path, text: String, environment: &Environment) -> Loaded {
    let is_json = is_json(file);
    let parsed = if is_json { Source::from_json(file, text) } else { Source::from_toml(file, text) };
    let source = match parsed {
        Ok(source) => source,
        Err(findings) => return Loaded { config: None, findings },
    };
    let raw = if is_json { read_clients_file(&source) } else { read_own_file(&source) };
    let raw = match raw {
        Ok(raw) => raw,
        Err(findings) => return Loaded { config: None, findings },
    };
    let mut reader = Reader {
        source: &source,
        folder: file.parent().unwrap_or(Path::new("")),
        environment,
        member: if is_json { "mcpServers" } else { "upstreams" },
        findings: Vec::new(),
    };
    let config = reader.config(raw);
    let mut findings = reader.findings;
    findings.sort_by(|a, b| a.at.cmp(&b.at));
    let config = if findings.iter().any(|finding| finding.code == "config-invalid") { None } else { Some(config) };
    Loaded { config, findings }
}

/// The upstreams of a file as they are written there, in the form that `gatekey.toml` has: with their variables, and without
/// what only clients know.
///
/// # Errors
/// The file cannot be used.
pub fn raw_upstreams(file: &Path) -> Result<serde_json::Map<String, Value>, Vec<Diagnostic>> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let place = Place { file: file.into(), ..Place::default() };
        vec![Diagnostic::error("config-syntax", format!("cannot be read: {error}")).at(place)]
    })?;
    let is_json = is_json(file);
    let source = if is_json { Source::from_json(file, text) } else { Source::from_toml(file, text) }?;
    let member = if is_json { "mcpServers" } else { "upstreams" };
    let mut upstreams = source.value.get(member).and_then(Value::as_object).cloned().unwrap_or_default();
    if is_json {
        for server in upstreams.values_mut().filter_map(Value::as_object_mut) {
            server.retain(|member, _| CLIENTS_MEMBERS.contains(&member.as_str()));
        }
    }
    Ok(upstreams)
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "json" || ending == "jsonc")
}

fn read_own_file(source: &Source) -> Result<RawConfig, Vec<Diagnostic>> {
    if let Some(newer) = check_version(source, VERSION) {
        return Err(vec![newer]);
    }
    let findings = source.validate(schema());
    if !findings.is_empty() {
        return Err(findings);
    }
    serde_json::from_value(source.value.clone())
        .map_err(|error| vec![Diagnostic::error("config-invalid", error.to_string()).at(source.place(""))])
}

/// Takes over what clients write into their own files; members that only they know are none of our business.
fn read_clients_file(source: &Source) -> Result<RawConfig, Vec<Diagnostic>> {
    let text = serde_json::json!({"type": "string"});
    let texts = serde_json::json!({"type": "object", "additionalProperties": text});
    let server = serde_json::json!({"type": "object", "properties": {
        "command": text, "args": {"type": "array", "items": text}, "env": texts, "cwd": text, "url": text,
        "headers": texts, "disabled": {"type": "boolean"}}});
    let shape = serde_json::json!({"type": "object", "required": ["mcpServers"],
        "properties": {"mcpServers": {"type": "object", "additionalProperties": server}}});
    let findings = source.validate(&shape);
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut upstreams = IndexMap::new();
    for (name, entry) in source.value.get("mcpServers").and_then(Value::as_object).into_iter().flatten() {
        let mut entry = entry.clone();
        if let Some(members) = entry.as_object_mut() {
            members.retain(|member, _| CLIENTS_MEMBERS.contains(&member.as_str()));
        }
        let raw: RawUpstream = serde_json::from_value(entry)
            .map_err(|error| vec![Diagnostic::error("config-invalid", error.to_string()).at(source.place(""))])?;
        upstreams.insert(name.clone(), raw);
    }
    Ok(RawConfig { version: VERSION, upstreams, ..RawConfig::default() })
}

/// Goes through a raw config with its source at hand.
pub(super) struct Reader<'a> {
    pub(super) source: &'a Source,
    pub(super) folder: &'a Path,
    pub(super) environment: &'a Environment,
    /// The member that holds the upstreams.
    pub(super) member: &'static str,
    pub(super) findings: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn config(&mut self, mut raw: RawConfig) -> Config {
        let own: Vec<(String, RawUpstream)> = std::mem::take(&mut raw.upstreams).into_iter().collect();
        let (disabled, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, raw)| raw.disabled);
        let upstreams = own.into_iter().map(|(name, raw)| entry::upstream(self, name, raw)).collect();
        for (index, path) in raw.maps.iter_mut().enumerate() {
            self.expand_own(path, &format!("/maps/{index}"));
        }
        for (index, folder) in raw.skills.iter_mut().enumerate() {
            self.expand_own(&mut folder.path, &format!("/skills/{index}"));
        }
        let mut paths: Vec<(String, &mut String)> = models::paths(&mut raw.search);
        let patterns = raw.scan.patterns.iter_mut().enumerate();
        paths.extend(patterns.map(|(index, path)| (format!("/scan/patterns/{index}"), path)));
        paths.extend(raw.audit.as_mut().map(|audit| ("/audit/file".to_owned(), &mut audit.file)));
        paths.push(("/lock".to_owned(), raw.lock.get_or_insert_with(|| LOCK_FILE.to_owned())));
        paths.extend(raw.index.file.as_mut().map(|path| ("/index/file".to_owned(), path)));
        paths.extend(raw.http.auth.iter_mut().flat_map(auth::texts));
        for (pointer, path) in paths {
            self.expand_own(path, &pointer);
        }
        for (index, host) in raw.http.allowed_hosts.iter().enumerate() {
            if host.contains('/') || host.trim().is_empty() {
                let message = format!("`{}` is no host: write its name, with a port or without", visible(host));
                let place = self.source.place(&format!("/http/allowed-hosts/{index}"));
                self.findings.push(Diagnostic::error("config-invalid", message).at(place));
            }
        }
        let faults = raw.http.auth.iter().flat_map(auth::faults);
        for (pointer, message) in
            models::faults(&raw.search).into_iter().map(|(at, message)| (at.to_owned(), message)).chain(faults)
        {
            self.findings.push(Diagnostic::error("config-invalid", message).at(self.source.place(&pointer)));
        }
        models::find_runtime(&mut raw.search, self.environment);
        if let Some(secret) = &mut raw.key_secret {
            self.expand_own(secret, "/key-secret");
        }
        let left_out = disabled.into_iter().map(|(name, _)| UpstreamName::new(name)).collect();
        Config { left_out, ..Config::checked(raw, upstreams, self.folder) }
    }

    /// Expands a value that the whole config depends on.
    fn expand_own(&mut self, text: &mut String, pointer: &str) {
        match self.environment.expand(text) {
            Ok(value) => *text = value,
            Err(error) => {
                let message = format!("`{}`: {error}", pointer.trim_start_matches('/'));
                self.findings.push(Diagnostic::error("config-invalid", message).at(self.source.place(pointer)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Transport;

    fn toml(text: &str) -> Loaded {
        load_text(Path::new("conf/gatekey.toml"), text.into(), &Environment::from([("SET", "1"), ("PATH", "/bin")]))
    }

    fn show(findings: &[Diagnostic]) -> String {
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn paths_start_at_the_files_folder_and_upstreams_keep_their_order() {
        let text = r#"
            version = 1
            maps = ["maps/${SET}.toml"]
            skills = ["/abs"]
            [upstreams.z]
            command = "bin/z"
            cwd = "work"
            [upstreams.a]
            command = "a"
            args = ["${SET}"]
            env = { TOKEN = "${SET}" }
            handshake-timeout-ms = 1500
        "#;
        let loaded = toml(text);
        assert_eq!(show(&loaded.findings), "");
        let config = loaded.config.unwrap();
        assert_eq!(config.maps, [Path::new("conf/maps/1.toml")]);
        assert_eq!(config.skills, [crate::model::trust::SkillFolder::from(std::path::PathBuf::from("/abs"))]);
        let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let Ok(Transport::Stdio(z)) = &config.upstreams[0].transport else { panic!("z is a program") };
        assert_eq!((z.command.as_str(), z.cwd.as_deref()), ("conf/bin/z", Some(Path::new("conf/work"))));
        let Ok(Transport::Stdio(a)) = &config.upstreams[1].transport else { panic!("a is a program") };
        assert_eq!((a.command.as_str(), &a.args[..]), ("a", &["1".to_owned()][..]));
        assert_eq!(a.env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["PATH=/bin", "TOKEN=1"]);
        assert_eq!(config.upstreams[1].handshake, Duration::from_millis(1500));
    }

    #[test]
    fn what_is_wrong_in_a_table_that_may_be_left_out_is_said_at_its_place() {
        let loaded = toml(
            r#"
version = 1
pins = "enforced"
skills = [{ path = "x", trust = "half" }]
[audit]
file = "a"
max-bytes = 5
[trust.untrusted]
load = "maybe"
[http.auth]
token = "x"
[http.auth.issuers.corp]
audiance = "y"
issuer = "https://id.example"
[upstreams.a.oauth]
grant = "password"
"#,
        );
        insta::assert_snapshot!(show(&loaded.findings), @r#"
        conf/gatekey.toml:3:1: error[config-invalid]: `pins`: "enforced" is not one of "enforce", "warn", "off"
        conf/gatekey.toml:4:25: error[config-invalid]: `skills/0/trust`: "half" is not one of "untrusted", "user", "verified", "trusted"
        conf/gatekey.toml:7:1: error[config-invalid]: `audit/max-bytes`: 5 is less than the minimum of 1024
        conf/gatekey.toml:9:1: error[config-invalid]: `trust/untrusted/load`: "maybe" is not one of "allow", "ask", "refuse"
        conf/gatekey.toml:11:1: error[config-invalid]: unknown member `token`
          hint: did you mean `tokens`?
        conf/gatekey.toml:13:1: error[config-invalid]: unknown member `audiance`
          hint: did you mean `audience`?
        conf/gatekey.toml:16:1: error[config-invalid]: `upstreams/a/oauth/grant`: "password" is not one of "code", "client"
        "#);
        let hosts = toml("version = 1\nhttp.allowed-hosts = [\"gw.example:8080\", \"https://gw.example\"]\n");
        insta::assert_snapshot!(show(&hosts.findings), @"conf/gatekey.toml:2:42: error[config-invalid]: `https://gw.example` is no host: write its name, with a port or without");
    }

    #[test]
    fn all_findings_of_a_file_come_at_once() {
        let loaded = toml("exposure = \"fast\"\n[upstreams.a]\ncomand = \"x\"\n[[rules]]\nallow = \"x\"\n");
        assert!(loaded.config.is_none());
        insta::assert_snapshot!(show(&loaded.findings), @r#"
        conf/gatekey.toml:1:1: error[config-invalid]: `exposure`: "fast" is not one of "auto", "list", "dispatch"
        conf/gatekey.toml:1:1: error[config-invalid]: `the file`: "version" is a required property
        conf/gatekey.toml:3:1: error[config-invalid]: unknown member `comand`
          hint: did you mean `command`?
        conf/gatekey.toml:5:1: error[config-invalid]: `rules/0/allow`: "x" is not of type "array"
        "#);
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let loaded = toml("version = 2\nnew-thing = 1\n");
        insta::assert_snapshot!(show(&loaded.findings), @r"
        conf/gatekey.toml:1:1: error[config-newer]: `version` is 2, this program reads up to 1
          hint: use a newer gatekey
        ");
    }

    #[test]
    fn what_is_wrong_with_one_upstream_costs_that_upstream() {
        let text = "version = 1\n[upstreams.a]\ncommand = \"x\"\nargs = [\"${UNSET}\", \"${SET\"]\n\
                    [upstreams.b]\n[upstreams.\" c\"]\nurl = \"http://h\"\nheaders = { X = \"a\\nb\" }\n[upstreams.d]\ncommand = \"d\"\n";
        let loaded = toml(text);
        let usable = loaded.config.unwrap().upstreams.into_iter().map(|upstream| upstream.transport.is_ok());
        assert_eq!(usable.collect::<Vec<_>>(), [false, false, false, true]);
        insta::assert_snapshot!(show(&loaded.findings), @r"
        conf/gatekey.toml:4:9: error[config-variable]: upstream `a`: `args.0`: variable `UNSET` is not set
          hint: it is not started; the other upstreams are
        conf/gatekey.toml:4:21: error[config-variable]: upstream `a`: `args.1`: `${` is not closed
          hint: it is not started; the other upstreams are
        conf/gatekey.toml:5:12: error[config-value]: upstream `b`: exactly one of `command` and `url` must be given
          hint: it is not started; the other upstreams are
        conf/gatekey.toml:6:12: error[config-value]: upstream ` c`: a name is not empty and has no blanks around it or control characters
          hint: it is not started; the other upstreams are
        conf/gatekey.toml:8:13: error[config-value]: upstream ` c`: header `X` holds a line end or control character
          hint: it is not started; the other upstreams are
        ");
    }

    #[test]
    fn a_clients_file_is_taken_as_it_is() {
        let text = r#"{ // pasted
            "globalShortcut": "x",
            "mcpServers": {
                "b": {"type": "stdio", "command": "b", "args": ["1"], "timeout": 5, "alwaysAllow": []},
                "off": {"command": "x", "disabled": true},
                "a": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${SET}"}},
            },
        }"#;
        let loaded = load_text(Path::new("mcp.json"), text.into(), &Environment::from([("SET", "1")]));
        assert_eq!(show(&loaded.findings), "");
        let upstreams = loaded.config.unwrap().upstreams;
        assert_eq!(upstreams.iter().map(|upstream| upstream.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let Ok(Transport::Http(endpoint)) = &upstreams[1].transport else { panic!("a is an endpoint") };
        assert_eq!(endpoint.headers["Authorization"], "Bearer 1");
    }
}
