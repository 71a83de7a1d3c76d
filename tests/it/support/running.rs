//! A program that runs beside the test: what it says is kept, and it ends with the test.

use std::{
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use super::{comes_true, wait_until};

/// A running program.
pub(crate) struct Running {
    child: Child,
    /// What it said so far, on stdout and stderr.
    said: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let said = Arc::new(Mutex::new(String::new()));
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let stderr = child.stderr.take().expect("stderr is a pipe");
        let readers = vec![keep(stdout, Arc::clone(&said)), keep(stderr, Arc::clone(&said))];
        Self { child, said, readers }
    }

    /// What it said so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits for a line that begins so, and returns the rest of it.
    pub(crate) fn rest_of_line(&mut self, beginning: &str, most: Duration) -> String {
        let mut rest = None;
        let mut has_ended = false;
        comes_true(most, || {
            // Its last words are read after its end has been seen.
            let was_its_end = has_ended;
            has_ended = !matches!(self.child.try_wait(), Ok(None));
            // A line counts when it has ended.
            let said = self.said();
            let (lines, _) = said.rsplit_once('\n').unwrap_or_default();
            rest = lines.lines().find_map(|line| line.strip_prefix(beginning).map(str::to_owned));
            rest.is_some() || was_its_end
        });
        rest.unwrap_or_else(|| panic!("no `{beginning}…` within {most:?}, only\n{}", self.said()))
    }

    /// Waits for a line that has this somewhere, and returns what stands behind it.
    pub(crate) fn rest_of(&mut self, part: &str, most: Duration) -> String {
        let mut rest = None;
        comes_true(most, || {
            let said = self.said();
            let (lines, _) = said.rsplit_once('\n').unwrap_or_default();
            rest = lines.lines().find_map(|line| Some(line.split_once(part)?.1.to_owned()));
            rest.is_some() || !matches!(self.child.try_wait(), Ok(None))
        });
        rest.unwrap_or_else(|| panic!("no `{part}…` within {most:?}, only\n{}", self.said()))
    }

    /// Waits for its end; a program that does not come to it is killed, and `None` returned.
    pub(crate) fn end(&mut self, most: Duration) -> Option<ExitStatus> {
        let mut status = None;
        let has_ended = comes_true(most, || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        if !has_ended {
            self.child.kill().expect("it is our child");
            self.child.wait().expect("it was killed");
        }
        // A grandchild may hold the pipes open; what it says no longer matters.
        wait_until("the output is read", Duration::from_secs(10), || self.readers.iter().all(JoinHandle::is_finished));
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Keeps all that comes through a pipe.
fn keep(mut pipe: impl Read + Send + 'static, said: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(size @ 1..) = pipe.read(&mut chunk) {
            said.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..size]));
        }
    })
}
