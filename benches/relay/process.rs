//! A program that was started: what it says on stderr, and its end, by its id.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_secs(3);
/// Said on stderr before the URL by whoever picks its port itself.
const ANNOUNCEMENT: &str = "listens on ";

/// A running program; ended when it is dropped.
pub(crate) struct Process {
    child: Arc<Mutex<Child>>,
    last_words: Arc<Mutex<String>>,
    announced: Receiver<String>,
}

impl Process {
    /// With its stdin and stdout for whoever takes them, if `is_piped`.
    pub(crate) fn start(command: &[String], env: &BTreeMap<String, String>, is_piped: bool) -> Result<Self> {
        let (program, arguments) = command.split_first().ok_or("there is no program")?;
        let stdio = || if is_piped { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .args(arguments)
            .envs(env)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let stderr = child.stderr.take().ok_or("stderr is a pipe")?;
        let (sender, announced) = channel();
        let last_words = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&last_words);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
                if let Some(url) = line.split_once(ANNOUNCEMENT).and_then(|(_, rest)| rest.split_whitespace().next()) {
                    // Only the first is waited for.
                    sender.send(url.to_owned()).ok();
                }
                let mut kept = lock(&kept);
                if line.contains("error") || !kept.contains("error") {
                    *kept = line;
                }
            }
        });
        Ok(Self { child: Arc::new(Mutex::new(child)), last_words, announced })
    }

    pub(crate) fn id(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Its stdin and stdout, once.
    pub(crate) fn pipes(&self) -> Result<(ChildStdin, ChildStdout)> {
        let mut child = lock(&self.child);
        Ok((child.stdin.take().ok_or("stdin is taken")?, child.stdout.take().ok_or("stdout is taken")?))
    }

    /// The URL that it says it listens on.
    pub(crate) fn url(&self, patience: Duration) -> Result<String> {
        self.announced.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => "no word of its address".into(),
            RecvTimeoutError::Disconnected => "it ended before it listened".into(),
        })
    }

    /// What it last said on stderr, of an error if it spoke of one.
    pub(crate) fn last_words(&self) -> String {
        lock(&self.last_words).clone()
    }

    /// Ends it after `patience`, so that whoever waits for it goes on; until what is returned is dropped.
    pub(crate) fn limit(&self, patience: Duration) -> Sender<()> {
        let (guard, dropped) = channel();
        let (child, words) = (Arc::clone(&self.child), Arc::clone(&self.last_words));
        thread::spawn(move || {
            if dropped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                *lock(&words) = format!("given up after {} s", patience.as_secs());
                // It may have ended by itself.
                lock(&child).kill().ok();
            }
        });
        guard
    }

    pub(crate) fn has_ended(&self) -> bool {
        !matches!(lock(&self.child).try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        drop(child.stdin.take());
        if matches!(child.try_wait(), Ok(None)) {
            // Not waited for to its end yet, so the id is still its own.
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
        }
        let deadline = Instant::now() + GRACE;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            pause();
        }
        child.kill().and_then(|()| child.wait()).ok();
    }
}

/// Nobody panics while holding what is locked here.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "other processes tell nobody that they have ended")]
fn pause() {
    thread::sleep(Duration::from_millis(2));
}
