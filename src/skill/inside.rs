//! One file below a folder, through no link, whatever becomes of the folder meanwhile: each part of the path is opened
//! within the one before, so that there is no time between looking and reading. Must not know what the file is.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Opens the plain file at `path`, `/` between its parts, below `folder`. What is a link, a pipe or a device is not there.
///
/// # Errors
/// As the system says.
#[cfg(unix)]
pub fn open_inside(folder: &Path, path: &str) -> io::Result<File> {
    use rustix::{
        fs::{Mode, OFlags, open, openat},
        io::Errno,
    };
    let gone = |error: Errno| match error {
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO => io::Error::from(io::ErrorKind::NotFound),
        other => other.into(),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut holder = open(folder, flags | OFlags::DIRECTORY, Mode::empty()).map_err(gone)?;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if matches!(part, "" | "." | "..") {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        // A pipe would wait for somebody who writes into it.
        let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK | OFlags::NOCTTY };
        holder = openat(&holder, part, flags | kind, Mode::empty()).map_err(gone)?;
    }
    plain(holder.into())
}

/// As on other systems, as well as their standard library can.
///
/// # Errors
/// As the system says.
#[cfg(not(unix))]
pub fn open_inside(folder: &Path, path: &str) -> io::Result<File> {
    let file = folder.join(path);
    if std::fs::canonicalize(&file)? != file {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    plain(File::open(file)?)
}

fn plain(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
}

/// The bytes of the file that [`open_inside`] opens, where they are not more than `most_bytes`.
///
/// # Errors
/// As the system says; [`io::ErrorKind::FileTooLarge`] where it has more, also if it grows meanwhile.
pub(super) fn read_inside(folder: &Path, path: &str, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_all(open_inside(folder, path)?, most_bytes)
}

/// The same of a file that may be a link, as in a mounted config map.
///
/// # Errors
/// As [`read_inside`].
pub(super) fn read_plain(file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    read_all(plain(options.open(file)?)?, most_bytes)
}

fn read_all(file: File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
    if file.metadata()?.len() > most_bytes {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes { Err(too_large()) } else { Ok(bytes) }
}
