//! An issuer of JWTs in the test's own hands: it signs whatever a test wants, changes its keys, and goes away. Besides, the
//! real one of `tests/real`.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use data_encoding::BASE64URL_NOPAD;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use super::{
    http::{Reply, connections},
    installed,
    proxy::PATIENCE,
    running::Running,
};

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs()
}

/// A key with which tokens are signed.
pub(crate) struct SigningKey {
    id: String,
    pair: Pair,
}

enum Pair {
    Ecdsa(Box<EcdsaKeyPair>),
    Ed(Ed25519KeyPair),
}

impl SigningKey {
    /// A new key on the curve P-256.
    pub(crate) fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key is made");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random);
        Self { id: id.to_owned(), pair: Pair::Ecdsa(Box::new(pair.expect("a key is made"))) }
    }

    /// A new key on the curve Ed25519.
    pub(crate) fn ed25519(id: &str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key is made");
        let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).expect("a key is made");
        Self { id: id.to_owned(), pair: Pair::Ed(pair) }
    }

    fn algorithm(&self) -> &'static str {
        if matches!(self.pair, Pair::Ed(_)) { "EdDSA" } else { "ES256" }
    }

    /// What everybody may know of it.
    pub(crate) fn public(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        match &self.pair {
            Pair::Ecdsa(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y), "kid": self.id, "use": "sig"})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref()), "kid": self.id})
            }
        }
    }

    /// The header that names it.
    pub(crate) fn header(&self) -> Value {
        json!({"alg": self.algorithm(), "kid": self.id, "typ": "JWT"})
    }

    /// A token with this header, signed whatever that says.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned(header, claims);
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).expect("it signs").as_ref().to_vec()
            }
            Pair::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    /// A token.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(&self.header(), claims)
    }
}

/// Header and claims, as they are signed.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

/// What an issuer serves.
#[derive(Default)]
struct Served {
    keys: String,
    is_down: bool,
    /// Paths that were asked for.
    asked: Vec<String>,
}

/// An issuer that runs as long as the test's process.
pub(crate) struct Issuer {
    /// Its identifier.
    pub(crate) url: String,
    served: Arc<Mutex<Served>>,
}

impl Issuer {
    /// With the metadata of RFC 8414, and these keys.
    pub(crate) fn start(keys: &[&SigningKey]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let issuer = Self { url: url.clone(), served: Arc::default() };
        issuer.serve(keys);
        let served = Arc::clone(&issuer.served);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(stream, &url, &served);
            }
        });
        issuer
    }

    /// Has these keys from now on.
    pub(crate) fn serve(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        self.serve_text(json!({"keys": keys}).to_string());
    }

    /// Serves this as its keys from now on.
    pub(crate) fn serve_text(&self, text: String) {
        self.served.lock().unwrap().keys = text;
    }

    /// Goes away or comes back.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.served.lock().unwrap().is_down = is_down;
    }

    /// How often its keys were asked for.
    pub(crate) fn n_asked(&self) -> usize {
        self.served.lock().unwrap().asked.iter().filter(|path| *path == "/keys").count()
    }

    /// Claims that are right for this audience.
    pub(crate) fn claims(&self, name: &str, audience: &str) -> Value {
        json!({"iss": self.url, "sub": name, "aud": audience, "exp": now() + 600})
    }
}

fn answer(mut stream: TcpStream, url: &str, served: &Mutex<Served>) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(size @ 1..) => head.extend_from_slice(&chunk[..size]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut served = served.lock().unwrap();
    served.asked.push(path.clone());
    if served.is_down {
        return;
    }
    let (status, body) = match path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            ("200 OK", json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string())
        }
        "/keys" => ("200 OK", served.keys.clone()),
        _ => ("404 Not Found", String::new()),
    };
    drop(served);
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok();
}

/// The identity provider `oidc-provider-mock`, which makes a new key each time it starts.
pub(crate) struct Provider {
    pub(crate) url: String,
    _running: Running,
}

impl Provider {
    /// Starts it at a port of the system's, or again at the one that it had.
    pub(crate) fn start(port: u16) -> Self {
        let mut command = Command::new(installed().join("venv-oidc/bin/oidc-provider-mock"));
        command.args(["--port", &port.to_string()]).env("NO_COLOR", "1");
        let mut running = Running::start(command);
        let said = running.rest_of("Uvicorn running on ", 2 * PATIENCE);
        let url = said.split_whitespace().next().expect("it says where").to_owned();
        Self { url, _running: running }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("its address has a port")
    }

    /// A user with these claims signs in, as with a browser; returns the JWT that the client is given for `audience`.
    pub(crate) fn sign_in(&self, user: &str, claims: &Value, audience: &str) -> String {
        let put = connections().put(format!("{}/users/{user}", self.url)).header("content-type", "application/json");
        assert_eq!(Reply::to(put.body(claims.to_string())).status, 204);
        let back = "http://127.0.0.1:1/back";
        let mut page = reqwest::Url::parse(&format!("{}/oauth2/authorize", self.url)).expect("it is one");
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", audience),
            ("redirect_uri", back),
            ("scope", "openid"),
        ]);
        let location = reqwest::Url::parse(&agree(page.as_str(), user)).expect("it is one");
        let code = location.query_pairs().find(|(name, _)| name == "code").expect("a code").1.into_owned();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", back),
            ("client_id", audience),
            ("client_secret", "any"),
        ];
        let given = form(&format!("{}/oauth2/token", self.url), &fields);
        given.json()["id_token"].as_str().unwrap_or_else(|| panic!("{given:?}")).to_owned()
    }
}

/// A user signs in at an authorization server's page and agrees; returns the address to which they are sent back.
pub(crate) fn agree(page: &str, user: &str) -> String {
    let agreed = form(page, &[("sub", user)]);
    let location = agreed.header("location");
    assert!(!location.is_empty(), "{agreed:?}");
    location.to_owned()
}

fn form(url: &str, fields: &[(&str, &str)]) -> Reply {
    let builder = reqwest::Client::builder().tls_certs_only(std::iter::empty()).no_proxy();
    let http = builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client needs nothing");
    let mut encoded = reqwest::Url::parse("http://form").expect("it is one");
    encoded.query_pairs_mut().extend_pairs(fields);
    let body = encoded.query().unwrap_or_default().to_owned();
    Reply::to(http.post(url).header("content-type", "application/x-www-form-urlencoded").body(body))
}
