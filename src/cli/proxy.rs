//! `gatekey proxy`: the main job, over stdio.

use std::cell::Cell;

use tokio_util::sync::CancellationToken;

use super::{
    args::Proxy,
    exit::{Exit, Failed},
    setup::{Prepared, block_on, guard, prepare},
};
use crate::{app::App, wire::stdio};

pub(super) fn run(args: &Proxy) -> Result<Exit, Failed> {
    let Prepared { config, findings, principal } = prepare(&args.setup)?;
    for finding in &findings {
        tracing::error!("{finding}");
    }
    let guard = guard();
    block_on(async {
        // Both before the first child, so that no signal finds one without us.
        let mut signals = Signals::new()?;
        let (input, output) = stdio::open()?;
        let app = App::start(config, guard)?;
        for finding in app.files.findings.iter().filter(|finding| finding.is_error()) {
            tracing::error!("{finding}");
        }
        let first = CancellationToken::new();
        let exit = Cell::new(Exit::Done);
        let serving = async {
            app.serve(principal, input, output, first.cancelled()).await;
            app.stop().await;
        };
        let stopping = async {
            exit.set(signals.next().await);
            first.cancel();
            // The second signal ends us at once; the guard ends what is left.
            exit.set(signals.next().await);
        };
        tokio::select! {
            () = serving => {}
            () = stopping => {}
        }
        Ok(exit.get())
    })?
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for a signal to end; says how we end then.
    async fn next(&mut self) -> Exit {
        tokio::select! {
            _signal = self.interrupt.recv() => Exit::Interrupted,
            _signal = self.terminate.recv() => Exit::Done,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Exit {
        tokio::signal::ctrl_c().await.ok();
        Exit::Interrupted
    }
}
