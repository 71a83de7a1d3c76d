//! Models that ONNX Runtime runs: encoders, which make one vector of a text, and rerankers. Its library is opened when the first
//! of them is loaded. Nothing here panics, whatever library or model there is, as far as these panic themselves and do not
//! crash.

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread::available_parallelism,
};

use fastembed::{
    EmbeddingModel, InitOptionsUserDefined, OnnxSource as Onnx, RerankInitOptions, RerankInitOptionsUserDefined,
    RerankerModel, TextEmbedding, TextInitOptions, TextRerank, TokenizerFiles, UserDefinedEmbeddingModel,
    UserDefinedRerankingModel,
};
use sha2::{Digest as _, Sha256};

use super::{encoder::Role, fault::Fault};
use crate::model::{
    name::did_you_mean,
    onnx::{OnnxEncoder, OnnxReranker, OnnxSource, Pooling},
};

/// Tokens of a text that count, with its prefix; of a pair in all.
const TOKENS: usize = 256;
/// Threads of a model do not spin while they wait: an idle proxy costs nothing.
const WITHOUT_SPINNING: (&str, &str) = ("session.intra_op.allow_spinning", "0");

const LIBRARY_HINT: &str = "install ONNX Runtime 1.24 or newer (`pip install onnxruntime`) and name its library by `runtime` or ORT_DYLIB_PATH";
const FOLDER_HINT: &str = "export the model with its tokenizer into the folder";
const HUB_HINT: &str = "see that the hub can be reached, or name a `folder`";
const CACHE_HINT: &str = "name a folder by `search.cache`";
const MODEL_HINT: &str = "name another model: the library cannot run this one";

/// A model that makes a vector of a text. One text at a time: what stands beside a text would change the vectors of models with
/// dynamic quantization, and others can ask in between.
pub(super) struct TextEncoder {
    model: Mutex<TextEmbedding>,
    /// Before a query, before a passage.
    prefixes: [String; 2],
    digest: String,
}

impl std::fmt::Debug for TextEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextEncoder({})", self.digest)
    }
}

impl TextEncoder {
    /// Opens the library, reads the model and tries it.
    pub(super) fn load(encoder: &OnnxEncoder, cache: Option<&Path>) -> Result<Self, Fault> {
        open_library(encoder.model.runtime.as_deref())?;
        let prefixes = [encoder.query_prefix.clone(), encoder.passage_prefix.clone()];
        let (model, mut digest) = match &encoder.model.source {
            OnnxSource::Folder(folder) => own_encoder(folder, encoder.pooling)?,
            OnnxSource::Hub(name) => hub_encoder(name, cache)?,
        };
        // What changes the vectors.
        prefixes.iter().for_each(|prefix| digest.update([&[0_u8][..], prefix.as_bytes()].concat()));
        let digest = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let loaded = Self { model: Mutex::new(model), prefixes, digest };
        loaded.encode("a text", Role::Query)?;
        Ok(loaded)
    }

    /// Of the model and all that changes its vectors, 16 hexadecimal digits.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The vector of a text.
    pub(super) fn encode(&self, text: &str, role: Role) -> Result<Vec<f32>, Fault> {
        let prefix = &self.prefixes[usize::from(role == Role::Passage)];
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let vectors = guarded(MODEL_HINT, || model.embed([format!("{prefix}{text}")], None))?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        // A reranker makes one number.
        let is_usable = vector.len() > 1 && vector.iter().all(|number| number.is_finite());
        is_usable.then_some(vector).ok_or_else(|| Fault::new("the encoder makes no vector of a text", MODEL_HINT))
    }
}

/// A model that says how well texts answer a query.
pub(super) struct PairScorer(Mutex<TextRerank>);

impl std::fmt::Debug for PairScorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PairScorer")
    }
}

impl PairScorer {
    /// Opens the library, reads the model and tries it.
    pub(super) fn load(reranker: &OnnxReranker, cache: Option<&Path>) -> Result<Self, Fault> {
        open_library(reranker.model.runtime.as_deref())?;
        let model = match &reranker.model.source {
            OnnxSource::Folder(folder) => own_reranker(folder)?,
            OnnxSource::Hub(name) => hub_reranker(name, cache)?,
        };
        let loaded = Self(Mutex::new(model));
        loaded.scores("a text", &["another".to_owned()])?;
        Ok(loaded)
    }

    /// How well each text answers, in their order; higher is better.
    pub(super) fn scores(&self, query: &str, texts: &[String]) -> Result<Vec<f32>, Fault> {
        let mut model = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scores = vec![f32::NAN; texts.len()];
        // One by one, as for encoders.
        let results = guarded(MODEL_HINT, || {
            model.rerank(query, texts.iter().map(String::as_str).collect::<Vec<&str>>(), false, Some(1))
        })?;
        for result in results {
            scores.get_mut(result.index).into_iter().for_each(|score| *score = result.score);
        }
        let is_usable = scores.iter().all(|score| score.is_finite());
        is_usable.then_some(scores).ok_or_else(|| Fault::new("the reranker gives a text no score", MODEL_HINT))
    }
}

/// Before anything else of `ort`: that would look for a library on its own, and panic where there is none. A process has one;
/// the first stays.
fn open_library(runtime: Option<&Path>) -> Result<(), Fault> {
    let usual = PathBuf::from(format!("{}onnxruntime{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX));
    let Ok(opened) = catch_unwind(|| ort::init_from(runtime.unwrap_or(&usual)).map(drop)) else {
        return Err(Fault::new("the library of ONNX Runtime is broken", LIBRARY_HINT));
    };
    opened.map_err(|error| Fault::new(format!("open the library of ONNX Runtime: {error}"), LIBRARY_HINT))
}

fn own_encoder(folder: &Path, pooling: Pooling) -> Result<(TextEmbedding, Sha256), Fault> {
    let files = Files::find(folder)?;
    let weights = read(&files.model)?;
    let tokenizer = files.tokenizer()?;
    let mut digest = Sha256::new().chain_update(&weights).chain_update(&tokenizer.tokenizer_file);
    let (pooling, mark) = match pooling {
        Pooling::Mean => (fastembed::Pooling::Mean, [0_u8]),
        Pooling::Cls => (fastembed::Pooling::Cls, [1_u8]),
    };
    digest.update(mark);
    let mut model = UserDefinedEmbeddingModel::new(weights, tokenizer).with_pooling(pooling);
    // Weights over 2 GB stand beside the model.
    for name in ["model.onnx_data", "model.onnx.data"] {
        let file = files.model.with_file_name(name);
        if file.exists() {
            let weights = read(&file)?;
            digest.update(&weights);
            model = model.with_external_initializer(name.to_owned(), weights);
        }
    }
    let (key, value) = WITHOUT_SPINNING;
    let options = InitOptionsUserDefined::new()
        .with_max_length(TOKENS)
        .with_intra_threads(n_threads())
        .with_session_config(key, value);
    let model = guarded(MODEL_HINT, || TextEmbedding::try_new_from_user_defined(model, options))?;
    Ok((model, digest))
}

fn hub_encoder(name: &str, cache: Option<&Path>) -> Result<(TextEmbedding, Sha256), Fault> {
    // Some names stand for several files; the first is the whole one, and the others are known by names of their own.
    let mut models: Vec<(String, String, EmbeddingModel)> = TextEmbedding::list_supported_models()
        .into_iter()
        .map(|known| (known.model_code, known.model.to_string(), known.model))
        .collect();
    models.sort_by(|a, b| a.1.cmp(&b.1));
    let is_it = |known: &&(String, String, EmbeddingModel)| {
        known.0.eq_ignore_ascii_case(name) || known.1.eq_ignore_ascii_case(name)
    };
    let Some((code, own_name, model)) = models.iter().find(is_it).cloned() else {
        return Err(unknown(name, models.iter().map(|(code, ..)| code.as_str())));
    };
    let folder = hub_folder(cache)?;
    let (key, value) = WITHOUT_SPINNING;
    let options = TextInitOptions::new(model)
        .with_cache_dir(folder.clone())
        .with_show_download_progress(false)
        .with_max_length(TOKENS)
        .with_intra_threads(n_threads())
        .with_session_config(key, value);
    tracing::info!(model = code, "the encoder is loaded; what is not in the cache is fetched from the hub");
    let model = guarded(HUB_HINT, || TextEmbedding::try_new(options))?;
    // A commit names what all files hold.
    let commit = fs::read(folder.join(format!("models--{}", code.replace('/', "--"))).join("refs/main"));
    let commit = commit.map_err(|error| Fault::new(format!("read the model's version: {error}"), HUB_HINT))?;
    Ok((model, Sha256::new().chain_update(own_name).chain_update(commit)))
}

fn own_reranker(folder: &Path) -> Result<TextRerank, Fault> {
    let files = Files::find(folder)?;
    let tokenizer = files.tokenizer()?;
    let model = UserDefinedRerankingModel::new(Onnx::File(files.model), tokenizer);
    let (key, value) = WITHOUT_SPINNING;
    let options = RerankInitOptionsUserDefined::new()
        .with_max_length(TOKENS)
        .with_intra_threads(n_threads())
        .with_session_config(key, value);
    guarded(MODEL_HINT, || TextRerank::try_new_from_user_defined(model, options))
}

fn hub_reranker(name: &str, cache: Option<&Path>) -> Result<TextRerank, Fault> {
    let Ok(model) = name.parse::<RerankerModel>() else {
        let known: Vec<String> =
            TextRerank::list_supported_models().into_iter().map(|known| known.model_code).collect();
        return Err(unknown(name, known.iter().map(String::as_str)));
    };
    let (key, value) = WITHOUT_SPINNING;
    let options = RerankInitOptions::new(model)
        .with_cache_dir(hub_folder(cache)?)
        .with_show_download_progress(false)
        .with_max_length(TOKENS)
        .with_intra_threads(n_threads())
        .with_session_config(key, value);
    tracing::info!(model = name, "the reranker is loaded; what is not in the cache is fetched from the hub");
    guarded(HUB_HINT, || TextRerank::try_new(options))
}

/// The files of a model's folder.
struct Files {
    folder: PathBuf,
    model: PathBuf,
}

/// In the order of [`TokenizerFiles`].
const TOKENIZER_FILES: [&str; 4] =
    ["tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

impl Files {
    /// Says of all that is not there.
    fn find(folder: &Path) -> Result<Self, Fault> {
        let models = ["model.onnx", "onnx/model.onnx"].map(|name| folder.join(name));
        let model = models.into_iter().find(|file| file.is_file());
        let mut missing: Vec<&str> = model.is_none().then_some("model.onnx").into_iter().collect();
        missing.extend(TOKENIZER_FILES.into_iter().filter(|name| !folder.join(name).is_file()));
        let reason = format!("`{}` has no {}", folder.display(), missing.join(", "));
        let found = model.filter(|_| missing.is_empty()).map(|model| Self { folder: folder.to_owned(), model });
        found.ok_or_else(|| Fault::new(reason, FOLDER_HINT))
    }

    fn tokenizer(&self) -> Result<TokenizerFiles, Fault> {
        let [tokenizer_file, config_file, special_tokens_map_file, tokenizer_config_file] =
            TOKENIZER_FILES.map(|name| read(&self.folder.join(name)));
        Ok(TokenizerFiles {
            tokenizer_file: tokenizer_file?,
            config_file: config_file?,
            special_tokens_map_file: special_tokens_map_file?,
            tokenizer_config_file: tokenizer_config_file?,
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(file).map_err(|error| Fault::new(format!("read `{}`: {error}", file.display()), FOLDER_HINT))
}

/// Where models of the hub are kept: HF_HOME counts for fastembed whatever it is told.
fn hub_folder(cache: Option<&Path>) -> Result<PathBuf, Fault> {
    let own = || cache.map(|cache| cache.join("models"));
    let folder = env::var("HF_HOME").ok().map(PathBuf::from).or_else(own);
    folder.ok_or_else(|| Fault::new("there is no folder to keep a model of the hub in", CACHE_HINT))
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Fault {
    let close = did_you_mean(name, known).first().map(|close| format!("; did you mean `{close}`?"));
    Fault::new(format!("`{name}` is not on fastembed's list{}", close.unwrap_or_default()), HUB_HINT)
}

/// Half of the processor: calls pass at the same time.
fn n_threads() -> usize {
    available_parallelism().map_or(1, |n| (n.get() / 2).max(1))
}

/// What fastembed makes of it, with all causes; where it panics, that is an error too.
fn guarded<T>(hint: &'static str, run: impl FnOnce() -> fastembed::Result<T>) -> Result<T, Fault> {
    let Ok(done) = catch_unwind(AssertUnwindSafe(run)) else {
        return Err(Fault::new("the model is not of this kind", MODEL_HINT));
    };
    done.map_err(|error| {
        let mut reason = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            reason.push_str(": ");
            reason.push_str(&deeper.to_string());
            cause = deeper.source();
        }
        Fault::new(reason, hint)
    })
}
