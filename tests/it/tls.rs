//! HTTPS with certificates of one's own: what `ca-file` names is trusted, and nothing else is.

use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    http::{Reply, connections, post},
    issuer::{SigningKey, now},
    process::proxy_of,
    proxy::{PATIENCE, Proxy, text_of},
    root,
    running::Running,
    ways::Way,
};

/// A server over HTTPS, and the certificate of who vouches for it.
struct Secure {
    scratch: TempDir,
    _server: Running,
    base: String,
}

impl Secure {
    fn start(arguments: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        std::fs::write(scratch.path().join("own.pem"), own.pem() + &key.serialize_pem()).unwrap();
        std::fs::write(scratch.path().join("ca.pem"), authority.pem()).unwrap();
        let mut command = Command::new("python3");
        command.arg(root().join("tests/cases/vault/server.py")).args(arguments);
        command.arg("--journal").arg(scratch.path().join("journal.jsonl"));
        command.arg("--tls").arg(scratch.path().join("own.pem")).current_dir(scratch.path());
        let mut server = Running::start(command);
        let port = server.rest_of_line("listening ", 3 * PATIENCE);
        Self { scratch, _server: server, base: format!("https://localhost:{port}") }
    }

    /// A gatekey with this config.
    fn gatekey(&self, way: Way, text: &str) -> Proxy {
        let config = self.scratch.path().join("gatekey.toml");
        let text = format!("version = 1\nstart-wait-ms = 20000\nsearch.encoder = \"off\"\n{text}");
        std::fs::write(&config, text).unwrap();
        Proxy::spawn_in(way, proxy_of(&config))
    }

    fn upstream(&self, more: &str) -> String {
        format!("[upstreams.vault]\nurl = \"{}/mcp\"\n{more}", self.base)
    }

    fn was_reached(&self) -> bool {
        std::fs::read_to_string(self.scratch.path().join("journal.jsonl")).is_ok_and(|journal| !journal.is_empty())
    }
}

#[test]
fn a_server_is_trusted_by_the_certificates_that_the_config_names_and_not_without() {
    let secure = Secure::start(&["--key", "ann=secret"]);
    let headers = "headers = { Authorization = \"secret\" }\n";
    let mut proxy = secure.gatekey(Way::Stdio, &secure.upstream(headers)).greeted();
    let refused = proxy.call("whoami", json!({}));
    assert!(text_of(&refused).to_lowercase().contains("certificate"), "{refused}");
    assert!(!secure.was_reached(), "a header with a secret goes to nobody who is not known");

    let mut proxy = secure.gatekey(Way::Stdio, &secure.upstream(&format!("{headers}ca-file = \"ca.pem\""))).greeted();
    proxy.load("vault");
    assert_eq!(text_of(&proxy.call("whoami", json!({}))), "ann");
}

#[test]
fn so_is_the_authorization_server() {
    let secure = Secure::start(&["--own", "--client", "gate:s3cr3t"]);
    let oauth =
        "ca-file = \"ca.pem\"\noauth = { grant = \"client\", client-id = \"gate\", client-secret = \"s3cr3t\" }";
    let mut proxy = secure.gatekey(Way::Stdio, &secure.upstream(oauth)).greeted();
    proxy.load("vault");
    assert_eq!(text_of(&proxy.call("whoami", json!({}))), "client");
}

#[test]
fn so_is_an_issuer_of_jwts() {
    let key = SigningKey::new("one");
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, json!({"keys": [key.public()]}).to_string()).unwrap();
    let secure = Secure::start(&["--key", "ann=secret", "--jwks", keys.to_str().unwrap()]);
    for (ca_file, status) in [("", 503), ("ca-file = \"ca.pem\"\n", 200)] {
        let issuer =
            format!("[http.auth.issuers.corp]\nissuer = \"{0}\"\njwks-url = \"{0}/keys\"\n{ca_file}", secure.base);
        let upstream = secure.upstream("headers = { Authorization = \"secret\" }\nca-file = \"ca.pem\"");
        let proxy = secure.gatekey(Way::Http, &format!("{issuer}{upstream}"));
        let claims = json!({"iss": secure.base, "sub": "ann", "aud": proxy.url(), "exp": now() + 600});
        let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
        let request = post(&connections(), proxy.url(), &greeting.to_string()).bearer_auth(key.sign(&claims));
        let reply = Reply::to(request);
        assert_eq!(reply.status, status, "{ca_file}: {}", reply.body);
    }
}
