//! An upstream as a child process: one run of it, from start to end.

use std::{io, process::ExitStatus, sync::Arc};

use tokio::{
    task::JoinSet,
    time::{Duration, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    handshake::Memory,
    link::{Ended, Link},
};
use crate::{
    model::{limits::UPSTREAM_QUEUE_BYTES, program::Program},
    wire::{
        child::{Server, StderrRing},
        peer::Peer,
    },
};

/// After one of the two, a server's exit and the end of its stdout, the other is waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(300);

impl Link {
    /// Starts the server and serves it until it ends or `stop`.
    pub(super) async fn serve_process(
        self: &Arc<Self>,
        program: &Program,
        memory: &mut Memory,
        stop: &CancellationToken,
    ) -> Ended {
        let (mut server, pipes) = match Server::spawn(program, Arc::clone(&self.shared.guard)) {
            Ok(started) => started,
            Err(error) => return Ended::early(spawn_reason(program, &error)),
        };
        let peer = Arc::new(Peer::new(UPSTREAM_QUEUE_BYTES));
        let stderr = StderrRing::default();
        let mut io = JoinSet::new();
        io.spawn({
            let peer = Arc::clone(&peer);
            async move { drop(peer.outbox().write_to(pipes.stdin).await) }
        });
        let (closing, mut closed) = tokio::sync::oneshot::channel::<()>();
        io.spawn({
            let (link, peer) = (Arc::clone(self), Arc::clone(&peer));
            async move {
                link.read(&peer, pipes.stdout).await;
                drop(closing);
            }
        });
        io.spawn({
            let stderr = stderr.clone();
            async move { stderr.fill(pipes.stderr).await }
        });
        io.spawn(Arc::clone(self).sweep(Arc::clone(&peer)));

        let was_unknown = *memory == Memory::Unknown;
        let life = self.live(&peer, memory);
        tokio::pin!(life);
        let outcome = tokio::select! {
            () = stop.cancelled() => None,
            reason = &mut life => Some(reason),
            status = server.wait() => {
                // What it wrote before it ended is still in the pipe.
                timeout(LAST_WORDS, &mut closed).await.ok();
                Some(exit_reason(status))
            }
            _closed = &mut closed => {
                let status = timeout(LAST_WORDS, server.wait()).await;
                Some(status.map_or_else(|_running| "it closed the connection".into(), exit_reason))
            }
        };
        let boxed = if program.sandbox.is_some() { ", in its sandbox" } else { "" };
        let outcome = outcome.map(|reason| format!("{reason}{boxed}"));
        let reason = match (outcome, stderr.last()) {
            (None, _) => "gatekey is stopping".to_owned(),
            (Some(reason), None) => reason,
            (Some(reason), Some(line)) => format!("{reason}; its last line on stderr: {line}"),
        };
        let was_ready = self.withdraw(&reason);
        // Answered before the process is ended, which may take a while.
        self.lose(&peer, &reason);
        server.end().await;
        io.shutdown().await;
        Ended { reason, was_ready, was_probed: was_unknown && !was_ready }
    }
}

fn spawn_reason(program: &Program, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir()) => {
            "its working folder does not exist".into()
        }
        io::ErrorKind::NotFound => format!("there is no program `{}`", program.command),
        _ => format!("program `{}` cannot be started: {error}", program.command),
    }
}

fn exit_reason(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match status.code() {
            Some(code) => format!("it exited with code {code}"),
            None => format!("it was ended: {status}"),
        },
        Err(error) => format!("it is lost: {error}"),
    }
}
