//! The signals that end a command which stays.

use super::exit::Exit;

/// Listens for them.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for a signal to end; says how we end then.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _signal = self.interrupt.recv() => Exit::Interrupted,
            _signal = self.terminate.recv() => Exit::Done,
        }
    }
}

/// Listens for them.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> Exit {
        tokio::signal::ctrl_c().await.ok();
        Exit::Interrupted
    }
}
