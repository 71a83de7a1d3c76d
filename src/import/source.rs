//! Where skills come from: a folder, an archive (zip, tar, tar.gz), a git repository.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use super::bundle::{Bundle, Unfit, walk};
use crate::model::limits::{IMPORT_BYTES, IMPORT_FILE_BYTES, IMPORT_FILES};

/// Why nothing can be had from a source.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It has what is refused.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// As the system says.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no zip archive, or a damaged one.
    #[error("{0}")]
    Zip(#[from] zip::result::ZipError),
    /// Git failed: its own words.
    #[error("git: {0}")]
    Git(String),
    /// Nothing that is known.
    #[error("it is neither a folder nor an archive (zip, tar, tar.gz) nor the address of a git repository")]
    Unknown,
}

/// Reads a source; `revision` is a branch or tag of a repository.
///
/// # Errors
/// See [`ImportError`].
pub fn read(source: &str, revision: Option<&str>) -> Result<Bundle, ImportError> {
    let path = Path::new(source);
    let is = |ending: &str| source.to_lowercase().ends_with(ending);
    if path.is_dir() && !is(".git") && !path.join("HEAD").is_file() {
        let mut bundle = Bundle::default();
        walk(path, &mut bundle)?;
        return Ok(bundle);
    }
    if path.is_file() && is(".zip") {
        return zip(path);
    }
    if path.is_file() && (is(".tar.gz") || is(".tgz")) {
        return tar(flate2::read::GzDecoder::new(BufReader::new(fs::File::open(path)?)));
    }
    if path.is_file() && is(".tar") {
        return tar(BufReader::new(fs::File::open(path)?));
    }
    if is_repository(source) { git(source, revision) } else { Err(ImportError::Unknown) }
}

/// Addresses that git takes, without those that run a program.
fn is_repository(source: &str) -> bool {
    let is_url = ["https://", "http://", "ssh://", "file://"].iter().any(|scheme| source.starts_with(scheme));
    let is_scp = source.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    !source.starts_with('-') && (is_url || is_scp || Path::new(source).join("HEAD").is_file())
}

fn zip(path: &Path) -> Result<Bundle, ImportError> {
    let mut archive = zip::ZipArchive::new(BufReader::new(fs::File::open(path)?))?;
    let mut bundle = Bundle::default();
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        // The name as it stands there: what is odd in it is to be seen, not mended.
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if entry.is_dir() {
            continue;
        }
        if entry.is_symlink() {
            bundle.leave_out(&name, "it is a link");
            continue;
        }
        bundle.add(&name, entry)?;
    }
    Ok(bundle)
}

fn tar(reader: impl io::Read) -> Result<Bundle, ImportError> {
    // What is passed over is unpacked, too.
    let mut archive = tar::Archive::new(reader.take(IMPORT_BYTES * 2));
    let mut bundle = Bundle::default();
    for (index, entry) in archive.entries()?.enumerate() {
        if index > IMPORT_FILES * 4 {
            return Err(Unfit::TooMany.into());
        }
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        match kind {
            tar::EntryType::Regular | tar::EntryType::Continuous => bundle.add(&name, entry)?,
            tar::EntryType::Directory | tar::EntryType::XGlobalHeader | tar::EntryType::XHeader => {}
            tar::EntryType::Symlink | tar::EntryType::Link => bundle.leave_out(&name, "it is a link"),
            _ => bundle.leave_out(&name, "it is no file"),
        }
    }
    Ok(bundle)
}

/// Fetches the objects of one commit and reads its files out of them. There is no work tree, so nothing of the repository
/// can act: no hook, no filter, no submodule, no link.
fn git(source: &str, revision: Option<&str>) -> Result<Bundle, ImportError> {
    let scratch = tempfile::tempdir()?;
    let repository = scratch.path().join("repository.git");
    let mut clone = quiet_git();
    clone.args(["clone", "--bare", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--template="]);
    if let Some(revision) = revision {
        clone.arg(format!("--branch={revision}"));
    }
    // A depth counts for addresses only.
    let address = match Path::new(source).canonicalize() {
        Ok(folder) => format!("file://{}", folder.display()),
        Err(_) => source.to_owned(),
    };
    run(clone.arg("--").arg(address).arg(&repository))?;
    let mut list = quiet_git();
    let listed = run(list.arg("--git-dir").arg(&repository).args(["ls-tree", "-r", "-z", "--long", "HEAD"]))?;
    let mut bundle = Bundle::default();
    let mut wanted = Vec::new();
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let Some((facts, path)) = line.split_once('\t') else { continue };
        let facts: Vec<&str> = facts.split_whitespace().collect();
        let [mode, kind, id, size] = facts[..] else { continue };
        match (mode, kind) {
            ("120000", _) => bundle.leave_out(path, "it is a link"),
            (_, "blob") if size.parse::<u64>().is_ok_and(|size| size <= IMPORT_FILE_BYTES) => {
                wanted.push((id.to_owned(), path.to_owned()));
            }
            (_, "blob") => return Err(Unfit::TooLarge.into()),
            _ => bundle.leave_out(path, "it is another repository"),
        }
        if wanted.len() > IMPORT_FILES {
            return Err(Unfit::TooMany.into());
        }
    }
    read_blobs(&repository, &wanted, &mut bundle)?;
    Ok(bundle)
}

/// Reads objects, one after the other, so that neither side waits for the other.
fn read_blobs(repository: &Path, wanted: &[(String, String)], bundle: &mut Bundle) -> Result<(), ImportError> {
    let mut command = quiet_git();
    command.arg("--git-dir").arg(repository).args(["cat-file", "--batch"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let broken = || ImportError::Git("an object cannot be read".into());
    let (mut input, output) = child.stdin.take().zip(child.stdout.take()).ok_or_else(broken)?;
    let mut output = BufReader::new(output);
    for (id, path) in wanted {
        writeln!(input, "{id}")?;
        let mut head = String::new();
        output.read_line(&mut head)?;
        let size: u64 = head.split_whitespace().nth(2).and_then(|size| size.parse().ok()).ok_or_else(broken)?;
        let mut bytes = vec![0; usize::try_from(size).map_err(|_error| broken())?];
        output.read_exact(&mut bytes)?;
        output.read_exact(&mut [0])?;
        bundle.add(path, bytes.as_slice())?;
    }
    drop(input);
    child.wait()?;
    Ok(())
}

/// Git without questions, without what repositories and templates could run, and over known transports only.
fn quiet_git() -> Command {
    let mut git = Command::new("git");
    git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "https:http:ssh:file").env_remove("GIT_DIR");
    git.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    git.args(["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30"]);
    git.stdin(Stdio::null());
    git
}

fn run(command: &mut Command) -> Result<Vec<u8>, ImportError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ImportError::Git(crate::model::tool::cut(&crate::model::hidden::visible(&said), 400)))
}
