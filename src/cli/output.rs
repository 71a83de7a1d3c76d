//! The only printer: data to stdout, words for people to stderr. A reader that went away is no error.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    args::{Color, Common},
    exit::Failed,
};
use crate::model::{
    diagnostic::{Diagnostic, Severity},
    hidden::{harmless, harmless_json},
};

/// Version of the JSON that `--json` prints.
const SCHEMA: u32 = 1;

/// Prints a line for people. Names and words of others are in it, and must be no commands to their terminal.
pub(super) fn note(text: &str) {
    err(&harmless(text));
}

fn err(text: &str) {
    writeln!(io::stderr().lock(), "{text}").ok();
}

fn out(text: &str) {
    // A closed pipe means that nobody wants more.
    writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n')).ok();
}

/// A number with what it counts: `1 tool`, `2 tools`.
pub(super) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Where a command's words go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub(super) is_json: bool,
    color: Color,
}

impl Output {
    pub(super) fn new(common: &Common) -> Self {
        Self { is_json: common.json, color: common.color }
    }

    /// Sends the log to stderr.
    pub(super) fn init_log(self, filter: &str) {
        let filter = tracing_subscriber::EnvFilter::try_new(filter)
            .unwrap_or_else(|_broken| tracing_subscriber::EnvFilter::new("warn"));
        let has_color = self.has_color(io::stderr().is_terminal());
        let log = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter).with_ansi(has_color);
        // Fails only where a log is set up already, which is as good.
        log.with_target(false).try_init().ok();
    }

    fn has_color(self, is_terminal: bool) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// Prints data, with a line end. What would be a command to a terminal stands as its number.
    pub(super) fn data(self, text: &str) {
        out(&harmless(text));
    }

    /// Prints somebody else's text byte by byte; to a terminal, as [`Output::data`].
    pub(super) fn verbatim(self, text: &str) {
        if io::stdout().is_terminal() { self.data(text) } else { out(text) }
    }

    /// Prints JSON.
    pub(super) fn json(self, text: &str) {
        out(&harmless_json(text));
    }

    /// Prints the envelope that `--json` promises.
    pub(super) fn envelope(self, kind: &str, data: &Value, findings: &[Diagnostic]) {
        self.json(&json!({"schema": SCHEMA, "kind": kind, "data": data, "diagnostics": findings}).to_string());
    }

    /// The same with the generation that a report is about, for whoever writes it.
    pub(super) fn enveloped(kind: &str, generation: u64, data: &Value, findings: &[Diagnostic]) -> String {
        json!({"schema": SCHEMA, "kind": kind, "generation": generation, "data": data, "diagnostics": findings})
            .to_string()
    }

    /// Prints a line for people.
    pub(super) fn note(self, text: &str) {
        note(text);
    }

    /// Prints findings for people, to stderr.
    pub(super) fn findings(self, findings: &[Diagnostic]) {
        for finding in findings {
            err(&self.finding(finding, io::stderr().is_terminal()));
        }
    }

    /// Prints findings as data.
    pub(super) fn findings_as_data(self, findings: &[Diagnostic]) {
        for finding in findings {
            out(&self.finding(finding, io::stdout().is_terminal()));
        }
    }

    fn finding(self, finding: &Diagnostic, is_terminal: bool) -> String {
        let text = harmless(&finding.to_string()).into_owned();
        if !self.has_color(is_terminal) {
            return text;
        }
        let (word, code) = match finding.severity {
            Severity::Error => ("error", "31"),
            Severity::Warning => ("warning", "33"),
            Severity::Note => ("note", "36"),
        };
        let plain = format!("{word}[{}]", finding.code);
        text.replacen(&plain, &format!("\x1b[1;{code}m{plain}\x1b[0m"), 1)
    }

    /// Prints what went wrong.
    pub(super) fn error(self, error: &Failed) {
        if self.is_json {
            let mut diagnostics = vec![
                json!({"severity": "error", "at": null, "code": "failed", "message": error.message, "hint": error.hint}),
            ];
            diagnostics.extend(error.findings.iter().map(|finding| json!(finding)));
            self.json(
                &json!({"schema": SCHEMA, "kind": "error", "data": null, "diagnostics": diagnostics}).to_string(),
            );
            return;
        }
        self.note(&format!("error: {}", error.message));
        self.findings(&error.findings);
        if let Some(hint) = &error.hint {
            self.note(&format!("\nhint: {hint}"));
        }
    }

    /// A table with aligned columns, the last one free.
    pub(super) fn table(self, head: &[&str], rows: &[Vec<String>]) {
        let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: &[String]| {
            let last = cells.len().saturating_sub(1);
            let padded = cells
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(index, (cell, width))| if index == last { cell.clone() } else { format!("{cell:<width$}") });
            padded.collect::<Vec<_>>().join("  ")
        };
        let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
        self.data(&line(&head));
        for row in rows {
            self.data(&line(row));
        }
    }
}

/// What takes longer than a moment, told in one line of a terminal; nothing elsewhere. The line goes with it.
#[derive(Debug)]
pub(super) struct Progress {
    told: Arc<Told>,
    /// Only on a terminal.
    teller: Option<JoinHandle<()>>,
}

/// What is going on; `None` when all is over.
#[derive(Debug)]
struct Told {
    now: Mutex<Option<String>>,
    ended: Condvar,
}

/// Nothing is told before.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// Between two looks at what is going on.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

impl Progress {
    /// Something begins.
    pub(super) fn start() -> Self {
        let told = Arc::new(Told { now: Mutex::new(Some(String::new())), ended: Condvar::new() });
        let for_teller = Arc::clone(&told);
        let teller = io::stderr().is_terminal().then(|| std::thread::spawn(move || for_teller.show()));
        Self { told, teller }
    }

    /// Says what is going on.
    pub(super) fn tell(&self, what: String) {
        if self.teller.is_some() {
            *self.told.now() = Some(what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.told.now() = None;
        self.told.ended.notify_all();
        // It does nothing that can fail.
        self.teller.take().map(JoinHandle::join);
    }
}

impl Told {
    fn now(&self) -> MutexGuard<'_, Option<String>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows it until all is over.
    fn show(&self) {
        let (mut shown, mut pause) = (String::new(), PROGRESS_AFTER);
        let mut now = self.now();
        while now.is_some() {
            let waited = self.ended.wait_timeout_while(now, pause, |now| now.is_some());
            now = waited.unwrap_or_else(PoisonError::into_inner).0;
            pause = PROGRESS_PAUSE;
            if let Some(text) = now.as_ref().filter(|text| **text != shown) {
                shown.clone_from(text);
                overwrite(text);
            }
        }
        if !shown.is_empty() {
            overwrite("");
        }
    }
}

/// Whoever looks at it no more misses nothing.
fn overwrite(text: &str) {
    let mut stderr = io::stderr().lock();
    write!(stderr, "\r\x1b[2K{}", harmless(text)).and_then(|()| stderr.flush()).ok();
}
