//! Attacks by tokens, besides those of `auth.rs` and `auth_jwt.rs`: tokens in odd places, JWTs that say where their keys are,
//! and those that are nearly right.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    attack_http::{INITIALIZE, PING, call_line, guarded, in_session, only_the_last_call_ran},
    attack_limits::log_is_clean,
    auth::token,
};
use crate::support::{
    cases::Case,
    http::{Reply, connections, post},
    issuer::{Issuer, SigningKey},
    process::proxy_of,
    proxy::Proxy,
    wait_until,
    ways::Way,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_token_in_any_place_but_its_own() {
    let (case, config) = guarded();
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    let session = proxy.http().session.clone().unwrap();
    let put = call_line(7, "put", &json!({"access_token": ann, "_meta": {"authorization": format!("Bearer {ann}")}}));
    for (name, value) in [
        ("cookie", format!("access_token={ann}; authorization=Bearer {ann}")),
        ("x-api-key", ann.clone()),
        ("x-access-token", ann.clone()),
        ("x-forwarded-authorization", format!("Bearer {ann}")),
        ("proxy-authorization", format!("Bearer {ann}")),
        ("x-forwarded-user", "ann".to_owned()),
        ("x-remote-user", "ann".to_owned()),
        ("sec-websocket-protocol", format!("bearer, {ann}")),
        ("authorization", ann.clone()),
        ("authorization", format!("Basic {ann}")),
        ("authorization", format!("Bearer: {ann}")),
        ("authorization", format!("Bearer Bearer {ann}")),
        ("authorization", format!("Bearer {ann} {ann}")),
        ("authorization", format!("Bearer {ann},Bearer {ann}")),
        ("authorization", format!("Bearer token=\"{ann}\"")),
        ("authorization", format!("Bearer\t{ann}")),
    ] {
        let request = post(&connections(), proxy.url(), &put).header("mcp-session-id", &session).header(name, &value);
        let reply = Reply::to(request);
        assert_eq!(reply.status, 401, "{name}: {value}: {reply:?}");
    }
    for query in [
        format!("token={ann}"),
        format!("authorization=Bearer%20{ann}"),
        format!("Access_Token={ann}"),
        format!("x=1&access%5ftoken={ann}"),
    ] {
        let url = format!("{}?{query}", proxy.url());
        let reply = Reply::to(post(&connections(), &url, &put).header("mcp-session-id", &session));
        assert!([400, 401].contains(&reply.status), "{query}: {reply:?}");
    }
    only_the_last_call_ran(&case, &mut proxy);
    assert!(!proxy.stderr().contains(&ann), "it is in no log");
}

#[test]
fn a_jwt_that_says_where_its_key_is() {
    let (own, evil) = (SigningKey::new("one"), SigningKey::new("one"));
    let (issuer, theirs) = (Issuer::start(&[&own]), Issuer::start(&[&evil]));
    let case = Case::talks(&["talks"]);
    let table = format!("[http.auth.issuers.corp]\nissuer = {}", json!(issuer.url));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&case.own_config(&format!("start-wait-ms = 20000\n{table}"))));
    let claims = issuer.claims("ann", proxy.url());
    let shown = |token: &str| Reply::to(post(&connections(), proxy.url(), INITIALIZE).bearer_auth(token)).status;
    assert_eq!(shown(&own.sign(&claims)), 200);
    let keys = format!("{}/keys", theirs.url);
    for (member, value) in [
        ("jku", json!(keys)),
        ("x5u", json!(keys)),
        ("jwk", evil.public()),
        ("x5c", json!(["MIIB"])),
        ("kid", json!(keys)),
        ("kid", json!("../../../../dev/null")),
        ("kid", json!("one' OR '1'='1")),
        ("kid", json!("one\u{0}")),
        ("kid", json!("x".repeat(8_000))),
        ("kid", json!(7)),
        ("kid", json!(["one"])),
        ("typ", json!("JWE")),
        ("cty", json!("JWT")),
        ("b64", json!(false)),
        ("crit", json!(["b64"])),
        ("alg", json!("es256")),
        ("alg", json!(["ES256"])),
        ("zip", json!("DEF")),
    ] {
        let mut header = evil.header();
        header[member] = value.clone();
        assert_eq!(shown(&evil.sign_as(&header, &claims)), 401, "{member}: {value}");
    }
    let mut of_them = claims.clone();
    of_them["iss"] = json!(theirs.url);
    for issuer in [
        json!(theirs.url),
        json!([issuer.url, theirs.url]),
        json!({"url": issuer.url}),
        json!(format!("{}#{}", issuer.url, theirs.url)),
    ] {
        of_them["iss"] = issuer;
        assert_eq!(shown(&evil.sign(&of_them)), 401, "{of_them}");
    }
    assert_eq!(theirs.n_asked(), 0, "nobody asks where a token says");
}

#[test]
fn a_jwt_whose_audience_or_times_are_nearly_right() {
    let key = SigningKey::new("one");
    let issuer = Issuer::start(&[&key]);
    let case = Case::talks(&["talks"]);
    let table = format!("[http.auth.issuers.corp]\nissuer = {}", json!(issuer.url));
    let proxy = Proxy::spawn_in(Way::Http, proxy_of(&case.own_config(&format!("start-wait-ms = 20000\n{table}"))));
    let good = issuer.claims("ann", proxy.url());
    let shown =
        |claims: &Value| Reply::to(post(&connections(), proxy.url(), INITIALIZE).bearer_auth(key.sign(claims))).status;
    assert_eq!(shown(&good), 200);
    let url = proxy.url();
    let elsewhere = url.replace("127.0.0.1", "127.0.0.1.evil.example");
    for (member, value) in [
        ("aud", json!(url.to_uppercase())),
        ("aud", json!(format!("{url}/"))),
        ("aud", json!(format!("{url}?"))),
        ("aud", json!(format!("{url}#"))),
        ("aud", json!(url.replace("http://", "https://"))),
        ("aud", json!(url.replace("http://", "http://ann@"))),
        ("aud", json!(url.trim_end_matches("/mcp"))),
        ("aud", json!(elsewhere)),
        ("aud", json!(format!(" {url}"))),
        ("aud", json!([[url]])),
        ("aud", json!({"0": url})),
        ("aud", json!([])),
        ("aud", json!("*")),
        ("aud", Value::Null),
        ("exp", json!("9999999999")),
        ("exp", json!(-1)),
        ("exp", json!(0)),
        ("exp", json!(true)),
        ("exp", json!([9_999_999_999_u64])),
        ("nbf", json!(9_999_999_999_u64)),
        ("nbf", json!("tomorrow")),
        ("sub", json!("")),
        ("sub", json!(["ann"])),
        ("sub", json!("x".repeat(5_000))),
        ("sub", json!("ann\u{0}")),
        ("sub", json!("\u{1b}[31mann")),
    ] {
        let mut claims = good.clone();
        claims[member] = value.clone();
        assert_eq!(shown(&claims), 401, "{member}: {value}");
    }
    log_is_clean(&proxy.stderr());
}

#[test]
fn many_wrong_tokens_beside_a_right_one() {
    let (case, config) = guarded();
    let ann = token(&config, "ann", &[]);
    let mut proxy = Proxy::spawn_in(Way::Http, proxy_of(&config)).with_bearer(&ann).greeted();
    proxy.load("talks");
    let http = connections();
    let begun = Instant::now();
    for number in 0..300_u32 {
        let guess = format!("gk_{:0>43}", number.wrapping_mul(2_654_435_761));
        assert_eq!(Reply::to(post(&http, proxy.url(), INITIALIZE).bearer_auth(guess)).status, 401);
    }
    assert!(begun.elapsed() < 5 * SECOND, "nobody is held up: {:?}", begun.elapsed());
    wait_until("the right one is served", SECOND, || Reply::to(in_session(proxy.http(), PING)).status == 200);
    only_the_last_call_ran(&case, &mut proxy);
}
