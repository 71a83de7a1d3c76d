//! `gatekey login` and `logout`: what servers that want OAuth are told of who is asking. The user goes to the authorization
//! server's page and comes back to an address of this machine.

use std::{net::Ipv4Addr, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    args::{Login as LoginArgs, Logout},
    exit::{Exit, Failed},
    output::Output,
    setup::{block_on, config_file, prepare_from, principal},
};
use crate::{
    config::Transport,
    model::{
        hidden::visible,
        name::{UpstreamName, did_you_mean},
        program::{Endpoint, Grant, OAuth},
    },
    oauth::{Login, Slot},
};

/// Where the user comes back to.
const CALLBACK: &str = "/callback";
/// A user who has not come back after this long has gone away.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// A browser sends its request at once.
const REQUEST: Duration = Duration::from_secs(10);
/// Bytes of a request: codes and states are short.
const REQUEST_BYTES: usize = 16 << 10;

pub(super) fn login(args: &LoginArgs, output: Output) -> Result<Exit, Failed> {
    let (endpoint, oauth, slot) = of_upstream(&args.upstream, args.caller.as_deref(), args.config.clone())?;
    let refused =
        |reason: String| Failed::new(Exit::Upstream, format!("failed to log in at `{}`: {reason}", args.upstream));
    block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
        let listener = listener
            .map_err(|error| Failed::new(Exit::Usage, format!("failed to listen at port {}: {error}", args.port)))?;
        let address = listener.local_addr().map_err(|error| Failed::new(Exit::Internal, error.to_string()))?;
        let redirect = format!("http://127.0.0.1:{}{CALLBACK}", address.port());
        let login = Login::begin(&endpoint, &oauth, slot, &redirect).await.map_err(refused)?;
        output.note(&format!("Open this page, and log in there:\n\n  {}\n", visible(login.page())));
        let waited = timeout(PATIENCE, come_back(&listener, &login, &redirect)).await;
        waited.map_err(|_elapsed| refused("nobody came back".into()))?.map_err(refused)
    })??;
    let of_whom = args.caller.as_ref().map(|caller| format!(" for `{caller}`")).unwrap_or_default();
    match output.is_json {
        true => output.envelope("login", &json!({"upstream": args.upstream, "caller": args.caller}), &[]),
        false => output.note(&format!("logged in at `{}`{of_whom}", args.upstream)),
    }
    Ok(Exit::Done)
}

pub(super) fn logout(args: &Logout, output: Output) -> Result<Exit, Failed> {
    let (_, _, slot) = of_upstream(&args.upstream, args.caller.as_deref(), args.config.clone())?;
    let was_there =
        slot.forget().map_err(|error| Failed::new(Exit::Usage, format!("failed to change the logins: {error}")))?;
    match output.is_json {
        true => output.envelope("logout", &json!({"upstream": args.upstream, "was_logged_in": was_there}), &[]),
        false if was_there => output.note("the login is forgotten here; its tokens may be good until they expire"),
        false => output.note("nobody was logged in"),
    }
    Ok(Exit::Done)
}

/// The upstream of this name, which wants OAuth, and where the login is kept.
fn of_upstream(
    name: &str,
    caller: Option<&str>,
    config: Option<std::path::PathBuf>,
) -> Result<(Endpoint, OAuth, Slot), Failed> {
    let setup = super::args::Setup { upstreams: Vec::new(), config, principal: None };
    let config = prepare_from(&setup, config_file(&setup))?.config;
    if let Some(fault) = caller.and_then(caller_fault) {
        return Err(Failed::new(Exit::Usage, fault));
    }
    // Callers of issuers are known once they come.
    let is_of_issuer = caller.is_some_and(|caller| caller.contains(':'));
    if let Some(caller) = caller.filter(|_| !is_of_issuer) {
        principal(Some(caller), &config)?;
    }
    let Some(upstream) = config.upstreams.iter().find(|upstream| upstream.name.as_str() == name) else {
        let names = config.upstreams.iter().map(|upstream| upstream.name.as_str());
        let close = did_you_mean(name, names);
        let failed = Failed::new(Exit::Usage, format!("the config has no upstream `{}`", visible(name)));
        return Err(match close.first() {
            Some(close) => failed.hint(format!("did you mean `{close}`?")),
            None => failed,
        });
    };
    let endpoint = match &upstream.transport {
        Ok(Transport::Http(endpoint)) => endpoint,
        Ok(Transport::Stdio(_)) => return Err(no_oauth(&upstream.name, "it is a program")),
        Err(reason) => return Err(no_oauth(&upstream.name, reason)),
    };
    let oauth = match &endpoint.oauth {
        Some(oauth) if oauth.grant == Grant::Code => oauth,
        Some(_) => return Err(no_oauth(&upstream.name, "its tokens are got by `client-id` and `client-secret`")),
        None => {
            let hint = format!("add an empty table `[upstreams.{name}.oauth]` to the config");
            return Err(no_oauth(&upstream.name, "the config does not say that it wants OAuth").hint(&hint));
        }
    };
    if caller.is_some() && !oauth.is_per_caller {
        let hint = "leave out `--as`, or add `per-caller = true` to its table `oauth`";
        return Err(no_oauth(&upstream.name, "one login is for all callers").hint(hint));
    }
    let slot = Slot::new(oauth, &endpoint.url, caller).map_err(|reason| Failed::new(Exit::Usage, reason))?;
    Ok((endpoint.clone(), oauth.clone(), slot))
}

fn caller_fault(caller: &str) -> Option<&'static str> {
    let is_odd = caller.trim().is_empty() || caller.chars().any(char::is_control);
    is_odd.then_some("this can be no caller's name")
}

fn no_oauth(upstream: &UpstreamName, why: &str) -> Failed {
    Failed::new(Exit::Usage, format!("nobody logs in at `{upstream}`: {why}"))
}

/// Waits for the one request that ends the login. Others, which any page of a browser could send, end nothing.
async fn come_back(listener: &TcpListener, login: &Login, redirect: &str) -> Result<(), String> {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let target = match timeout(REQUEST, target_of(&mut stream)).await {
            Ok(Some(target)) => target,
            _ => continue,
        };
        let Some(query) = target.strip_prefix(CALLBACK).and_then(|rest| rest.strip_prefix('?')) else {
            say(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        match login.finish(&format!("{redirect}?{query}")).await {
            Ok(()) => {
                say(&mut stream, "200 OK", "You are logged in. You can close this page.").await;
                return Ok(());
            }
            Err(reason) if login.is_of(query) => {
                say(&mut stream, "400 Bad Request", "The login failed; see where it was started.").await;
                return Err(reason);
            }
            Err(_reason) => say(&mut stream, "400 Bad Request", "This is not the login that was started.").await,
        }
    }
}

/// The target of a GET request.
async fn target_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < REQUEST_BYTES {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let first = std::str::from_utf8(&head).ok()?.lines().next()?;
    let mut words = first.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

async fn say(stream: &mut TcpStream, status: &str, text: &str) {
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
    );
    // A browser that went away wants to know nothing.
    stream.write_all(answer.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}
