//! The small file of what clients were sent: a line a session, numbers and bytes only, the oldest gone first. Its format
//! stands here for whoever writes it and whoever reports of it.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::Path,
};

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::model::{
    limits::SENT_FILE_BYTES,
    sent::{Amount, SentAs},
};

/// What one session was sent, or all requests of clients without sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRecord {
    /// Unlike any other's.
    pub session: String,
    /// Of the servers behind the proxy, so that reports tell them apart.
    pub servers: String,
    /// Seconds since 1970 at which it was written last.
    pub at: u64,
    /// As [`SentAs::ALL`].
    pub amounts: [Amount; SentAs::ALL.len()],
}

impl SentRecord {
    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.amounts.iter().all(|amount| amount.n == 0)
    }

    fn line(&self) -> String {
        let mut sent = Map::new();
        for (kind, amount) in SentAs::ALL.iter().zip(&self.amounts) {
            if amount.n > 0 {
                sent.insert(kind.as_str().into(), json!([amount.n, amount.bytes]));
            }
        }
        json!({"session": self.session, "servers": self.servers, "at": self.at, "sent": sent}).to_string()
    }

    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let amount = |kind: SentAs| {
            let amount = &value["sent"][kind.as_str()];
            Amount { n: amount[0].as_u64().unwrap_or_default(), bytes: amount[1].as_u64().unwrap_or_default() }
        };
        let amounts = SentAs::ALL.map(amount);
        Some(Self { session: text("session")?, servers: text("servers")?, at: value["at"].as_u64()?, amounts })
    }
}

/// Of these servers, in whatever order: the same for the same ones.
pub fn servers_digest<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    let digest = HEXLOWER.encode(&Sha256::digest(names.join("\n")));
    digest.get(..12).unwrap_or_default().to_owned()
}

/// What the file has, oldest first; lines that cannot be read are passed over. A file that is not there has nothing.
///
/// # Errors
/// The file cannot be read.
pub fn read_sent(file: &Path) -> io::Result<Vec<SentRecord>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().filter_map(SentRecord::parse).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Puts records into the file, in place of earlier ones of the same sessions. `Ok(false)` where another process is just
/// writing.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write_sent(file: &Path, records: &[SentRecord]) -> io::Result<bool> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let lock = File::create(file.with_extension("lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut known = String::new();
    if let Ok(mut file) = OpenOptions::new().read(true).open(file) {
        // What is broken is written anew.
        file.read_to_string(&mut known).ok();
    }
    let new: BTreeMap<&str, &SentRecord> = records.iter().map(|record| (record.session.as_str(), record)).collect();
    let kept = known.lines().filter_map(SentRecord::parse).filter(|old| !new.contains_key(old.session.as_str()));
    let lines: Vec<String> = kept.map(|old| old.line()).chain(new.values().map(|record| record.line())).collect();
    let mut room = SENT_FILE_BYTES;
    let fits = |line: &&String| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or_default();
        left.is_some()
    };
    let mut last: Vec<&String> = lines.iter().rev().take_while(fits).collect();
    last.reverse();
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    for line in last {
        writeln!(written, "{line}")?;
    }
    written.persist(file)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(session: usize, n: u64) -> SentRecord {
        let amounts =
            SentAs::ALL.map(|kind| if kind == SentAs::Load { Amount { n, bytes: n * 10 } } else { Amount::default() });
        SentRecord { session: format!("s{session}"), servers: "a".into(), at: 5, amounts }
    }

    #[test]
    fn a_session_has_one_line_and_the_file_stays_small() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("state/sent.jsonl");
        assert_eq!(read_sent(&file).unwrap(), []);
        assert!(write_sent(&file, &[record(1, 1), record(2, 2)]).unwrap());
        assert!(write_sent(&file, &[record(1, 7)]).unwrap());
        assert_eq!(read_sent(&file).unwrap(), [record(2, 2), record(1, 7)]);

        let many: Vec<SentRecord> = (0..10_000).map(|session| record(100_000 + session, 3)).collect();
        assert!(write_sent(&file, &many).unwrap());
        assert!(std::fs::metadata(&file).unwrap().len() <= SENT_FILE_BYTES as u64);
        assert_eq!(read_sent(&file).unwrap().last(), many.last());
    }

    #[test]
    fn broken_lines_cost_only_themselves() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("sent.jsonl");
        std::fs::write(&file, "no json\n{\"session\":1}\n").unwrap();
        assert!(write_sent(&file, &[record(1, 1)]).unwrap());
        assert_eq!(read_sent(&file).unwrap(), [record(1, 1)]);
    }
}
