//! Models for ONNX Runtime: an encoder or a reranker that the config names. Must not know how they are run: that is `search`.

use std::path::PathBuf;

/// A model and what runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxModel {
    /// Where its files are.
    pub source: OnnxSource,
    /// The library of ONNX Runtime; where there is none, the system is asked for it by its usual name.
    pub runtime: Option<PathBuf>,
}

/// Where a model's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnnxSource {
    /// A folder.
    Folder(PathBuf),
    /// The model hub, by the model's name; what is not in the cache is fetched.
    Hub(String),
}

impl OnnxSource {
    /// As reports name it: a folder by its last part.
    pub fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned(),
            Self::Hub(name) => name.clone(),
        }
    }
}

/// A model that makes a vector of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxEncoder {
    /// Its files and what runs it.
    pub model: OnnxModel,
    /// What it was trained with before a query.
    pub query_prefix: String,
    /// And before what can be found.
    pub passage_prefix: String,
    /// How a text's vector is made of its tokens'; the hub's models have their own way.
    pub pooling: Pooling,
}

/// How a text's vector is made of its tokens'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    #[default]
    Mean,
    /// That of the first one.
    Cls,
}

/// A model that says how well a text answers a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnnxReranker {
    /// Its files and what runs it.
    pub model: OnnxModel,
    /// Best hits that it looks at.
    pub n_hits: usize,
}
