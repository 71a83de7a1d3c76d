//! By which it is seen that a file was replaced. Must not know what is in it.

use std::{fs, io, path::Path, time::SystemTime};

/// Of a file at one moment; that of the one that takes its place is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    size_bytes: u64,
    /// The system's own, where it has such.
    number: u64,
}

impl Stamp {
    /// Of the file as it is now; `None` where there is none.
    ///
    /// # Errors
    /// As the system says.
    pub fn of(file: &Path) -> io::Result<Option<Self>> {
        let data = match fs::metadata(file) {
            Ok(data) => data,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&data);
        #[cfg(not(unix))]
        let number = 0;
        Ok(Some(Self { modified: data.modified().ok(), size_bytes: data.len(), number }))
    }
}
