//! The models that `[search]` names: what is wrong with them, and what they are. Must not know whether they can be read.

use std::path::Path;

use super::{
    config::Encoder,
    raw::{RawEncoder, RawOnnxEncoder, RawPooling, RawReranker, RawSearch},
    variables::Environment,
};
use crate::model::{
    limits,
    onnx::{OnnxEncoder, OnnxModel, OnnxReranker, OnnxSource, Pooling},
};

/// Every path of `[search]`, with the pointer of its member.
pub(super) fn paths(search: &mut RawSearch) -> Vec<(String, &mut String)> {
    let mut paths = Vec::new();
    let mut add = |pointer: &str, path: Option<_>| paths.extend(path.map(|path| (pointer.to_owned(), path)));
    match &mut search.encoder {
        Some(RawEncoder::Named(file)) => add("/search/encoder", Some(file)),
        Some(RawEncoder::Onnx(raw)) => {
            add("/search/encoder/folder", raw.folder.as_mut());
            add("/search/encoder/runtime", raw.runtime.as_mut());
        }
        None => {}
    }
    if let Some(raw) = &mut search.reranker {
        add("/search/reranker/folder", raw.folder.as_mut());
        add("/search/reranker/runtime", raw.runtime.as_mut());
    }
    add("/search/cache", search.cache.as_mut());
    paths
}

/// What the schema cannot say, each with the pointer of its place.
pub(super) fn faults(search: &RawSearch) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    let has_one = |folder: &Option<String>, model: &Option<String>| folder.is_some() != model.is_some();
    let encoder = search.encoder.as_ref().and_then(RawEncoder::onnx);
    if encoder.is_some_and(|raw| !has_one(&raw.folder, &raw.model)) {
        let message = "`search/encoder`: exactly one of `folder` and `model` must be given".to_owned();
        faults.push(("/search/encoder", message));
    } else if encoder.is_some_and(|raw| raw.model.is_some() && raw.pooling.is_some()) {
        let message = "`search/encoder/pooling`: it is for a `folder`; how a `model` does it is known".to_owned();
        faults.push(("/search/encoder/pooling", message));
    }
    let reranker = search.reranker.as_ref();
    if reranker.is_some_and(|raw| !has_one(&raw.folder, &raw.model)) {
        let message = "`search/reranker`: exactly one of `folder` and `model` must be given".to_owned();
        faults.push(("/search/reranker", message));
    }
    let runtimes = encoder.and_then(|raw| raw.runtime.as_ref()).zip(reranker.and_then(|raw| raw.runtime.as_ref()));
    if runtimes.is_some_and(|(one, other)| one != other) {
        let message = "`search/reranker/runtime`: a process opens one library, and the encoder has another".to_owned();
        faults.push(("/search/reranker/runtime", message));
    }
    faults
}

/// Gives both models the one library that a process opens, where any of them or the environment names it.
pub(super) fn find_runtime(search: &mut RawSearch, environment: &Environment) {
    let of_reranker = search.reranker.as_ref().and_then(|raw| raw.runtime.clone());
    let of_encoder = search.encoder.as_ref().and_then(RawEncoder::onnx).and_then(|raw| raw.runtime.clone());
    // From the folder where gatekey runs, as everybody reads it, and not from the config's.
    let of_environment = || {
        let path = environment.value("ORT_DYLIB_PATH").filter(|path| !path.is_empty())?;
        Some(std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned()))
    };
    let runtime = of_encoder.or(of_reranker).or_else(of_environment);
    if let Some(RawEncoder::Onnx(raw)) = &mut search.encoder {
        raw.runtime.clone_from(&runtime);
    }
    if let Some(raw) = &mut search.reranker {
        raw.runtime = runtime;
    }
}

/// What compares meanings; paths start at `folder`.
pub(super) fn encoder(raw: Option<RawEncoder>, folder: &Path) -> Encoder {
    let raw = match raw {
        None => return Encoder::Embedded,
        Some(RawEncoder::Named(name)) => {
            return match name.as_str() {
                "embedded" => Encoder::Embedded,
                "off" => Encoder::Off,
                file => Encoder::File(folder.join(file)),
            };
        }
        Some(RawEncoder::Onnx(raw)) => raw,
    };
    let model = model(raw.folder, raw.model, raw.runtime, folder);
    let is_e5 = model.source.name().to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|part| part == "e5");
    let usual = |prefix: &str| if is_e5 { prefix.to_owned() } else { String::new() };
    Encoder::Onnx(OnnxEncoder {
        query_prefix: raw.query_prefix.unwrap_or_else(|| usual("query: ")),
        passage_prefix: raw.passage_prefix.unwrap_or_else(|| usual("passage: ")),
        pooling: match raw.pooling {
            None | Some(RawPooling::Mean) => Pooling::Mean,
            Some(RawPooling::Cls) => Pooling::Cls,
        },
        model,
    })
}

/// What puts the best hits in order; paths start at `folder`.
pub(super) fn reranker(raw: RawReranker, folder: &Path) -> OnnxReranker {
    let n_hits = raw.hits.unwrap_or(limits::RERANKED_HITS);
    OnnxReranker { model: model(raw.folder, raw.model, raw.runtime, folder), n_hits }
}

fn model(own: Option<String>, hub: Option<String>, runtime: Option<String>, folder: &Path) -> OnnxModel {
    let source = match hub {
        Some(name) => OnnxSource::Hub(name),
        None => OnnxSource::Folder(folder.join(own.unwrap_or_default())),
    };
    OnnxModel { source, runtime: runtime.map(|path| folder.join(path)) }
}

impl RawEncoder {
    fn onnx(&self) -> Option<&RawOnnxEncoder> {
        match self {
            Self::Onnx(raw) => Some(raw),
            Self::Named(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, load_text};

    fn toml(text: &str) -> (Option<Config>, String) {
        let environment = Environment::from([("SET", "deep"), ("ORT_DYLIB_PATH", "/lib/ort.so")]);
        let loaded = load_text(Path::new("conf/gatekey.toml"), format!("version = 1\n{text}"), &environment);
        (loaded.config, loaded.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn an_encoder_is_a_word_a_file_or_a_model_with_the_prefixes_of_its_kind() {
        let of = |text: &str| toml(text).0.unwrap().search.encoder;
        assert_eq!(of(""), Encoder::Embedded);
        assert_eq!(of("search.encoder = \"off\""), Encoder::Off);
        assert_eq!(of("search.encoder = \"${SET}.gguf\""), Encoder::File("conf/deep.gguf".into()));
        let Encoder::Onnx(e5) = of("search.encoder.model = \"intfloat/multilingual-e5-base\"") else { panic!() };
        assert_eq!((e5.query_prefix.as_str(), e5.passage_prefix.as_str()), ("query: ", "passage: "));
        assert_eq!(e5.model.runtime.as_deref(), Some(Path::new("/lib/ort.so")));
        let text = "[search.encoder]\nfolder = \"${SET}/mine\"\nruntime = \"ort.so\"\nquery-prefix = \"q \"\npooling = \"cls\"";
        let Encoder::Onnx(own) = of(text) else { panic!() };
        assert_eq!(own.model.source, OnnxSource::Folder("conf/deep/mine".into()));
        assert_eq!(own.model.runtime.as_deref(), Some(Path::new("conf/ort.so")));
        assert_eq!((own.query_prefix.as_str(), own.passage_prefix.as_str(), own.pooling), ("q ", "", Pooling::Cls));
    }

    #[test]
    fn a_reranker_looks_at_twenty_hits_and_shares_the_encoders_library() {
        let text = "[search.encoder]\nmodel = \"a/b\"\nruntime = \"ort.so\"\n[search.reranker]\nfolder = \"r\"";
        let search = toml(text).0.unwrap().search;
        let reranker = search.reranker.unwrap();
        assert_eq!((reranker.n_hits, reranker.model.runtime.as_deref()), (20, Some(Path::new("conf/ort.so"))));
        assert_eq!(toml("").0.unwrap().search.reranker, None, "there is none unless it is asked for");
    }

    #[test]
    fn what_is_wrong_with_a_model_is_said_all_at_once_and_costs_the_file() {
        let (two, table) = ("exactly one of `folder` and `model` must be given", "search.encoder =");
        for (text, parts) in [
            ("[search.encoder]\nfoldr = \"x\"", &["unknown member `foldr`", "did you mean `folder`?"][..]),
            (
                "[search.encoder]\nmodel = \"x\"\npooling = \"max\"\n[search.reranker]\nhits = 1",
                &["\"max\" is not one of", "`search/reranker/hits`"],
            ),
            (&format!("{table} 1"), &["`search/encoder`: 1 is not of type"]),
            (&format!("{table} {{}}"), &[two]),
            (
                "[search.encoder]\nfolder = \"x\"\nmodel = \"y\"\nruntime = \"a\"\n[search.reranker]\nruntime = \"b\"",
                &["`search/encoder`: exactly", "`search/reranker`: exactly", "a process opens one library"],
            ),
            (&format!("{table} {{ model = \"y\", pooling = \"cls\" }}"), &["it is for a `folder`"]),
        ] {
            let (config, said) = toml(text);
            assert!(config.is_none() && parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }
}
