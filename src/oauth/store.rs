//! The file of logins: only its owner can read it, and no config can name it, so that a login is found by what it is for and
//! by nothing that somebody else wrote.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

use crate::{
    files::{self, Stamp},
    model::{limits::LOGINS_BYTES, program::OAuth},
};

/// The newest `version` that is read.
const VERSION: u64 = 1;

/// The file's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Logins {
    version: u64,
    logins: Vec<Entry>,
}

/// One login.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    /// Of the server.
    url: String,
    /// Whose it is; all callers' where it is absent.
    caller: Option<String>,
    #[serde(flatten)]
    kept: Kept,
}

/// What is kept of a login.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Of a client that registered itself and was given one.
    pub(super) client_secret: Option<String>,
    pub(super) credentials: StoredCredentials,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// The place of one login in the file.
#[derive(Debug, Clone)]
pub struct Slot {
    file: PathBuf,
    url: String,
    caller: Option<String>,
    /// What a registration gave besides; it is kept with the tokens.
    client_secret: Option<String>,
    /// What the file held when it was last looked at.
    seen: Arc<Mutex<Option<Seen>>>,
}

/// What a file held.
#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    kept: Option<Kept>,
}

impl Slot {
    /// Where the login of `caller`, or of all where there is none, for the server at `url` is kept.
    ///
    /// # Errors
    /// There is no place for such.
    pub fn new(oauth: &OAuth, url: &str, caller: Option<&str>) -> Result<Self, String> {
        let file = oauth.logins.clone().ok_or("there is no home folder to keep logins in; set XDG_DATA_HOME")?;
        let (url, caller) = (url.to_owned(), caller.map(str::to_owned));
        Ok(Self { file: files::target(&file), url, caller, client_secret: None, seen: Arc::default() })
    }

    pub(super) fn with_secret(self, client_secret: Option<String>) -> Self {
        Self { client_secret, ..self }
    }

    /// What is kept, if anything is.
    pub(super) fn kept(&self) -> io::Result<Option<Kept>> {
        let Some(stamp) = Stamp::of(&self.file)? else { return Ok(None) };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.as_ref().filter(|seen| seen.stamp == stamp) {
            return Ok(seen.kept.clone());
        }
        let kept = read(&self.file)?.logins.into_iter().find(|entry| self.is_of(entry)).map(|entry| entry.kept);
        *seen = Some(Seen { stamp, kept: kept.clone() });
        Ok(kept)
    }

    /// Forgets the login; says whether there was one.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget(&self) -> io::Result<bool> {
        let mut n_gone = 0;
        self.change(|logins| {
            let n_before = logins.len();
            logins.retain(|entry| !self.is_of(entry));
            n_gone = n_before - logins.len();
        })?;
        Ok(n_gone > 0)
    }

    fn put(&self, credentials: StoredCredentials) -> io::Result<()> {
        self.change(|logins| {
            let before = logins.iter().position(|entry| self.is_of(entry)).map(|position| logins.remove(position));
            // A refresh knows nothing of the secret that came with the registration.
            let client_secret = self.client_secret.clone().or_else(|| before?.kept.client_secret);
            let (url, caller) = (self.url.clone(), self.caller.clone());
            logins.push(Entry { url, caller, kept: Kept { client_secret, credentials } });
        })
    }

    fn is_of(&self, entry: &Entry) -> bool {
        entry.url == self.url && entry.caller == self.caller
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = files::lock(&self.file)?;
        let mut all = read(&self.file)?;
        change(&mut all.logins);
        let text = serde_json::to_string_pretty(&all)? + "\n";
        files::write_private(&self.file, text.as_bytes())?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        drop(lock);
        Ok(())
    }

    /// The file that those who renew this login lock, so that a token that can be used once is used by one of them.
    fn turn(&self) -> PathBuf {
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        name.push(".renewal");
        self.file.with_file_name(name)
    }
}

fn read(file: &Path) -> io::Result<Logins> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Logins { version: VERSION, logins: Vec::new() });
        }
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    opened.take(LOGINS_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LOGINS_BYTES {
        return Err(io::Error::other(format!("it has over {LOGINS_BYTES} bytes")));
    }
    // What it holds is nobody's business, so that the reason names places only.
    let invalid = |error: serde_json::Error| {
        io::Error::other(format!("it is no file of logins: line {}, column {}", error.line(), error.column()))
    };
    let logins: Logins = serde_json::from_str(&text).map_err(invalid)?;
    if logins.version > VERSION {
        return Err(io::Error::other("a newer gatekey wrote it"));
    }
    Ok(logins)
}

fn failed(error: io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for Slot {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.kept().map_err(failed)?.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let slot = self.clone();
        away(move || slot.put(credentials)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let slot = self.clone();
        away(move || slot.forget().map(drop)).await
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let turn = self.turn();
        let guard = away(move || files::lock(&turn)).await?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}

/// Locks are waited for away from the threads that serve everybody.
async fn away<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, AuthError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(failed),
        Err(error) => Err(AuthError::CredentialStoreError(error.to_string())),
    }
}
