//! `gatekey proxy`: the main job, over stdio or HTTP.

use tokio::{sync::watch, task::JoinSet};

use super::{
    args::Proxy,
    exit::{Exit, Failed},
    index::keeper,
    output::note,
    setup::{Prepared, block_on, prepare, sent_file},
    signals::Signals,
};
use crate::{
    app::App,
    audit::Audit,
    config::{Environment, Http},
    front::Front,
    model::{diagnostic::Diagnostic, principal::Principal},
    wire::{era::Era, stdio},
};

pub(super) fn run(args: &Proxy) -> Result<Exit, Failed> {
    let Prepared { config, findings, principal, again } = prepare(&args.setup)?;
    for finding in &findings {
        tracing::error!("{finding}");
    }
    block_on(async {
        // Before the first child, so that no signal finds one without us.
        let mut signals = Signals::new()?;
        let (options, limit_bytes) = (config.http.clone(), config.line_limit_bytes);
        let audit = config.audit.as_ref().map(Audit::open).transpose();
        let audit = audit.map_err(|error| Failed::new(Exit::Usage, error))?;
        let mut app = App::start(config, again)?;
        if let Some(audit) = audit {
            app.gateway.begin_audit(audit);
        }
        app.learn();
        app.on_snapshots(keeper(principal.clone()));
        if let Some(file) = sent_file(&Environment::of_process()) {
            app.keep_sent(file);
        }
        let is_news = |finding: &&Diagnostic| finding.is_error() && !findings.contains(finding);
        for finding in app.files().findings.iter().filter(is_news) {
            tracing::error!("{finding}");
        }
        // In a task of its own, so that no message is a reason to look for signals.
        let (signalled, first) = watch::channel(None);
        let mut stopping = JoinSet::new();
        stopping.spawn(async move {
            signalled.send_replace(Some(signals.next().await));
            // The second signal ends us at once; the guard ends what is left.
            signals.next().await
        });
        let mut stop = first.clone();
        let stop = async { drop(stop.wait_for(Option::is_some).await) };
        let transport = match &args.http {
            None => {
                let (input, output) = stdio::open()?;
                Transport::Stdio(input, output)
            }
            Some(address) => {
                Transport::Http(Box::new(listen(&app, address, principal.clone(), options, limit_bytes).await?))
            }
        };
        let serving = async {
            match transport {
                Transport::Stdio(input, output) => app.serve(principal, input, output, stop).await,
                Transport::Http(front) => front.serve(stop).await,
            }
            app.stop().await;
        };
        tokio::select! {
            () = serving => Ok(first.borrow().unwrap_or(Exit::Done)),
            Some(Ok(exit)) = stopping.join_next() => Ok(exit),
        }
    })?
}

/// What clients come by.
enum Transport {
    Stdio(stdio::Input, stdio::Output),
    Http(Box<Front>),
}

/// Listens at `address`, and says where that is.
async fn listen(
    app: &App,
    address: &str,
    principal: Principal,
    options: Http,
    limit_bytes: usize,
) -> Result<Front, Failed> {
    let wrong =
        |error: &dyn std::fmt::Display| Failed::new(Exit::Usage, format!("failed to listen at `{address}`: {error}"));
    let found = tokio::net::lookup_host(address).await.map_err(|error| wrong(&error))?.next();
    let socket = found.ok_or_else(|| wrong(&"there is no such address"))?;
    // Clients are known by what they ask themselves; whatever any of them can do, an upstream may ask for.
    let all = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;
    app.pool.introduce(Era::Modern, all);
    if !socket.ip().is_loopback() {
        tracing::warn!(%socket, "whoever reaches this address is served: put something before it that knows its users");
    }
    let front = Front::bind(socket, std::sync::Arc::clone(&app.gateway), principal, options, limit_bytes).await;
    let front = front.map_err(|error| wrong(&error))?;
    note(&format!("gatekey listens on http://{}/mcp", front.address()?));
    Ok(front)
}
