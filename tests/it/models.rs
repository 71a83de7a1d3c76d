//! Encoders and rerankers that ONNX Runtime runs: two tiny models of known words (`tests/onnx/make.py`) and its real library, and
//! what is left where one of them cannot be used.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    installed,
    process::proxy_of,
    proxy::{PATIENCE, Proxy, run},
    root,
    ways::{Way, in_ways},
};

const TOKENIZER_FILES: [&str; 4] =
    ["tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

/// Three skills, none of which has a word of the queries below, and a folder for models.
struct Shelf {
    case: Case,
    config: PathBuf,
}

impl Shelf {
    /// With this `[search]`, in which `LIBRARY` stands for the library's path.
    fn new(search: &str) -> Self {
        let case = Case::new("29");
        for (name, description) in [
            ("bank", "Looks after coins. Coins."),
            ("florist", "Sells tulips. Tulips."),
            ("harbour", "Is full of boats. Boats."),
            ("keeper", "Keeps bees, keeps cats."),
            ("vault", "Keeps euro, euro and whatever else there is."),
        ] {
            let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
            case.write(&format!("skills/{name}/SKILL.md"), &text);
        }
        let members = "start-wait-ms = 20000\nskills = [\"skills\"]\ncatalog-budget-tokens = 100";
        let config = case.own_config(members);
        let search = search.replace("LIBRARY", &installed().join("lib/onnxruntime").to_string_lossy());
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{text}\n[search]\ncache = \"cache\"\n{search}\n")).unwrap();
        Self { case, config }
    }

    /// Puts one of our models into a folder, its file under this name.
    fn model(self, name: &str, folder: &str, file: &str) -> Self {
        let ours = root().join("tests/onnx");
        for tokenizer_file in TOKENIZER_FILES {
            copy(&ours.join("tokenizer").join(tokenizer_file), &self.case.path(folder).join(tokenizer_file));
        }
        copy(&ours.join(name).join("model.onnx"), &self.case.path(folder).join(file));
        self
    }

    /// Starts a proxy that reaches no model hub, whatever it asks.
    fn proxy(&self, way: Way) -> Proxy {
        let mut command = proxy_of(&self.config);
        command.env_remove("HF_HOME").env_remove("ORT_DYLIB_PATH").env("HF_ENDPOINT", "http://127.0.0.1:9");
        Proxy::spawn_in(way, command).greeted()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// What is found, when all is loaded and learnt: the names, and by what.
fn found(proxy: &mut Proxy, query: &str, by: &str) -> Vec<String> {
    let end = Instant::now() + 3 * PATIENCE;
    loop {
        let found = proxy.call("skill_search", json!({"query": query, "why": true}))["structuredContent"].take();
        if found["found_by"] == by {
            let skills = ["skills", "nearest"]
                .into_iter()
                .find_map(|list| found[list].as_array().filter(|list| !list.is_empty()));
            return skills.into_iter().flatten().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect();
        }
        assert!(Instant::now() < end, "{query}: {found}\n{}", proxy.stderr());
    }
}

/// Warnings about models.
fn warnings(proxy: &Proxy) -> Vec<String> {
    let said = proxy.stderr();
    let is_it = |line: &&str| {
        line.contains("WARN") && ["search goes by", "goes by words", "hits keep"].iter().any(|part| line.contains(part))
    };
    said.lines().filter(is_it).map(str::to_owned).collect()
}

const MEANING: &str = "words and meaning";

in_ways! { [stdio modern_http]
fn a_model_in_a_folder_finds_what_has_no_word_of_the_query(way: Way) {
    let shelf = Shelf::new("encoder = { folder = \"tiny\", runtime = \"LIBRARY\" }").model("encoder", "tiny", "model.onnx");
    let mut proxy = shelf.proxy(way);
    for (query, expected) in [("dollars", "bank"), ("roses", "florist"), ("ships", "harbour")] {
        assert_eq!(found(&mut proxy, query, MEANING)[0], expected, "{query}");
    }
    let far = proxy.call("skill_search", json!({"query": "photosynthesis"}))["structuredContent"].take();
    assert_eq!(far["nearest"], Value::Null, "it is nothing to doubt by");
    assert_eq!(warnings(&proxy), [""; 0]);
    // What was learnt is in the cache, under the model's digest.
    let kept: Vec<PathBuf> = fs::read_dir(shelf.case.path("cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!((kept.len(), fs::read_dir(&kept[0]).unwrap().count()), (1, 6), "five skills and one that is the server's");
}
}

#[test]
fn what_belongs_before_queries_and_passages_is_put_there() {
    for (folder, prefixes, expected) in [
        // With `passage` in a text, money and plants change places.
        ("tiny", "", "bank"),
        ("tiny-e5", "", "florist"),
        ("tiny-e5", ", passage-prefix = \"\"", "bank"),
        ("tiny", ", query-prefix = \"passage \"", "florist"),
        ("tiny", ", query-prefix = \"passage \", passage-prefix = \"passage \"", "bank"),
    ] {
        let search = format!("encoder = {{ folder = \"{folder}\", runtime = \"LIBRARY\"{prefixes} }}");
        let shelf = Shelf::new(&search).model("encoder", folder, "onnx/model.onnx");
        assert_eq!(found(&mut shelf.proxy(Way::Stdio), "dollars", MEANING)[0], expected, "{folder}{prefixes}");
    }
}

#[test]
fn a_model_of_the_hub_that_is_in_the_cache_needs_no_network() {
    let hub = "cache/models/models--intfloat--multilingual-e5-small";
    let reranker = "cache/models/models--BAAI--bge-reranker-base";
    let shelf = Shelf::new(
        "encoder = { model = \"intfloat/multilingual-e5-small\", runtime = \"LIBRARY\" }\nreranker = { model = \"BAAI/bge-reranker-base\" }",
    )
    .model("encoder", &format!("{hub}/snapshots/0123abcd"), "onnx/model.onnx")
    .model("reranker", &format!("{reranker}/snapshots/4567"), "onnx/model.onnx");
    shelf.case.write(&format!("{hub}/refs/main"), "0123abcd");
    shelf.case.write(&format!("{reranker}/refs/main"), "4567");
    let mut proxy = shelf.proxy(Way::Stdio);
    // To the encoder money is plants, as it is e5; the reranker has no prefixes.
    assert_eq!(found(&mut proxy, "dollars", "words and meaning, reranked")[0], "bank");
    assert_eq!(warnings(&proxy), [""; 0]);
}

#[test]
fn without_a_library_that_is_said_once_and_the_embedded_encoder_is_left() {
    for (library, expected) in [
        ("nothing.so", "nothing.so`: dlopen failed"),
        ("text.so", "text.so`: dlopen failed"),
        ("/lib/x86_64-linux-gnu/libm.so.6", "does not export `OrtGetApiBase`"),
    ] {
        let search =
            format!("encoder = {{ folder = \"tiny\", runtime = \"{library}\" }}\nreranker = {{ folder = \"tiny\" }}");
        let shelf = Shelf::new(&search).model("encoder", "tiny", "model.onnx");
        shelf.case.write("text.so", "no library");
        let mut proxy = shelf.proxy(Way::Stdio);
        assert_eq!(found(&mut proxy, "money in cash", MEANING)[0], "bank", "{library}");
        let warnings = warnings(&proxy);
        assert_eq!(warnings.len(), 2, "{library}: {warnings:?}");
        assert!(warnings[0].contains("search goes by the embedded encoder"), "{library}: {warnings:?}");
        assert!(warnings[1].contains("hits keep their order: there is no reranker"), "{library}: {warnings:?}");
        assert!(
            warnings.iter().all(|said| said.contains(expected) && said.contains("pip install onnxruntime")),
            "{warnings:?}"
        );
        assert!(!proxy.stderr().contains("panicked"), "{}", proxy.stderr());
    }
}

#[test]
fn whatever_else_is_wrong_with_an_encoder_is_said_once_and_the_embedded_one_is_left() {
    for (encoder, expected) in [
        ("folder = \"cut\"", "has no tokenizer.json, config.json"),
        ("folder = \"nowhere\"", "has no model.onnx, tokenizer.json"),
        ("folder = \"text\"", "protobuf parsing failed"),
        ("folder = \"pairs\"", "the encoder makes no vector of a text"),
        ("model = \"intfloat/multilingual-e5-small\"", "onnx/model.onnx"),
        ("model = \"intfloat/multilingual-e5-smal\"", "did you mean `intfloat/multilingual-e5-small`?"),
    ] {
        let shelf = Shelf::new(&format!("encoder = {{ {encoder}, runtime = \"LIBRARY\" }}"))
            .model("encoder", "cut", "model.onnx")
            .model("encoder", "text", "model.onnx")
            .model("reranker", "pairs", "model.onnx");
        for file in ["tokenizer.json", "config.json"] {
            fs::remove_file(shelf.case.path("cut").join(file)).unwrap();
        }
        shelf.case.write("text/model.onnx", "no model");
        let mut proxy = shelf.proxy(Way::Stdio);
        assert_eq!(found(&mut proxy, "money in cash", MEANING)[0], "bank", "{encoder}");
        let warnings = warnings(&proxy);
        assert_eq!(warnings.len(), 1, "{encoder}: {warnings:?}");
        assert!(warnings[0].contains(expected) && warnings[0].contains("hint="), "{encoder}: {warnings:?}");
    }
}

#[test]
fn a_text_that_an_encoder_fails_at_goes_by_words() {
    let shelf =
        Shelf::new("encoder = { folder = \"tiny\", runtime = \"LIBRARY\" }").model("encoder", "tiny", "model.onnx");
    let mut proxy = shelf.proxy(Way::Stdio);
    assert_eq!(found(&mut proxy, "dollars", MEANING)[0], "bank");
    for query in ["an abyss of coins", "coins in an abyss"] {
        assert_eq!(found(&mut proxy, query, "words"), ["bank"]);
    }
    assert_eq!(found(&mut proxy, "roses", MEANING)[0], "florist", "others lose nothing by it");
    let warnings = warnings(&proxy);
    assert!(warnings.len() == 1 && warnings[0].contains("the encoder failed at a text"), "{warnings:?}");
}

in_ways! { [stdio modern_http]
fn a_reranker_puts_the_best_hits_in_order(way: Way) {
    // By words the keeper comes first, who has the word twice; the vault is about money.
    let search = "encoder = \"off\"\nreranker = { folder = \"judge\", runtime = \"LIBRARY\" }";
    let shelf = Shelf::new(search).model("reranker", "judge", "model.onnx");
    let mut proxy = shelf.proxy(way);
    assert_eq!(found(&mut proxy, "keeps dollars", "words, reranked"), ["vault", "keeper"]);
    assert_eq!(found(&mut proxy, "keeps ships", "words, reranked"), ["keeper", "vault"], "whoever it cannot tell apart");
    assert_eq!(warnings(&proxy), [""; 0]);
}
}

#[test]
fn a_name_that_is_asked_for_stays_first() {
    let search = "encoder = \"off\"\nreranker = { folder = \"judge\", runtime = \"LIBRARY\" }";
    let shelf = Shelf::new(search).model("reranker", "judge", "model.onnx");
    shelf
        .case
        .write("skills/keeps-dollars/SKILL.md", "---\nname: keeps-dollars\ndescription: Writes things down.\n---\n");
    let hits = found(&mut shelf.proxy(Way::Stdio), "keeps dollars", "words, reranked");
    assert_eq!(hits, ["keeps-dollars", "vault", "keeper"]);
}

#[test]
fn a_reranker_looks_at_so_many_hits_and_leaves_the_others_behind() {
    let search = "encoder = \"off\"\nreranker = { folder = \"judge\", runtime = \"LIBRARY\", hits = 2 }";
    let shelf = Shelf::new(search).model("reranker", "judge", "model.onnx");
    for name in ["aa", "ab"] {
        let text = format!("---\nname: {name}\ndescription: Keeps, keeps, keeps.\n---\n");
        shelf.case.write(&format!("skills/{name}/SKILL.md"), &text);
    }
    let hits = found(&mut shelf.proxy(Way::Stdio), "keeps dollars", "words, reranked");
    assert_eq!(hits, ["aa", "ab", "keeper", "vault"], "the one about money is not among the two");
}

#[test]
fn where_a_reranker_fails_hits_keep_their_order() {
    for (folder, expected) in [("flat", "not of this kind"), ("tiny", "Output tensor 'logits' not found")] {
        let search = format!("encoder = \"off\"\nreranker = {{ folder = \"{folder}\", runtime = \"LIBRARY\" }}");
        let shelf = Shelf::new(&search).model("flat", "flat", "model.onnx").model("encoder", "tiny", "model.onnx");
        let mut proxy = shelf.proxy(Way::Stdio);
        while warnings(&proxy).is_empty() {
            found(&mut proxy, "keeps dollars", "words");
        }
        assert_eq!(found(&mut proxy, "keeps dollars", "words"), ["keeper", "vault"], "{folder}");
        let warnings = warnings(&proxy);
        assert!(warnings.len() == 1 && warnings[0].contains(expected), "{folder}: {warnings:?}");
    }
    let search = "encoder = \"off\"\nreranker = { folder = \"judge\", runtime = \"LIBRARY\" }";
    let shelf = Shelf::new(search).model("reranker", "judge", "model.onnx");
    let mut proxy = shelf.proxy(Way::Stdio);
    assert_eq!(found(&mut proxy, "keeps dollars", "words, reranked"), ["vault", "keeper"]);
    for query in ["keeps an abyss", "abyss keeps"] {
        assert_eq!(found(&mut proxy, query, "words"), ["keeper", "vault"], "a word that it fails at");
    }
    assert_eq!(
        found(&mut proxy, "whoever keeps dollars", "words, reranked"),
        ["vault", "keeper"],
        "others lose nothing"
    );
    let warnings = warnings(&proxy);
    assert!(warnings.len() == 1 && warnings[0].contains("the reranker failed at a query"), "{warnings:?}");
}

#[test]
fn an_evaluation_names_the_models() {
    let search = "encoder = { folder = \"tiny\", runtime = \"LIBRARY\" }\nreranker = { folder = \"judge\" }";
    let shelf = Shelf::new(search).model("encoder", "tiny", "model.onnx").model("reranker", "judge", "model.onnx");
    let set = shelf.case.write("set.jsonl", "{\"query\": \"dollars\", \"gold\": [\"bank\"]}\n");
    let eval = |more: &[&str]| {
        let arguments = ["eval", set.to_str().unwrap(), "--config", shelf.config.to_str().unwrap()];
        let (code, stdout, stderr) = run(arguments.iter().chain(more));
        assert_eq!(code, 0, "{stderr}");
        (stdout, stderr)
    };
    let data = serde_json::from_str::<Value>(&eval(&["--json"]).0).unwrap()["data"].take();
    let models = ["ranked_by", "encoder", "reranker"].map(|member| data[member].as_str().unwrap_or_default());
    assert_eq!(models, ["words and meaning, reranked", "tiny", "judge"]);
    assert_eq!(data["hit_1"], json!(1.0));
    let (stdout, stderr) = eval(&[]);
    let said = stdout + &stderr;
    assert!(said.contains("ranked by words and meaning, reranked; encoder `tiny`; reranker `judge`"), "{said}");
    let (stdout, stderr) = eval(&["--lexical"]);
    assert!(stderr.contains("ranked by words\n"), "{stdout}{stderr}");
}
