//! The file: records are appended, one at a time and at once, so that what was done is there before anybody hears of it. A file
//! that is full is put aside under a number. It is on local disk: a call waits for its record, not for the disk.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    chain::{Bound, digest},
    redact::Redaction,
    verify::numbered,
};
use crate::{
    config::AuditConfig,
    model::hidden::harmless_json,
    model::limits::{AUDIT_FILES, AUDIT_LINE_BYTES},
};

/// Why there is no audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// As the system says.
    #[error("failed to write `{}`: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Other processes have all of the names that are tried.
    #[error("`{}` and {} more are in use by other processes", file.display(), AUDIT_FILES - 1)]
    InUse {
        /// The first name.
        file: PathBuf,
    },
}

/// The audit of one process.
#[derive(Debug)]
pub struct Audit {
    /// What arguments are written, if any are.
    pub redaction: Redaction,
    /// Whether arguments are written.
    pub has_arguments: bool,
    /// Whether what cannot be recorded is not done.
    pub is_strict: bool,
    max_bytes: u64,
    keep: usize,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    path: PathBuf,
    file: File,
    size_bytes: u64,
    seq: u64,
    prev: String,
    /// Records that could not be written since the last one that could.
    n_lost: u64,
    n_calls: u64,
}

impl Audit {
    /// Opens the file, or one beside it where another process has that, and goes on where its last record ends.
    ///
    /// # Errors
    /// See [`AuditError`].
    pub fn open(config: &AuditConfig) -> Result<Self, AuditError> {
        let error = |source| AuditError::Io { file: config.file.clone(), source };
        let (path, file) =
            locked(&config.file).map_err(error)?.ok_or_else(|| AuditError::InUse { file: config.file.clone() })?;
        let mut writer = Writer { path, file, size_bytes: 0, seq: 0, prev: String::new(), n_lost: 0, n_calls: 0 };
        let torn = writer.resume().map_err(error)?;
        let audit = Self {
            redaction: Redaction::new(&config.secrets),
            has_arguments: config.has_arguments,
            is_strict: config.is_strict,
            max_bytes: config.max_bytes,
            keep: config.keep,
            writer: Mutex::new(writer),
        };
        let mut opened = json!({"event": "opened", "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id()});
        if let Some(torn) = torn {
            opened["torn_bytes"] = json!(torn.len());
            opened["torn_sha256"] = json!(digest(&torn));
        }
        audit.writer().append(opened, &audit).map_err(error)?;
        Ok(audit)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A panic leaves a line that was not written to its end at worst; the next record says so.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record, a JSON object; says whether it may be done: it is written, or nothing depends on that.
    pub fn record(&self, record: Value) -> bool {
        let mut writer = self.writer();
        match writer.append(record, self) {
            Ok(()) => true,
            Err(error) => {
                if writer.n_lost == 0 {
                    tracing::error!(%error, file = %writer.path.display(), "the audit cannot be written");
                }
                writer.n_lost += 1;
                !self.is_strict
            }
        }
    }

    /// A number for a call, by which its records are told from others of this process.
    pub fn next_call(&self) -> u64 {
        let mut writer = self.writer();
        writer.n_calls += 1;
        writer.n_calls
    }
}

impl Writer {
    /// Finds out where the file ends; returns a last line that was not written to its end.
    fn resume(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.size_bytes = self.file.metadata()?.len();
        let tail_bytes = self.size_bytes.min(AUDIT_LINE_BYTES);
        self.file.seek(SeekFrom::Start(self.size_bytes - tail_bytes))?;
        let mut tail = Vec::new();
        (&self.file).take(tail_bytes).read_to_end(&mut tail)?;
        let end = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let torn = tail.split_off(end);
        if !torn.is_empty() {
            self.file.write_all(b"\n")?;
            self.size_bytes += 1;
        }
        let mut lines = tail.split(|byte| *byte == b'\n').rev().filter(|line| !line.is_empty());
        let last = lines.find_map(|line| Some((line, serde_json::from_slice::<Bound>(line).ok()?)));
        let before = match last {
            Some((line, bound)) => Some((digest(line), bound.seq)),
            // It was just put aside: the chain goes on from the file before.
            None => last_of(&numbered(&self.path, 1)),
        };
        if let Some((prev, seq)) = before {
            (self.prev, self.seq) = (prev, seq);
        }
        Ok((!torn.is_empty()).then_some(torn))
    }

    fn append(&mut self, mut record: Value, audit: &Audit) -> io::Result<()> {
        let at = OffsetDateTime::from(SystemTime::now());
        let at = at.replace_nanosecond(at.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(at);
        record["at"] = json!(at.format(&Rfc3339).map_err(io::Error::other)?);
        record["seq"] = json!(self.seq + 1);
        record["prev"] = json!(self.prev);
        if self.n_lost > 0 {
            record["lost_before"] = json!(self.n_lost);
        }
        let mut line = harmless_json(&record.to_string()).into_owned().into_bytes();
        if self.size_bytes > 0 && self.size_bytes + line.len() as u64 > audit.max_bytes {
            self.put_aside(audit.keep)?;
        }
        let digest = digest(&line);
        line.push(b'\n');
        // In one piece: whoever reads along sees whole lines, and a full disk is known at once.
        if let Err(error) = self.file.write_all(&line) {
            // What of it was written must not run into the next one.
            self.file.set_len(self.size_bytes).ok();
            return Err(error);
        }
        self.size_bytes += line.len() as u64;
        (self.seq, self.prev, self.n_lost) = (self.seq + 1, digest, 0);
        Ok(())
    }

    /// `audit.jsonl` becomes `audit.jsonl.1`, and so on; the oldest goes.
    fn put_aside(&mut self, keep: usize) -> io::Result<()> {
        for number in (1..keep).rev() {
            let from = numbered(&self.path, number);
            if from.exists() {
                fs::rename(from, numbered(&self.path, number + 1))?;
            }
        }
        if keep > 0 {
            fs::rename(&self.path, numbered(&self.path, 1))?;
        } else {
            fs::remove_file(&self.path)?;
        }
        let file = open(&self.path)?;
        file.try_lock().map_err(io::Error::from)?;
        (self.file, self.size_bytes) = (file, 0);
        Ok(())
    }
}

fn last_of(file: &Path) -> Option<(String, u64)> {
    let bytes = fs::read(file).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').rev().find(|line| !line.is_empty())?;
    Some((digest(line), serde_json::from_slice::<Bound>(line).ok()?.seq))
}

/// The first name that no other process has: `audit.jsonl`, `audit-2.jsonl` …
fn locked(path: &Path) -> io::Result<Option<(PathBuf, File)>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    for number in 1..=AUDIT_FILES {
        let path = if number == 1 { path.to_owned() } else { second(path, number) };
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => return Ok(Some((path, file))),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

fn second(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{number}{ending}"))
}

/// For its owner only, and no link that somebody else put there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options.open(path)
}
