//! `gatekey` as a process: started, stopped by signals, its stderr kept. Ends with the last of its clients.

use std::{
    io::Read as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::wait_until;

/// A running gatekey.
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: u32,
    stderr: Arc<Mutex<String>>,
}

impl Process {
    /// Starts a prepared command; its stdin and stdout are pipes, as a client's are.
    pub(crate) fn spawn(mut command: Command) -> (Self, ChildStdin, ChildStdout) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("gatekey starts");
        let mut pipe = child.stderr.take().expect("stderr is a pipe");
        let stderr = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(size @ 1..) = pipe.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..size]));
            }
        });
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        (Self { pid: child.id(), child: Mutex::new(child), stderr }, stdin, stdout)
    }

    /// What it wrote to stderr so far.
    pub(crate) fn stderr(&self) -> &Arc<Mutex<String>> {
        &self.stderr
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where it listens, once it says so.
    pub(crate) fn url(&self, most: Duration) -> String {
        let mut url = None;
        wait_until("gatekey listens", most, || {
            let said = self.stderr.lock().unwrap();
            // A line counts when it has ended.
            let (lines, _) = said.rsplit_once('\n').unwrap_or_default();
            url = lines.lines().find_map(|line| line.strip_prefix("gatekey listens on ").map(str::to_owned));
            url.is_some()
        });
        url.expect("it listens")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }

    /// Waits for its end.
    pub(crate) fn ended(&self, most: Duration) -> ExitStatus {
        let mut status = None;
        wait_until("gatekey ends", most, || {
            status = self.child.lock().unwrap().try_wait().expect("gatekey is our child");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Ok(child) = self.child.get_mut() else { return };
        if !matches!(child.try_wait(), Ok(Some(_))) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The program, with an environment that no setting of the user's reaches.
pub(crate) fn gatekey() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatekey"));
    command.env_remove("GATEKEY_CONFIG").env_remove("GATEKEY_LOG").env("XDG_CONFIG_HOME", "/nonexistent");
    // Vectors of one run are there for the next one.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// `gatekey proxy --config FILE` in the file's folder.
pub(crate) fn proxy_of(config: &Path) -> Command {
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(config).arg("--log").arg("debug");
    command.current_dir(config.parent().expect("a config has a folder"));
    command
}

/// Runs a command of the program to its end; returns exit code, stdout and stderr.
pub(crate) fn run<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> (i32, String, String) {
    let output = gatekey().args(arguments).output().expect("gatekey starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
