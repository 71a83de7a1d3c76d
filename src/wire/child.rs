//! A server as a child process: in a group of its own, its stderr kept in a ring, and ended in steps so that nothing
//! of it is left.

use std::{
    collections::VecDeque,
    io,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{Duration, Instant, timeout},
};

use super::{group, guard::Guard, sandbox};
use crate::model::{
    limits::{CHILD_GRACE, STDERR_LINE_BYTES, STDERR_LINES},
    program::Program,
};

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Number of the process and of its group.
    id: u32,
    guard: Arc<Guard>,
    /// Its temporary files, where it is in a sandbox; they go with it.
    _private: Option<TempDir>,
}

/// The three pipes of a running server.
#[derive(Debug)]
pub struct Pipes {
    /// Its stdin.
    pub stdin: ChildStdin,
    /// Its stdout.
    pub stdout: ChildStdout,
    /// Its stderr.
    pub stderr: ChildStderr,
}

impl Server {
    /// Starts `program`.
    ///
    /// # Errors
    /// As the system says; a program that does not exist is [`io::ErrorKind::NotFound`]. One that cannot have the sandbox that
    /// it is to have is not started.
    pub fn spawn(program: &Program, guard: Arc<Guard>) -> io::Result<(Self, Pipes)> {
        let (mut command, private) = match &program.sandbox {
            Some(sandbox) => sandbox::command(program, sandbox).map(|(command, private)| (command, Some(private)))?,
            None => {
                let mut command = Command::new(&program.command);
                command.args(&program.args).env_clear().envs(&program.env);
                (command, None)
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        command.kill_on_drop(true);
        let mut child = command.spawn()?;
        let id = child.id().unwrap_or_default();
        guard.add(id);
        let pipes = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Pipes { stdin, stdout, stderr },
            _ => return Err(io::Error::other("the child has no pipes")),
        };
        Ok((Self { child, id, guard, _private: private }, pipes))
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// As the system says.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the process and whatever it left in its group. Its stdin must be closed by now: wait, SIGTERM to the
    /// group, wait, SIGKILL to the group.
    ///
    /// # Cancel safety
    /// Must run to its end; dropped, it leaves processes behind until the guard ends them.
    pub async fn end(mut self) {
        let mut has_ended = timeout(CHILD_GRACE, self.child.wait()).await.is_ok();
        if !has_ended || group::is_alive(self.id) {
            group::terminate(self.id);
            has_ended = has_ended || timeout(CHILD_GRACE, self.child.wait()).await.is_ok();
            self.wait_for_group(CHILD_GRACE).await;
        }
        group::kill(self.id);
        if !has_ended {
            // The group's SIGKILL does not reach a child that left its group, nor is there one everywhere.
            drop(self.child.start_kill());
            drop(self.child.wait().await);
        }
        // What was killed may take a moment to be gone.
        self.wait_for_group(CHILD_GRACE).await;
        self.guard.remove(self.id);
    }

    /// The group's other members are not our children, so nothing wakes us when they end.
    async fn wait_for_group(&self, most: Duration) {
        let deadline = Instant::now() + most;
        while group::is_alive(self.id) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The last lines of a server's stderr.
#[derive(Debug, Clone, Default)]
pub struct StderrRing(Arc<Mutex<VecDeque<String>>>);

impl StderrRing {
    /// Reads `stderr` to its end, keeping the last lines.
    ///
    /// # Cancel safety
    /// What was read is kept.
    pub async fn fill(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 << 10];
        let mut line = Vec::new();
        while let Ok(size @ 1..) = stderr.read(&mut chunk).await {
            for &byte in &chunk[..size] {
                if byte == b'\n' {
                    self.keep(&line);
                    line.clear();
                } else if line.len() < STDERR_LINE_BYTES {
                    line.push(byte);
                }
            }
        }
        self.keep(&line);
    }

    fn keep(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).trim().to_owned();
        if line.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last line, if there was any.
    pub fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).back().cloned()
    }
}
