//! Putting a whole file in place of another in one step. Must not know what is in it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::model::limits::FILE_LINKS;

/// The file that a link leads to, also where that is not there yet.
pub fn target(file: &Path) -> PathBuf {
    let mut target = file.to_owned();
    for _ in 0..FILE_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// Writes beside the file and puts that in its place, so that nobody reads half of it; who may read and write it stays.
///
/// # Errors
/// As the system says.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut builder = beside();
    // As any new file, for all that the user's mask lets in.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    put(&builder, file, bytes, fs::metadata(file).ok().map(|data| data.permissions()))
}

/// The same for a file that is for its owner's eyes only, whatever it was before.
///
/// # Errors
/// As the system says.
pub fn write_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // A temporary file is its owner's from the start.
    put(&beside(), file, bytes, None)
}

/// Waits for others who change the file. It is itself replaced each time, so that another one beside it is locked.
///
/// # Errors
/// As the system says.
pub fn lock(file: &Path) -> io::Result<File> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let lock = File::options().create(true).append(true).open(file.with_file_name(name))?;
    lock.lock()?;
    Ok(lock)
}

fn beside() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gatekey-");
    builder
}

fn put(
    builder: &tempfile::Builder<'_, '_>,
    file: &Path,
    bytes: &[u8],
    permissions: Option<fs::Permissions>,
) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Its own text names the file beside, which is called otherwise each time.
    let mut beside = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    io::Write::write_all(&mut beside, bytes)?;
    if let Some(permissions) = permissions {
        beside.as_file().set_permissions(permissions)?;
    }
    beside.as_file().sync_all()?;
    beside.persist(file)?;
    Ok(())
}
