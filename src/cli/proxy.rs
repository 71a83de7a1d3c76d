//! `gatekey proxy`: the main job, over stdio or HTTP.

use std::net::SocketAddr;

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
    auth::Auth,
    config::{self, Config, Environment, Http},
    front::{Clients, Front},
    model::{diagnostic::Diagnostic, principal::Principal},
    wire::{era::Era, stdio},
};

pub(super) fn run(args: &Proxy) -> Result<Exit, Failed> {
    let Prepared { config, findings, principal, again } = prepare(&args.setup)?;
    for finding in &findings {
        tracing::error!("{finding}");
    }
    block_on(async {
        // Before anything is started that would have to be ended again.
        let listening = match &args.http {
            Some(address) => Some(Listening::prepare(args, address, principal.clone(), &config).await?),
            None => None,
        };
        // Before the first child, so that no signal finds one without us.
        let mut signals = Signals::new()?;
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
        let transport = match listening {
            None => {
                let (input, output) = stdio::open()?;
                Transport::Stdio(input, output)
            }
            Some(listening) => Transport::Http(Box::new(listening.listen(&app).await?)),
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

/// Where clients over HTTP come to, and who of them may.
struct Listening {
    socket: SocketAddr,
    clients: Clients,
    options: Http,
    limit_bytes: usize,
}

impl Listening {
    /// Finds the address, and refuses one that others reach where nobody asks who they are.
    async fn prepare(args: &Proxy, address: &str, principal: Principal, config: &Config) -> Result<Self, Failed> {
        let found = tokio::net::lookup_host(address).await.map_err(|error| wrong(address, &error))?.next();
        let socket = found.ok_or_else(|| wrong(address, &"there is no such address"))?;
        let (options, limit_bytes) = (config.http.clone(), config.line_limit_bytes);
        let clients = match &options.auth {
            Some(auth) => Clients::Known(Box::new(known(auth, args, &socket)?)),
            None if socket.ip().is_loopback() => Clients::Everyone(principal),
            None if args.unauthenticated_network => {
                tracing::warn!(%socket, "whoever reaches this address is served: put something before it that knows its users; names by which clients reach it go into `allowed-hosts`");
                Clients::Everyone(principal)
            }
            None => {
                let hint = "say in the config's table `[http.auth]` who may come, or serve everybody with `--unauthenticated-network`";
                return Err(wrong(address, &"others reach it, and nobody asks who they are").hint(hint));
            }
        };
        Ok(Self { socket, clients, options, limit_bytes })
    }

    /// Listens, and says where that is.
    async fn listen(self, app: &App) -> Result<Front, Failed> {
        let Self { socket, clients, options, limit_bytes } = self;
        // Clients are known by what they ask themselves; whatever any of them can do, an upstream may ask for.
        let all = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;
        app.pool.introduce(Era::Modern, all);
        let front = Front::bind(socket, std::sync::Arc::clone(&app.gateway), clients, options, limit_bytes).await;
        let front = front.map_err(|error| wrong(&socket.to_string(), &error))?;
        note(&format!("gatekey listens on http://{}/mcp", front.address()?));
        Ok(front)
    }
}

fn wrong(address: &str, why: &dyn std::fmt::Display) -> Failed {
    Failed::new(Exit::Usage, format!("failed to listen at `{address}`: {why}"))
}

/// Those who show that they may come.
fn known(auth: &config::Auth, args: &Proxy, socket: &SocketAddr) -> Result<Auth, Failed> {
    if args.setup.principal.is_some() {
        let hint = "leave out `--as`, or the config's table `[http.auth]`";
        return Err(Failed::new(Exit::Usage, "`--as` says who is calling, and so do clients themselves").hint(hint));
    }
    if !auth.issuers.is_empty() && auth.resource.is_none() && !socket.ip().is_loopback() {
        let hint =
            "write `resource = \"https://…/mcp\"` into the config's table `[http.auth]`: what clients reach it by";
        return Err(Failed::new(Exit::Usage, "JWTs must name this server, and it has no name").hint(hint));
    }
    if socket.ip().is_unspecified() && auth.resource.is_none() {
        tracing::warn!(
            "clients are told that this server is at {socket}: write `resource` into `[http.auth]`, and its host into `allowed-hosts`"
        );
    }
    Auth::new(auth).map_err(|error| Failed::new(Exit::Invalid, error))
}
