//! The file in which the index stands: what is between its markers is replaced, everything else stays byte for byte. Must
//! not know what the index says.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::files::{target, write};
use crate::gateway::INDEX_MARKERS;

/// What became of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There was none, or an empty one.
    Created,
    /// The index in it was another one.
    Updated,
    /// It has this index; nothing was written.
    Unchanged,
}

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Why the index is not in the file, which is as it was then.
#[derive(Debug, Error)]
pub(super) enum IndexError {
    /// Somebody else's file.
    #[error("`{}` has no place for the index", file.display())]
    NoPlace { file: PathBuf },
    /// It is not clear what is to be replaced.
    #[error("`{}`: {fault}", file.display())]
    Markers { file: PathBuf, fault: Fault },
    #[error("failed to read `{}`", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("failed to write `{}`", file.display())]
    Write { file: PathBuf, source: io::Error },
}

/// What is wrong with a file's markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Fault {
    #[error("it has neither marker")]
    None,
    #[error("the line `{}` is missing", INDEX_MARKERS[0])]
    NoStart,
    #[error("the line `{}` is missing", INDEX_MARKERS[1])]
    NoEnd,
    #[error("the line `{}` stands there more than once", INDEX_MARKERS[0])]
    Starts,
    #[error("the line `{}` stands there more than once", INDEX_MARKERS[1])]
    Ends,
    #[error("the line `{}` stands before `{}`", INDEX_MARKERS[1], INDEX_MARKERS[0])]
    Order,
}

/// Puts `index` between the markers of `file`, in one step; a file that is not there is made. Links are followed.
pub(super) fn put(file: &Path, index: &str) -> Result<Outcome, IndexError> {
    let target = target(file);
    let before = match fs::read(&target) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(IndexError::Read { file: file.into(), source }),
    };
    let after =
        if before.is_empty() { whole(index).into_bytes() } else { replaced(&before, index).map_err(refused(file))? };
    if after == before {
        return Ok(Outcome::Unchanged);
    }
    write(&target, &after).map_err(|source| IndexError::Write { file: file.into(), source })?;
    Ok(if before.is_empty() { Outcome::Created } else { Outcome::Updated })
}

/// What a file holds that has nothing but the index.
pub(super) fn whole(index: &str) -> String {
    let [start, end] = INDEX_MARKERS;
    format!("{start}\n{index}{end}\n")
}

fn refused(file: &Path) -> impl Fn(Fault) -> IndexError {
    move |fault| match fault {
        Fault::None => IndexError::NoPlace { file: file.into() },
        fault => IndexError::Markers { file: file.into(), fault },
    }
}

/// The text with `index` between its markers, each of which is a line of its own. Lines end as that of the first marker.
fn replaced(text: &[u8], index: &str) -> Result<Vec<u8>, Fault> {
    let mut found: [Option<(usize, usize)>; 2] = [None; 2];
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        // A byte-order mark may stand before the first line.
        let words = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        for (place, marker) in found.iter_mut().zip(INDEX_MARKERS) {
            if words == marker.as_bytes() && place.replace((at, end)).is_some() {
                return Err(if marker == INDEX_MARKERS[0] { Fault::Starts } else { Fault::Ends });
            }
        }
        at = end;
    }
    let ((_, from), (to, _)) = match found {
        [Some(start), Some(end)] => (start, end),
        [None, None] => return Err(Fault::None),
        [None, Some(_)] => return Err(Fault::NoStart),
        [Some(_), None] => return Err(Fault::NoEnd),
    };
    if from > to {
        return Err(Fault::Order);
    }
    let (head, tail) = (&text[..from], &text[to..]);
    let index = if head.ends_with(b"\r\n") { index.replace('\n', "\r\n") } else { index.to_owned() };
    Ok([head, index.as_bytes(), tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = INDEX_MARKERS[0];
    const END: &str = INDEX_MARKERS[1];

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        for (name, before, after) in [
            ("all of it", format!("{START}\nold\n{END}\n"), format!("{START}\nnew\ntext\n{END}\n")),
            ("nothing yet", format!("{START}\n{END}"), format!("{START}\nnew\ntext\n{END}")),
            ("around", format!("# A\n\n{START}\nold\n{END}\n\nB"), format!("# A\n\n{START}\nnew\ntext\n{END}\n\nB")),
            (
                "CRLF",
                format!("A\r\n{START}\r\no\r\n{END}\r\nB\n"),
                format!("A\r\n{START}\r\nnew\r\ntext\r\n{END}\r\nB\n"),
            ),
            ("indented", format!("  {START} \nold\n\t{END}\n"), format!("  {START} \nnew\ntext\n\t{END}\n")),
            ("byte-order mark", format!("\u{feff}{START}\n{END}\n"), format!("\u{feff}{START}\nnew\ntext\n{END}\n")),
            (
                "named in a line",
                format!("Between `{START}` and `{END}`.\n{START}\n{END}\n"),
                format!("Between `{START}` and `{END}`.\n{START}\nnew\ntext\n{END}\n"),
            ),
        ] {
            let made = replaced(before.as_bytes(), "new\ntext\n").unwrap();
            assert_eq!(String::from_utf8(made.clone()).unwrap(), after, "{name}");
            assert_eq!(replaced(&made, "new\ntext\n").unwrap(), made, "{name}: once more");
        }
        let odd = [b"\xff\x00\n", START.as_bytes(), b"\n", END.as_bytes(), b"\n\xfe"].concat();
        assert!(replaced(&odd, "x\n").unwrap().starts_with(b"\xff\x00\n"), "bytes that are no text stay");
    }

    #[test]
    fn markers_that_are_not_one_pair_are_refused() {
        for (text, fault) in [
            ("a\nb\n".to_owned(), Fault::None),
            (format!("Write `{START}` here.\n"), Fault::None),
            (format!("{START}\nold\n"), Fault::NoEnd),
            (format!("old\n{END}\n"), Fault::NoStart),
            (format!("{START}\n{START}\n{END}\n"), Fault::Starts),
            (format!("{START}\n{END}\n{START}\n{END}\n"), Fault::Starts),
            (format!("{START}\n{END}\n{END}\n"), Fault::Ends),
            (format!("{END}\n{START}\n"), Fault::Order),
        ] {
            assert_eq!(replaced(text.as_bytes(), "new\n").unwrap_err(), fault, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn rights_stay_and_links_are_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let scratch = tempfile::tempdir().unwrap();
        let (file, link) = (scratch.path().join("real/a.md"), scratch.path().join("link.md"));
        symlink("real/a.md", &link).unwrap();
        assert!(matches!(put(&link, "one\n"), Err(IndexError::Write { .. })), "there is no such folder");
        fs::create_dir(scratch.path().join("real")).unwrap();
        assert_eq!(put(&link, "one\n").unwrap(), Outcome::Created);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(put(&link, "two\n").unwrap(), Outcome::Updated);
        assert_eq!(put(&link, "two\n").unwrap(), Outcome::Unchanged);
        assert_eq!(fs::read_to_string(&file).unwrap(), whole("two\n"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(scratch.path().join("real")).unwrap().count(), 1, "nothing is left beside it");
    }
}
