//! Finding by meaning: what texts are to an encoder, kept for all who search. The encoder is loaded when it is first needed.
#![cfg_attr(
    not(feature = "semantic"),
    allow(unreachable_code, unused_assignments, reason = "there is no encoder then, and the compiler knows")
)]

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use sha2::{Digest as _, Sha256};

use super::{
    encoder::{Encoder, Role, Vectors},
    fault::Fault,
    fuse,
    index::DETAILED_MOST,
    rerank::Reranker,
};
use crate::model::onnx::{OnnxEncoder, OnnxReranker};

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
    /// Both texts as one.
    pub(super) fn whole(&self) -> String {
        format!("{} {}", self.about, self.body)
    }

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
    /// A model for ONNX Runtime; the one that is part of the program where it cannot be used.
    Onnx(OnnxEncoder),
    /// None: search goes by words only.
    #[default]
    Off,
}

/// An encoder and what it said; shared by all snapshots, so that only what is new is encoded.
#[derive(Debug, Default)]
pub struct Semantic {
    choice: Choice,
    encoder: OnceLock<Option<Loaded>>,
    /// Whether it was said that the encoder failed at a text.
    has_warned: AtomicBool,
    /// What puts the best hits in order.
    pub(super) reranker: Reranker,
    /// The folder of the cache.
    folder: Option<PathBuf>,
    known: RwLock<HashMap<(PassageId, Detail), Arc<Encoded>>>,
}

/// An encoder, and what it is called.
#[derive(Debug)]
struct Loaded {
    encoder: Encoder,
    name: String,
}

impl Semantic {
    /// Reads nothing yet; vectors are kept in the folder `cache` too, where there is one.
    pub fn new(choice: Choice, cache: Option<PathBuf>) -> Self {
        Self { choice, folder: cache, ..Self::default() }
    }

    /// With what puts the best hits in order.
    #[must_use]
    pub fn with_reranker(self, reranker: Option<OnnxReranker>) -> Self {
        Self { reranker: Reranker::new(reranker), ..self }
    }

    /// Without an encoder: search goes by words only.
    pub fn off() -> Self {
        Self::default()
    }

    /// Whether there is no encoder, as was wished or as it could not be loaded.
    pub(super) fn is_off(&self) -> bool {
        self.choice == Choice::Off || self.encoder.get().is_some_and(Option::is_none)
    }

    /// What the encoder is called, once it is loaded: `embedded`, or a file's, folder's or model's name.
    pub fn encoder_name(&self) -> Option<&str> {
        self.loaded().map(|loaded| loaded.name.as_str())
    }

    /// What the reranker is called, once it is loaded.
    pub fn reranker_name(&self) -> Option<String> {
        self.reranker.name()
    }

    /// Whether it can be told of a query that nothing fits: the rule was made with vectors of word pieces.
    pub(super) fn has_doubts(&self) -> bool {
        self.loaded().is_some_and(|loaded| !loaded.encoder.is_whole())
    }

    fn loaded(&self) -> Option<&Loaded> {
        self.encoder.get()?.as_ref()
    }

    /// The encoder. Loading takes a quarter of a second, or as long as a model takes to be fetched; where it fails, that is
    /// said once.
    fn encoder(&self) -> Option<&Encoder> {
        self.encoder.get_or_init(|| self.load()).as_ref().map(|loaded| &loaded.encoder)
    }

    fn load(&self) -> Option<Loaded> {
        let named = |name: String| move |encoder| Loaded { encoder, name };
        let embedded = || Encoder::embedded().map(named("embedded".to_owned()));
        let (loaded, instead) = match &self.choice {
            Choice::Embedded => (embedded(), None),
            Choice::File(file) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (Encoder::file(file).map(named(name)), None)
            }
            Choice::Onnx(model) => {
                let loaded = Encoder::onnx(model, self.folder.as_deref()).map(named(model.model.source.name()));
                let instead = if loaded.is_err() { embedded().ok() } else { None };
                (loaded, instead)
            }
            Choice::Off => return None,
        };
        let error = match loaded {
            Ok(loaded) => return Some(loaded),
            Err(error) => error,
        };
        let hint = error.hint;
        match instead {
            Some(_) => tracing::warn!(%error, hint, "search goes by the embedded encoder: the config's cannot be used"),
            None => tracing::warn!(%error, hint, "search goes by words only: there is no encoder"),
        }
        instead
    }

    /// It is asked again all the same: no text of somebody's may take the encoder from all others.
    fn failed(&self, error: &Fault) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, hint = error.hint, "the encoder failed at a text, which goes by words only");
        }
    }

    /// An encoder of whole texts knows no pieces. Before one is loaded nothing is known, in whatever detail.
    fn possible(&self, detail: Detail) -> Detail {
        if self.loaded().is_some_and(|loaded| loaded.encoder.is_whole()) { Detail::Mean } else { detail }
    }

    /// Makes the passages known that are not yet, from the cache or by the encoder (some 60 ms each), as long as
    /// `is_wanted`; and loads the reranker.
    pub(super) fn learn(&self, passages: &[(PassageId, Passage)], detail: Detail, is_wanted: impl Fn() -> bool) {
        self.encode_new(passages, detail, is_wanted);
        self.reranker.load(self.folder.as_deref());
    }

    fn encode_new(&self, passages: &[(PassageId, Passage)], detail: Detail, is_wanted: impl Fn() -> bool) {
        let known = self.known(passages.iter().map(|(id, _)| *id), detail);
        let new = passages.iter().zip(known).filter(|(_, known)| known.is_none());
        let new: Vec<&(PassageId, Passage)> = new.map(|(passage, _)| passage).collect();
        let Some(encoder) = (!new.is_empty()).then(|| self.encoder()).flatten() else { return };
        let detail = self.possible(detail);
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
                let encoded = encoder.encode(&texts, Role::Passage, READ_PIECES);
                encoded.map(|encoded| encoded.into_iter().map(move |vectors| vectors.first(kept)))
            };
            let about = encode(|passage| &passage.about, PIECES[0]);
            let body = encode(|passage| &passage.body, PIECES[1]);
            let (about, body) = match (about, body) {
                (Ok(about), Ok(body)) => (about, body),
                (Err(error), _) | (_, Err(error)) => {
                    self.failed(&error);
                    continue;
                }
            };
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
    ///
    /// # Errors
    /// The encoder failed, which was said.
    pub(super) fn query(&self, query: &str, detail: Detail) -> Result<Option<Vectors>, Fault> {
        let Some(encoder) = self.encoder() else { return Ok(None) };
        let encoded = encoder.encode(&[query], Role::Query, QUERY_PIECES);
        let Some(vectors) = encoded.inspect_err(|error| self.failed(error))?.pop() else { return Ok(None) };
        let vectors = if self.possible(detail) == Detail::Mean { vectors.mean() } else { vectors };
        Ok((!vectors.rarities().is_empty()).then_some(vectors))
    }

    /// What is known of passages, in their order.
    pub(super) fn known(&self, ids: impl Iterator<Item = PassageId>, detail: Detail) -> Vec<Option<Arc<Encoded>>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let detail = self.possible(detail);
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
        assert_eq!(semantic.query("orders", Detail::Mean).unwrap().unwrap().rarities().len(), 1);
        assert!(semantic.query("orders of today", Detail::Pieces).unwrap().unwrap().rarities().len() > 2);
        assert!(semantic.query("", Detail::Pieces).unwrap().is_none());
    }
}
