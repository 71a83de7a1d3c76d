//! Whether files of the audit are as they were written: no line changed, gone, added or moved.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use super::chain::{Bound, digest};

/// What was found of a chain that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Records.
    pub n_records: u64,
    /// The number of the first one; over 1 where older files are gone.
    pub first: u64,
    /// Number and digest of the last one, `212:9f86…`: whoever notes it can tell later that nothing was cut off.
    pub head: String,
    /// Those of the heads that were noted before that it goes through.
    pub passed: BTreeSet<String>,
}

/// Where a chain breaks first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// A fragment.
    pub why: String,
}

/// The file with a number behind it.
pub(super) fn numbered(file: &Path, number: usize) -> PathBuf {
    PathBuf::from(format!("{}.{number}", file.display()))
}

/// The files of a chain, the oldest first; `file` is the one that is written to.
pub fn files_of(file: &Path) -> Vec<PathBuf> {
    let older = (1..).map(|number| numbered(file, number)).take_while(|file| file.is_file());
    let mut files: Vec<PathBuf> = std::iter::once(file.to_owned()).chain(older).collect();
    files.reverse();
    files
}

/// Goes through a chain, and looks for heads that were noted before.
///
/// # Errors
/// A file cannot be read.
pub fn verify(files: &[PathBuf], noted: &[String]) -> io::Result<Result<Verified, Broken>> {
    let mut verified = Verified { n_records: 0, first: 0, head: String::new(), passed: BTreeSet::new() };
    let (mut last, mut last_digest) = (0, String::new());
    // A line that is no record, which the next one must account for.
    let mut torn: Option<(Broken, String)> = None;
    for file in files {
        let mut reader = BufReader::new(fs::File::open(file)?);
        for number in 1.. {
            let mut line = Vec::new();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let broken = |why: String| Broken { file: file.clone(), line: number, why };
            let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
            let bound = serde_json::from_slice::<Bound>(&line).ok().filter(|_| is_whole);
            let Some(bound) = bound else {
                if let Some((broken, _)) = torn {
                    return Ok(Err(broken));
                }
                torn = Some((
                    broken("is no record, and the next one does not say that it was not written to its end".into()),
                    digest(&line),
                ));
                continue;
            };
            match (torn.take(), &bound.torn_sha256) {
                (None, None) => {}
                (Some((_, digest)), Some(said)) if digest == *said => {}
                (Some((broken, _)), _) => return Ok(Err(broken)),
                (None, Some(_)) => return Ok(Err(broken("speaks of a line before it that is gone".into()))),
            }
            if verified.n_records == 0 {
                verified.first = bound.seq;
                if bound.seq == 1 && !bound.prev.is_empty() {
                    return Ok(Err(broken("is the first record and names one before it".into())));
                }
            } else if bound.seq != last + 1 {
                return Ok(Err(broken(format!("has number {}, where {} was to come", bound.seq, last + 1))));
            } else if bound.prev != last_digest {
                return Ok(Err(broken("does not fit the line before: one of the two was changed".into())));
            }
            (last, last_digest) = (bound.seq, digest(&line));
            verified.head = format!("{last}:{last_digest}");
            verified.passed.extend(noted.iter().filter(|head| **head == verified.head).cloned());
            verified.n_records += 1;
        }
    }
    Ok(match torn {
        Some((broken, _)) => Err(Broken { why: "was not written to its end".into(), ..broken }),
        None => Ok(verified),
    })
}
