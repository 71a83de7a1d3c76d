//! JWTs of clients over HTTP: every part that can be wrong, keys that change, issuers that are gone, and a real provider.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    http::{Reply, connections, post},
    issuer::{Issuer, Provider, SigningKey, now, unsigned},
    process::proxy_of,
    proxy::{Proxy, text_of, upstream_names},
    wait_until,
    ways::Way,
};

const SECOND: Duration = Duration::from_secs(1);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;

/// A gatekey that takes JWTs of this issuer, with these lines in the issuer's table and these in the config besides.
fn trusting(url: &str, own: &str, more: &str) -> (Case, Proxy) {
    let case = Case::talks(&["talks"]);
    let issuer = format!("[http.auth.issuers.corp]\nissuer = {}\n{own}", json!(url));
    let config = case.own_config(&format!("start-wait-ms = 20000\n{more}\n{issuer}"));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&config));
    (case, proxy)
}

fn shown(proxy: &Proxy, token: &str) -> Reply {
    Reply::to(post(&connections(), proxy.url(), INITIALIZE).bearer_auth(token))
}

fn status(proxy: &Proxy, token: &str) -> u16 {
    shown(proxy, token).status
}

/// The tools that a client sees once it has loaded them all, by name.
fn tools_of(client: &mut Proxy) -> Vec<String> {
    client.load("talks");
    let mut names: Vec<String> = upstream_names(&client.list()).into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn a_jwt_that_is_wrong_in_any_part_is_refused_as_any_other() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let good = issuer.claims("ann", proxy.url());
    let with = |member: &str, value: Value| {
        let mut claims = good.clone();
        claims[member] = value;
        key.sign(&claims)
    };
    let without = |member: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(member);
        key.sign(&claims)
    };
    let header = |member: &str, value: Value| {
        let mut header = key.header();
        header[member] = value;
        key.sign_as(&header, &good)
    };
    assert_eq!(status(&proxy, &key.sign(&good)), 200);
    assert_eq!(status(&proxy, &with("aud", json!(["https://other.example", proxy.url()]))), 200);
    assert_eq!(status(&proxy, &with("exp", json!(now() - 10))), 200, "clocks may differ a little");

    let signed = key.sign(&good);
    let parts: Vec<&str> = signed.split('.').collect();
    let other = unsigned(&key.header(), &issuer.claims("root", proxy.url()));
    let hs256 = unsigned(&json!({"alg": "HS256", "kid": "one", "typ": "JWT"}), &good);
    let public = key.public();
    let secrets = [public.to_string(), public["x"].as_str().unwrap().to_owned(), String::new()];
    let forged = secrets.map(|secret| {
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), hs256.as_bytes());
        format!("{hs256}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
    });
    let mut own_key = key.header();
    own_key["jwk"] = SigningKey::new("one").public();
    let bad = [
        ("expired", with("exp", json!(now() - 120))),
        ("not yet valid", with("nbf", json!(now() + 120))),
        ("never expires", without("exp")),
        ("expires in words", with("exp", json!("tomorrow"))),
        ("no audience", without("aud")),
        ("another audience", with("aud", json!("https://other.example/mcp"))),
        ("an audience that begins alike", with("aud", json!(format!("{}/x", proxy.url())))),
        ("no issuer", without("iss")),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("an issuer that begins alike", with("iss", json!(format!("{}/", issuer.url)))),
        ("nobody", without("sub")),
        ("a name with a line end", with("sub", json!("ann\r\nx: y"))),
        ("a number for a name", with("sub", json!(7))),
        ("another key of the same id", SigningKey::new("one").sign(&good)),
        ("a key in the token", SigningKey::new("one").sign_as(&own_key, &good)),
        ("an unknown key", SigningKey::new("two").sign(&good)),
        ("another algorithm than the key's", header("alg", json!("ES384"))),
        ("an extension that must be understood", header("crit", json!(["exp"]))),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("alg none", format!("{}.", unsigned(&json!({"alg": "none", "typ": "JWT"}), &good))),
        ("alg None", format!("{}.{}", unsigned(&json!({"alg": "None"}), &good), parts[2])),
        ("other claims under the signature", format!("{other}.{}", parts[2])),
        ("the public key as a secret", forged[0].clone()),
        ("a part of the public key as a secret", forged[1].clone()),
        ("an empty secret", forged[2].clone()),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("five parts", format!("{signed}.{}.{}", parts[1], parts[2])),
    ];
    let mut first: Option<(u16, String, String)> = None;
    for (what, token) in bad {
        let reply = shown(&proxy, &token);
        let answer = (reply.status, reply.header("www-authenticate").to_owned(), reply.body);
        assert_eq!(answer.0, 401, "{what}");
        assert_eq!(*first.get_or_insert_with(|| answer.clone()), answer, "{what}");
        assert!(!proxy.stderr().contains(&token), "{what}: no token is logged");
    }
}

#[test]
fn a_token_without_a_key_id_can_mean_the_only_key_and_keys_of_several_kinds_are_taken() {
    let (ecdsa, ed) = (SigningKey::new("one"), SigningKey::ed25519("two"));
    let issuer = Issuer::start(&[&ecdsa, &ed]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let claims = issuer.claims("ann", proxy.url());
    let nameless = |key: &SigningKey| {
        let mut header = key.header();
        header.as_object_mut().unwrap().remove("kid");
        key.sign_as(&header, &claims)
    };
    for token in [ecdsa.sign(&claims), ed.sign(&claims), nameless(&ecdsa), nameless(&ed)] {
        assert_eq!(status(&proxy, &token), 200);
    }
    let second = SigningKey::new("three");
    let issuer = Issuer::start(&[&ecdsa, &second]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let claims = issuer.claims("ann", proxy.url());
    let mut header = ecdsa.header();
    header.as_object_mut().unwrap().remove("kid");
    assert_eq!(status(&proxy, &ecdsa.sign_as(&header, &claims)), 401, "it could be either");
    assert_eq!(status(&proxy, &second.sign(&claims)), 200);
}

#[test]
fn a_key_that_is_new_is_fetched_and_keys_that_nobody_has_are_not_asked_for_again_and_again() {
    let (old, new) = (SigningKey::new("one"), SigningKey::new("two"));
    let issuer = Issuer::start(&[&old]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let claims = issuer.claims("ann", proxy.url());
    assert_eq!(status(&proxy, &old.sign(&claims)), 200);
    for number in 0..20 {
        assert_eq!(status(&proxy, &SigningKey::new(&format!("made-up-{number}")).sign(&claims)), 401);
    }
    assert!(issuer.n_asked() <= 2, "{} times", issuer.n_asked());
    issuer.serve(&[&new]);
    let (of_old, of_new) = (old.sign(&claims), new.sign(&claims));
    wait_until("the new key is fetched", 10 * SECOND, || status(&proxy, &of_new) == 200);
    assert_eq!(status(&proxy, &of_old), 401, "the old one is withdrawn");
}

#[test]
fn while_an_issuer_is_gone_known_keys_are_used_and_without_any_nobody_is_let_in() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    issuer.set_down(true);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let token = key.sign(&issuer.claims("ann", proxy.url()));
    for _ in 0..3 {
        let reply = shown(&proxy, &token);
        assert_eq!((reply.status, reply.header("www-authenticate")), (503, ""), "{reply:?}");
    }
    issuer.set_down(false);
    wait_until("it is back", 15 * SECOND, || status(&proxy, &token) == 200);
    issuer.set_down(true);
    assert_eq!(status(&proxy, &token), 200);
    assert_eq!(status(&proxy, &SigningKey::new("two").sign(&issuer.claims("ann", proxy.url()))), 401);
    assert_eq!(status(&proxy, &token), 200);
}

#[test]
fn key_sets_that_are_huge_or_no_key_sets_let_nobody_in_and_one_odd_key_costs_the_others_nothing() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    for text in [
        json!({"keys": [key.public()], "x": "x".repeat(1 << 20)}).to_string(),
        "<html>".to_owned(),
        json!({"keys": []}).to_string(),
        json!({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "one"}]}).to_string(),
    ] {
        issuer.serve_text(text);
        let (_case, proxy) = trusting(&issuer.url, "", "");
        assert_eq!(status(&proxy, &key.sign(&issuer.claims("ann", proxy.url()))), 503);
    }
    let odd = [json!(7), json!({}), json!({"kty": "EC", "crv": "P-256"}), json!({"kty": "XX", "kid": "one"})];
    let keys: Vec<Value> = odd.into_iter().chain([key.public()]).collect();
    issuer.serve_text(json!({"keys": keys}).to_string());
    let (_case, proxy) = trusting(&issuer.url, "", "");
    assert_eq!(status(&proxy, &key.sign(&issuer.claims("ann", proxy.url()))), 200);
}

#[test]
fn metadata_of_another_issuer_is_not_believed() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    // The same place by another name.
    let url = issuer.url.replace("127.0.0.1", "localhost");
    let (_case, proxy) = trusting(&url, "", "");
    let mut claims = issuer.claims("ann", proxy.url());
    claims["iss"] = json!(url);
    assert_eq!(status(&proxy, &key.sign(&claims)), 503);
    let keys = format!("jwks-url = {}", json!(format!("{url}/keys")));
    let (_case, proxy) = trusting(&url, &keys, "");
    claims["aud"] = json!(proxy.url());
    assert_eq!(status(&proxy, &key.sign(&claims)), 200);
}

#[test]
fn the_endpoint_of_a_skill_is_an_audience_of_its_own() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let own = proxy.url().replace("/mcp", "/skill/talks/mcp");
    let (whole, one) = (key.sign(&issuer.claims("ann", proxy.url())), key.sign(&issuer.claims("ann", &own)));
    let at = |url: &str, token: &str| Reply::to(post(&connections(), url, INITIALIZE).bearer_auth(token)).status;
    assert_eq!(
        [at(proxy.url(), &whole), at(&own, &whole), at(&own, &one), at(proxy.url(), &one)],
        [200, 200, 200, 401]
    );
}

#[test]
fn a_token_without_a_needed_scope_is_told_which() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let (_case, proxy) = trusting(&issuer.url, "required-scopes = [\"mcp:use\", \"mcp:read\"]", "");
    let mut claims = issuer.claims("ann", proxy.url());
    claims["scope"] = json!("mcp:use other");
    let refused = shown(&proxy, &key.sign(&claims));
    let expected = "Bearer error=\"insufficient_scope\", scope=\"mcp:use mcp:read\", resource_metadata=";
    assert!(refused.status == 403 && refused.header("www-authenticate").starts_with(expected), "{refused:?}");
    claims["scope"] = json!("mcp:read mcp:use");
    assert_eq!(status(&proxy, &key.sign(&claims)), 200);
    let nobody = Reply::to(post(&connections(), proxy.url(), INITIALIZE));
    assert!(nobody.header("www-authenticate").starts_with("Bearer scope=\"mcp:read mcp:use\", "), "{nobody:?}");
    let metadata = proxy.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let told = Reply::to(connections().get(metadata)).json();
    assert_eq!(told["authorization_servers"], json!([issuer.url]));
    assert_eq!(told["scopes_supported"], json!(["mcp:read", "mcp:use"]));
}

#[test]
fn scopes_and_claims_of_a_token_are_the_roles_of_its_caller() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let rules = "[[rules]]\nallow = [\"put\"]\n[[rules]]\nroles = [\"speaker\"]\nallow = [\"say\"]\n\
                 [[rules]]\nroles = [\"worker\"]\nallow = [\"work\"]\n[[rules]]\nprincipals = [\"corp:bob\"]\nallow = [\"nap\"]";
    let own = "roles-claim = \"realm_access.roles\"\nscopes = { \"mcp:work\" = [\"worker\"] }";
    let (_case, proxy) = trusting(&issuer.url, own, rules);
    for (name, more, expected) in [
        ("ann", json!({}), vec!["put"]),
        ("ann", json!({"realm_access": {"roles": ["speaker"]}}), vec!["put", "say"]),
        ("ann", json!({"scope": "mcp:work"}), vec!["put", "work"]),
        ("ann", json!({"roles": ["speaker"]}), vec!["put"]),
        ("bob", json!({}), vec!["nap", "put"]),
        // Neither a token's name nor that of `--as`.
        ("corp:bob", json!({}), vec!["put"]),
    ] {
        let mut claims = issuer.claims(name, proxy.url());
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut client = proxy.another_as(Way::Http, &key.sign(&claims));
        assert_eq!(tools_of(&mut client), expected, "{name} {more}");
    }
}

#[test]
fn streams_end_when_the_token_does_and_its_session_goes_on_with_the_next_one() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let (_case, proxy) = trusting(&issuer.url, "", "");
    let mut claims = issuer.claims("ann", proxy.url());
    // Some seconds are left of what clocks may differ by.
    claims["exp"] = json!(now() - 26);
    let mut ann = proxy.another_as(Way::Http, &key.sign(&claims));
    let session = ann.http().session.clone().unwrap();
    let mut stream = crate::support::http::Stream::open(ann.http().get());
    assert_eq!(stream.next(), None);
    claims["exp"] = json!(now() + 600);
    ann = ann.with_bearer(&key.sign(&claims));
    assert_eq!(ann.http().session.as_deref(), Some(session.as_str()));
    assert_eq!(ann.result("ping", json!({})), json!({}));
}

#[test]
fn a_real_provider_signs_its_users_in_changes_its_keys_and_may_be_down() {
    let provider = Provider::start(0);
    let (port, audience) = (provider.port(), "gatekey-tests");
    let rules = "[[rules]]\nallow = [\"put\"]\n[[rules]]\nroles = [\"speaker\"]\nallow = [\"say\"]";
    let (_case, proxy) = trusting(&provider.url, &format!("audience = {}", json!(audience)), rules);
    let ann = provider.sign_in("ann", &json!({"roles": ["speaker"]}), audience);
    let bob = provider.sign_in("bob", &json!({}), audience);
    for (token, expected) in [(&ann, vec!["put", "say"]), (&bob, vec!["put"])] {
        let mut client = proxy.another_as(Way::Http, token);
        assert_eq!(tools_of(&mut client), expected);
        assert_eq!(text_of(&client.call("put", json!({}))), "put");
    }
    let stray = provider.sign_in("ann", &json!({}), "another-server");
    assert_eq!(status(&proxy, &stray), 401);
    drop(provider);
    assert_eq!(status(&proxy, &ann), 200, "its keys are known");
    let provider = Provider::start(port);
    let renewed = provider.sign_in("ann", &json!({}), audience);
    wait_until("its new key is fetched", 15 * SECOND, || status(&proxy, &renewed) == 200);
    assert_eq!(status(&proxy, &ann), 401, "the key from before is withdrawn");
}
