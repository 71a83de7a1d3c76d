//! The guard: a process of our own that ends the process groups of our children when we are gone, however we went. It
//! holds a pipe from us; the pipe's end is the sign. A parent-death signal would reach direct children on Linux only.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, PipeWriter, Write as _},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::process::{Child, Command};
use tracing::warn;

use super::group;
use crate::model::limits::BACKOFF_FIRST;

/// Name of the hidden command that [`run`] is behind.
pub const COMMAND: &str = "__guard";
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1_000);

/// What the guard is to know.
#[derive(Debug, Default)]
pub struct Guard {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeSet<u32>,
    /// Our end of the pipe.
    pipe: Option<PipeWriter>,
    is_closed: bool,
}

impl Guard {
    /// Starts the guard from this very program; must be called within a runtime.
    ///
    /// # Errors
    /// The program cannot be found or started.
    pub fn start(&self) -> io::Result<Child> {
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        let (reader, pipe) = io::pipe()?;
        let mut command = Command::new(program);
        command.arg(COMMAND).stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own, so that Ctrl-C and a group kill of ours do not reach it.
        #[cfg(unix)]
        command.process_group(0);
        let process = command.spawn()?;
        let mut state = self.state();
        state.pipe = Some(pipe);
        for group in state.groups.clone() {
            state.tell('+', group);
        }
        Ok(process)
    }

    /// Starts another guard whenever somebody ended `process`, until [`Guard::close`].
    ///
    /// # Cancel safety
    /// Dropped, it leaves the guard running.
    pub async fn keep(self: Arc<Self>, mut process: Child) {
        loop {
            let status = process.wait().await;
            if self.state().is_closed {
                return;
            }
            warn!(?status, "the guard of child processes was ended, starting another");
            process = match self.start() {
                Ok(process) => process,
                Err(error) => return warn!(%error, "the guard of child processes cannot be started"),
            };
            tokio::time::sleep(BACKOFF_FIRST).await;
        }
    }

    /// Watches over a process group.
    pub fn add(&self, group: u32) {
        let mut state = self.state();
        state.groups.insert(group);
        state.tell('+', group);
    }

    /// The group is gone; its number may be used by others from now on.
    pub fn remove(&self, group: u32) {
        let mut state = self.state();
        state.groups.remove(&group);
        state.tell('-', group);
    }

    /// Lets the guard end what is left, and itself.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.pipe = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, sign: char, group: u32) {
        if let Some(pipe) = &mut self.pipe {
            // A few bytes into a pipe that is read at once. A guard that somebody ended has a successor soon, which is
            // told all of it.
            drop(pipe.write_all(format!("{sign}{group}\n").as_bytes()));
        }
    }
}

/// Reads `+group` and `-group` lines until the pipe ends, then ends the groups that are left.
pub fn run(input: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        let number = |text: &str| text.parse::<u32>().ok();
        if let Some(group) = line.strip_prefix('+').and_then(number) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(number) {
            groups.remove(&group);
        }
    }
    end(&groups);
}

fn end(groups: &BTreeSet<u32>) {
    for id in groups {
        group::terminate(*id);
    }
    let deadline = Instant::now() + GRACE;
    while groups.iter().any(|id| group::is_alive(*id)) && Instant::now() < deadline {
        pause();
    }
    for id in groups {
        group::kill(*id);
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing tells when a process that is not our child has ended")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
