//! The guard: a process of our own that ends the process groups of our children when we are gone, however we went. It
//! holds a pipe from us; the pipe's end is the sign. A parent-death signal would reach direct children on Linux only.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::group;

/// Name of the hidden command that [`run`] is behind.
pub const COMMAND: &str = "__guard";
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1_000);

/// Our end of the pipe.
#[derive(Debug)]
pub struct Guard {
    process: Mutex<Child>,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Guard {
    /// Starts the guard from this very program.
    ///
    /// # Errors
    /// The program cannot be found or started.
    pub fn start() -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        let mut command = Command::new(program);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        {
            // In a group of its own, so that Ctrl-C and a group kill of ours do not reach it.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { process: Mutex::new(child), pipe: Mutex::new(pipe) })
    }

    /// Watches over a process group.
    pub fn add(&self, group: u32) {
        self.tell('+', group);
    }

    /// The group is gone; its number may be used by others from now on.
    pub fn remove(&self, group: u32) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: u32) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // A few bytes into a pipe that is read at once. A guard that somebody ended guards no more, that is all.
            drop(pipe.write_all(format!("{sign}{group}\n").as_bytes()));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take());
        // It ends at once where nothing is left to guard, so that it is no zombie of ours.
        drop(self.process.lock().unwrap_or_else(PoisonError::into_inner).wait());
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
