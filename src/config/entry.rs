//! One upstream's table: how it is started or reached, what it may reach, and by whose right it is called. What is wrong with
//! it costs this upstream.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use indexmap::IndexMap;

use super::{
    config::{Transport, Upstream},
    load::Reader,
    raw::{RawGrant, RawOAuth, RawSandbox, RawUpstream},
};
use crate::model::{
    diagnostic::Diagnostic,
    hidden::visible,
    limits,
    name::UpstreamName,
    program::{Endpoint, Grant, OAuth, Program, Sandbox},
    source::escaped,
};

/// What every child gets: where programs, homes, texts and certificates are found. Tokens are never among these.
const USUAL_ENV: &[&str] = &[
    "APPDATA",
    "COLORTERM",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Headers that are about one connection, besides those that begin with `mcp-` and `content-`.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "connection",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "origin",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads the table of the upstream called `name`; what is wrong with it is among the reader's findings.
pub(super) fn upstream(reader: &mut Reader<'_>, name: String, raw: RawUpstream) -> Upstream {
    let pointer = format!("/{}/{}", reader.member, escaped(&name));
    let mut entry = Entry { reader, name: &name, pointer, reasons: Vec::new() };
    let transport = entry.transport(&raw);
    let reasons = entry.reasons;
    let milliseconds = |given: Option<u64>, usual| given.map_or(usual, Duration::from_millis);
    Upstream {
        transport: if reasons.is_empty() { transport } else { Err(reasons.join("; ")) },
        name: UpstreamName::new(name),
        prefix: raw.prefix,
        handshake: milliseconds(raw.handshake_timeout_ms, limits::HANDSHAKE),
        call_idle: milliseconds(raw.call_idle_timeout_ms, limits::CALL_IDLE),
        call_total: milliseconds(raw.call_timeout_ms, limits::CALL_TOTAL),
    }
}

/// Goes through one upstream of a raw config.
struct Entry<'r, 'a> {
    reader: &'r mut Reader<'a>,
    name: &'r str,
    pointer: String,
    /// Why it cannot be used.
    reasons: Vec<String>,
}

impl Entry<'_, '_> {
    fn transport(&mut self, raw: &RawUpstream) -> Result<Transport, String> {
        if let Some(fault) = UpstreamName::new(self.name).fault() {
            self.refuse("config-value", "", &fault);
        }
        if raw.prefix.chars().count() > limits::NAME_CHARS / 2 || raw.prefix.trim() != raw.prefix {
            let rule = format!("has at most {} characters and no blanks around it", limits::NAME_CHARS / 2);
            self.refuse("config-value", "/prefix", &format!("`prefix` {rule}"));
        }
        match (&raw.command, &raw.url) {
            (Some(command), None) => {
                if !raw.caller_headers.is_empty() || raw.oauth.is_some() {
                    self.refuse("config-value", "", "`caller-headers` and `oauth` are for servers over HTTP");
                }
                Ok(Transport::Stdio(self.program(command, raw)))
            }
            (None, Some(url)) => {
                if raw.sandbox.is_some() {
                    self.refuse("config-value", "/sandbox", "`sandbox` is for servers over stdio");
                }
                Ok(Transport::Http(self.endpoint(url, raw)))
            }
            _ => {
                self.refuse("config-value", "", "exactly one of `command` and `url` must be given");
                Err(String::new())
            }
        }
    }

    fn program(&mut self, command: &str, raw: &RawUpstream) -> Program {
        let mut command = self.expand(command, "/command");
        if command.contains(std::path::is_separator) {
            command = self.reader.folder.join(command).to_string_lossy().into_owned();
        }
        let args = raw.args.iter().enumerate().map(|(index, arg)| self.expand(arg, &format!("/args/{index}")));
        let args = args.collect();
        let is_inherited = |name: &str| is_usual(name) || raw.inherit_env.iter().any(|wanted| wanted == name);
        let mut env = self.reader.environment.some(is_inherited);
        env.extend(self.texts(&raw.env, "/env"));
        let cwd = raw.cwd.as_ref().map(|cwd| self.reader.folder.join(self.expand(cwd, "/cwd")));
        let sandbox = raw.sandbox.as_ref().map(|raw| self.sandbox(raw));
        Program { command, args, env, cwd, sandbox }
    }

    fn sandbox(&mut self, raw: &RawSandbox) -> Sandbox {
        if !cfg!(target_os = "linux") {
            self.refuse("sandbox-unavailable", "/sandbox", "this system has no sandbox; only Linux has");
        }
        let mut paths = |raw: &[String], member: &str| -> Vec<PathBuf> {
            let path = |(index, path): (usize, &String)| {
                let pointer = format!("/sandbox/{member}/{index}");
                let path = self.reader.folder.join(self.expand(path, &pointer));
                if !path.exists() {
                    // It would not be started either, and somebody may mean another place.
                    let reason = format!("`{}` of its sandbox is not there", path.display());
                    self.refuse("config-value", &pointer, &reason);
                }
                path
            };
            raw.iter().enumerate().map(path).collect()
        };
        Sandbox { read: paths(&raw.read, "read"), write: paths(&raw.write, "write"), network: raw.network.0.clone() }
    }

    fn endpoint(&mut self, url: &str, raw: &RawUpstream) -> Endpoint {
        let url = self.expand(url, "/url");
        if !url.starts_with("http://") && !url.starts_with("https://") {
            self.refuse("config-value", "/url", "`url` must start with `http://` or `https://`");
        }
        let headers = self.texts(&raw.headers, "/headers");
        for (name, from) in &raw.caller_headers {
            let pointer = format!("/caller-headers/{}", escaped(name));
            let faults =
                [name, from].map(|name| header_fault(name).map(|fault| format!("`{}`: {fault}", visible(name))));
            if let Some(fault) = faults.iter().flatten().next() {
                self.refuse("config-value", &pointer, fault);
            } else if from.eq_ignore_ascii_case("authorization") {
                let reason = "callers' `Authorization` is meant for gatekey, so it goes to no server: let them send another header";
                self.refuse("config-value", &pointer, reason);
            }
        }
        let caller_headers = raw.caller_headers.iter().map(|(name, from)| (name.clone(), from.clone())).collect();
        let oauth = raw.oauth.as_ref().map(|raw| self.oauth(raw));
        let has_both = oauth.as_ref().is_some_and(|oauth| oauth.is_per_caller) && !raw.caller_headers.is_empty();
        if has_both {
            self.refuse("config-value", "/caller-headers", "callers either bring headers or log in");
        }
        let has_token = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_token && oauth.as_ref().is_some_and(|oauth| !oauth.is_per_caller) {
            self.refuse("config-value", "/headers", "`oauth` sets the header `Authorization`");
        }
        for (name, value) in &headers {
            if value.chars().any(|c| c.is_control() && c != '\t') {
                let pointer = format!("/headers/{}", escaped(name));
                self.refuse(
                    "config-value",
                    &pointer,
                    &format!("header `{name}` holds a line end or control character"),
                );
            }
        }
        let ca_file = raw.ca_file.as_ref().map(|file| self.reader.folder.join(self.expand(file, "/ca-file")));
        Endpoint { url, headers, ca_file, caller_headers, oauth }
    }

    fn oauth(&mut self, raw: &RawOAuth) -> OAuth {
        let mut text = |given: &Option<String>, member: &str| given.as_ref().map(|text| self.expand(text, member));
        let client_id = text(&raw.client_id, "/oauth/client-id");
        let client_secret = text(&raw.client_secret, "/oauth/client-secret");
        if client_secret.is_some() && client_id.is_none() {
            self.refuse("config-value", "/oauth/client-secret", "`client-secret` goes with a `client-id`");
        }
        if raw.grant == RawGrant::Client && (client_secret.is_none() || raw.per_caller) {
            let reason = "the grant `client` takes `client-id` and `client-secret`, and is one for all callers";
            self.refuse("config-value", "/oauth/grant", reason);
        }
        OAuth {
            grant: if raw.grant == RawGrant::Client { Grant::Client } else { Grant::Code },
            client_id,
            client_secret,
            scopes: raw.scopes.clone(),
            is_per_caller: raw.per_caller,
            may_be_private: raw.private_addresses,
            logins: self.reader.environment.data_file("logins.json"),
        }
    }

    fn texts(&mut self, raw: &IndexMap<String, String>, member: &str) -> BTreeMap<String, String> {
        let expand = |(name, value): (&String, &String)| {
            (name.clone(), self.expand(value, &format!("{member}/{}", escaped(name))))
        };
        raw.iter().map(expand).collect()
    }

    fn expand(&mut self, text: &str, member: &str) -> String {
        match self.reader.environment.expand(text) {
            Ok(value) => value,
            Err(error) => {
                let name = member.trim_start_matches('/').replace('/', ".");
                self.refuse("config-variable", member, &format!("`{name}`: {error}"));
                String::new()
            }
        }
    }

    fn refuse(&mut self, code: &'static str, member: &str, reason: &str) {
        let place = self.reader.source.place(&format!("{}{member}", self.pointer));
        let finding = Diagnostic::error(code, format!("upstream `{}`: {reason}", self.name)).at(place);
        self.reader.findings.push(finding.hint("it is not started; the other upstreams are"));
        self.reasons.push(reason.to_owned());
    }
}

/// Why callers cannot bring this header, or a server cannot be sent it: the protocol and the connection have their own.
fn header_fault(name: &str) -> Option<&'static str> {
    let Ok(name) = reqwest::header::HeaderName::try_from(name) else { return Some("this can be no header's name") };
    let name = name.as_str();
    let is_ours = OWN_HEADERS.contains(&name) || name.starts_with("mcp-") || name.starts_with("content-");
    is_ours.then_some("this header is set by gatekey or by HTTP itself")
}

/// Whether every child gets this variable.
pub(super) fn is_usual(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    USUAL_ENV.contains(&upper.as_str()) || upper.starts_with("LC_") || upper.starts_with("XDG_")
}
