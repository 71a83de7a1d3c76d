//! Finding by meaning: what texts are to an encoder, kept for all who search. The encoder is loaded when it is first needed.
#![cfg_attr(
    not(feature = "semantic"),
    allow(unreachable_code, unused_assignments, reason = "there is no encoder then, and the compiler knows")
)]

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use sha2::{Digest as _, Sha256};

use super::{
    encoder::{Encoder, Role, Vectors},
    fuse,
    index::DETAILED_MOST,
};

/// Word pieces of a passage's texts that are read …
const READ_PIECES: usize = 96;
/// … and of which the vectors are kept, of both of its texts: what stands first says most, and knows what comes after it.
const PIECES: [usize; 2] = [48, 64];
/// Word pieces of a query that count.
const QUERY_PIECES: usize = 256;
/// Passages that are encoded together: between two of them others can be looked up, and the work can end.
const BATCH: usize = 8;
/// Shape of the files in the cache; a change of these, of what passages are made of or of the file's form counts up.
const CACHE_FORM: u32 = 1;

/// What stands for an entry: two texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Passage {
    /// What it is called and for.
    pub(super) about: String,
    /// The beginning of its text, without markup, or what belongs to it.
    pub(super) body: String,
}

/// What a passage is known by.
pub type PassageId = [u8; 16];

impl Passage {
    /// Equal passages have equal ones.
    pub(super) fn id(&self) -> PassageId {
        let digest = Sha256::new().chain_update(&self.about).chain_update([0]).chain_update(&self.body).finalize();
        digest.first_chunk().copied().unwrap_or_default()
    }
}

/// A passage that is known.
#[derive(Debug)]
pub(super) struct Encoded {
    /// Both of its texts.
    pub(super) texts: [Vectors; 2],
    /// Where its first text lies as a whole, `[n_dimensions]`, of length 1.
    pub(super) direction: Vec<f32>,
}

/// How exactly passages are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Detail {
    /// A vector for each word piece.
    Pieces,
    /// One for each text.
    Mean,
}

impl Detail {
    pub(super) fn of(n_entries: usize) -> Self {
        if n_entries > DETAILED_MOST { Self::Mean } else { Self::Pieces }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pieces => "pieces",
            Self::Mean => "mean",
        }
    }
}

/// Which encoder there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one that is part of the program.
    Embedded,
    /// A file of the same kind.
    File(PathBuf),
    /// None: search goes by words only.
    #[default]
    Off,
}

/// An encoder and what it said; shared by all snapshots, so that only what is new is encoded.
#[derive(Debug, Default)]
pub struct Semantic {
    choice: Choice,
    encoder: OnceLock<Option<Encoder>>,
    /// The folder of the cache.
    folder: Option<PathBuf>,
    known: RwLock<HashMap<(PassageId, Detail), Arc<Encoded>>>,
}

impl Semantic {
    /// Reads nothing yet; vectors are kept in the folder `cache` too, where there is one.
    pub fn new(choice: Choice, cache: Option<PathBuf>) -> Self {
        Self { choice, folder: cache, ..Self::default() }
    }

    /// Without an encoder: search goes by words only.
    pub fn off() -> Self {
        Self::default()
    }

    /// Whether there is no encoder, as was wished or as it could not be loaded.
    pub(super) fn is_off(&self) -> bool {
        self.choice == Choice::Off || self.encoder.get().is_some_and(Option::is_none)
    }

    /// The encoder. Loading takes a quarter of a second; where it fails, that is said once.
    fn encoder(&self) -> Option<&Encoder> {
        let load = || {
            let loaded = match &self.choice {
                Choice::Embedded => Encoder::embedded().map_err(|error| error.to_string()),
                Choice::File(file) => fs::read(file)
                    .map_err(|error| format!("{}: {error}", file.display()))
                    .and_then(|bytes| Encoder::new(bytes.into()).map_err(|error| error.to_string())),
                Choice::Off => return None,
            };
            loaded.inspect_err(|error| tracing::warn!(error, "search goes by words only: there is no encoder")).ok()
        };
        self.encoder.get_or_init(load).as_ref()
    }

    /// Makes the passages known that are not yet, from the cache or by the encoder (some 60 ms each), as long as
    /// `is_wanted`.
    pub(super) fn learn(&self, passages: &[(PassageId, Passage)], detail: Detail, is_wanted: impl Fn() -> bool) {
        let known = self.known(passages.iter().map(|(id, _)| *id), detail);
        let new = passages.iter().zip(known).filter(|(_, known)| known.is_none());
        let new: Vec<&(PassageId, Passage)> = new.map(|(passage, _)| passage).collect();
        let Some(encoder) = (!new.is_empty()).then(|| self.encoder()).flatten() else { return };
        let folder = self.folder.as_ref().map(|folder| folder.join(cache_name(encoder, detail)));
        let read = |id: PassageId| folder.as_ref().and_then(|folder| read(&folder.join(file_name(id))));
        let mut unread = Vec::new();
        for passage in new {
            match read(passage.0) {
                Some(vectors) => self.keep(passage.0, detail, vectors),
                None => unread.push(passage),
            }
        }
        for batch in unread.chunks(BATCH) {
            if !is_wanted() {
                return;
            }
            let encode = |text: fn(&Passage) -> &str, kept| {
                let texts: Vec<&str> = batch.iter().map(|(_, passage)| text(passage)).collect();
                encoder.encode(&texts, Role::Passage, READ_PIECES).into_iter().map(move |vectors| vectors.first(kept))
            };
            let about = encode(|passage| &passage.about, PIECES[0]);
            let body = encode(|passage| &passage.body, PIECES[1]);
            for (((id, _), about), body) in batch.iter().zip(about).zip(body) {
                let vectors = match detail {
                    Detail::Pieces => [about, body],
                    Detail::Mean => [about.mean(), body.mean()],
                };
                if let Some(Err(error)) = folder.as_ref().map(|folder| write(folder, &file_name(*id), &vectors)) {
                    tracing::debug!(%error, "vectors cannot be kept on disk");
                }
                self.keep(*id, detail, vectors);
            }
        }
    }

    /// The vectors of the query's word pieces, or their mean; `None` without an encoder, or of nothing.
    pub(super) fn query(&self, query: &str, detail: Detail) -> Option<Vectors> {
        let vectors = self.encoder()?.encode(&[query], Role::Query, QUERY_PIECES).pop()?;
        let vectors = if detail == Detail::Mean { vectors.mean() } else { vectors };
        (!vectors.rarities().is_empty()).then_some(vectors)
    }

    /// What is known of passages, in their order.
    pub(super) fn known(&self, ids: impl Iterator<Item = PassageId>, detail: Detail) -> Vec<Option<Arc<Encoded>>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        ids.map(|id| known.get(&(id, detail)).cloned()).collect()
    }

    /// Forgets all but these.
    pub fn keep_only(&self, ids: &HashSet<PassageId>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).retain(|(id, _), _| ids.contains(id));
    }

    fn keep(&self, id: PassageId, detail: Detail, texts: [Vectors; 2]) {
        let direction = fuse::of_length_1(texts[0].sum());
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((id, detail), Arc::new(Encoded { texts, direction }));
    }
}

/// Vectors of different encoders say nothing about each other, so each has a folder of its own.
fn cache_name(encoder: &Encoder, detail: Detail) -> String {
    format!("{}-{}-{CACHE_FORM}", encoder.digest(), detail.name())
}

fn file_name(id: PassageId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(file: &Path) -> Option<[Vectors; 2]> {
    let bytes = fs::read(file).ok()?;
    let (size, rest) = bytes.split_first_chunk()?;
    let (about, body) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
    Some([Vectors::parse(about)?, Vectors::parse(body)?])
}

/// Under another name first, as others may read or write the same.
fn write(folder: &Path, name: &str, [about, body]: &[Vectors; 2]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let (about, body) = (about.to_bytes(), body.to_bytes());
    let size = u32::try_from(about.len()).map_err(io::Error::other)?.to_le_bytes();
    let passing = folder.join(format!("{name}.{}", std::process::id()));
    fs::write(&passing, [&size[..], &about, &body].concat())?;
    fs::rename(passing, folder.join(name))
}

#[cfg(all(test, feature = "semantic"))]
mod tests {
    use super::*;

    fn passages(texts: &[&str]) -> Vec<(PassageId, Passage)> {
        let passage = |text: &&str| Passage { about: (*text).to_owned(), body: format!("More of {text}.") };
        texts.iter().map(passage).map(|passage| (passage.id(), passage)).collect()
    }

    fn known(semantic: &Semantic, passages: &[(PassageId, Passage)], detail: Detail) -> Vec<bool> {
        semantic.known(passages.iter().map(|(id, _)| *id), detail).iter().map(Option::is_some).collect()
    }

    #[test]
    fn only_what_is_new_is_encoded_and_the_cache_is_as_good_as_the_encoder() {
        let folder = tempfile::tempdir().unwrap();
        let semantic = || Semantic::new(Choice::Embedded, Some(folder.path().to_owned()));
        let (old, all) = (passages(&["orders", "mail"]), passages(&["orders", "mail", "weather"]));
        let first = semantic();
        first.learn(&old, Detail::Pieces, || true);
        assert_eq!(known(&first, &all, Detail::Pieces), [true, true, false]);
        assert_eq!(known(&first, &old, Detail::Mean), [false, false], "another detail is something else");

        let second = semantic();
        // Of nothing that would have to be encoded.
        second.learn(&all, Detail::Pieces, || false);
        assert_eq!(known(&second, &all, Detail::Pieces), [true, true, false]);
        let [a, b] =
            [&first, &second].map(|semantic| semantic.known([old[0].0].into_iter(), Detail::Pieces).remove(0).unwrap());
        assert_eq!(a.texts, b.texts);

        let files = || fs::read_dir(fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path()).unwrap();
        for file in files() {
            fs::write(file.unwrap().path(), "cut").unwrap();
        }
        let third = semantic();
        third.learn(&all, Detail::Pieces, || true);
        assert_eq!(known(&third, &all, Detail::Pieces), [true; 3], "what cannot be read is encoded anew");
        assert_eq!(files().count(), 3);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let semantic = Semantic::new(Choice::Embedded, None);
        let all = passages(&["orders", "mail"]);
        semantic.learn(&all, Detail::Mean, || true);
        semantic.keep_only(&HashSet::from([all[1].0]));
        assert_eq!(known(&semantic, &all, Detail::Mean), [false, true]);
        assert_eq!(semantic.query("orders", Detail::Mean).unwrap().rarities().len(), 1);
        assert!(semantic.query("orders of today", Detail::Pieces).unwrap().rarities().len() > 2);
        assert!(semantic.query("", Detail::Pieces).is_none());
    }
}
