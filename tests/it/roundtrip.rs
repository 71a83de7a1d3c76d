//! Whatever JSON a client or server writes arrives as it was written. A server that answers with the bytes of its call's
//! arguments sends each value on both ways, so one comparison of raw text judges both; in every pair of eras, by a tool's
//! name and by key, through one gatekey for all values; over stdio on both sides, and over HTTP on both.

use std::{borrow::Cow, cell::RefCell, collections::BTreeMap, time::Duration};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json, value::RawValue};

use crate::support::{
    cases::Case,
    proxy::{Proxy, modern_meta, raw_member},
    running::Running,
    ways::{Way, in_ways},
};

/// Megabytes take an unoptimized build seconds, and on a busy machine ten times as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A gatekey before a legacy and a modern mirror.
struct Mirrors {
    way: Way,
    /// A legacy client, then a modern one; over stdio one is both.
    clients: Vec<Proxy>,
    /// The legacy one, then the modern one.
    upstreams: [Upstream; 2],
    last_id: u64,
    _servers: Vec<Running>,
}

struct Upstream {
    is_modern: bool,
    /// What its tools' names begin with.
    prefix: &'static str,
    key: String,
}

impl Mirrors {
    fn start(way: Way) -> Self {
        let mut case = Case::new("mirror");
        let server = case.folder.join("server.py");
        case.servers.insert("old".into(), json!({"command": "python3", "args": [server]}));
        case.servers
            .insert("new".into(), json!({"command": "python3", "args": [server, "--modern"], "prefix": "new_"}));
        let names = if way.is_http() { &["old", "new"][..] } else { &[] };
        let servers = names.iter().map(|name| case.over_http(name)).collect();
        case.write("map.toml", "version = 1\nalways = [\"*\"]\n[skills]\nold = [\"old:*\"]\nnew = [\"new:*\"]\n");
        for skill in ["old", "new"] {
            case.write(&format!("skills/{skill}/SKILL.md"), &format!("---\nname: {skill}\ndescription: x\n---\nx\n"));
        }
        let config = case.own_config("maps = [\"map.toml\"]\nskills = [\"skills\"]");
        let mut proxy = Proxy::opened(way, &config);
        let upstreams = [("old", ""), ("new", "new_")].map(|(skill, prefix)| Upstream {
            is_modern: skill == "new",
            prefix,
            key: proxy.load(skill)["key"].as_str().unwrap().to_owned(),
        });
        let modern = way.is_http().then(|| proxy.another(Way::ModernHttp));
        let clients = [proxy].into_iter().chain(modern).collect();
        Self { way, clients, upstreams, last_id: 0, _servers: servers }
    }

    /// Sends a value between every pair of eras.
    fn reflect(&mut self, value: &str, frame: Frame) {
        for (is_modern, index) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            self.reflect_between(is_modern, index, value, frame);
        }
    }

    /// Sends a value by name, and by key where that can be; each answer is the mirror's, under the client's id.
    fn reflect_between(&mut self, is_modern: bool, index: usize, value: &str, frame: Frame) {
        let upstream = &self.upstreams[index];
        let client = usize::from(is_modern).min(self.clients.len() - 1);
        let client = &mut self.clients[client];
        let tool = format!("{}{}", upstream.prefix, frame.tool());
        let meta = if is_modern { format!(r#""_meta":{},"#, modern_meta()) } else { String::new() };
        let mut ways = vec![format!(r#"{{"name":"{tool}",{meta}"arguments":{value}}}"#)];
        // The tool of a key takes an object and nothing else.
        if value.starts_with('{') {
            let inner = format!(r#"{{"key":"{}","name":"{tool}","arguments":{value}}}"#, upstream.key);
            ways.push(format!(r#"{{"name":"tool_call_write",{meta}"arguments":{inner}}}"#));
        }
        let result = if is_modern && !upstream.is_modern { with_result_type(value) } else { value.into() };
        // A line has no line ends; over HTTP they are blanks like others, and become such.
        let result = if self.way.is_http() { Cow::Owned(result.replace('\r', " ")) } else { result };
        let meta = if is_modern { modern_meta() } else { Value::Null };
        for (params, called) in ways.into_iter().zip([&*tool, "tool_call_write"]) {
            self.last_id += 1;
            // Longer than any machine's numbers.
            let id = format!("1{:024}", self.last_id);
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            let outside = json!({"id": id, "method": "tools/call", "params": {"name": called, "_meta": meta}});
            client.send_as(&request, &outside);
            let line = client.raw_answer(&id, PATIENCE);
            // Said in short, as values may have megabytes.
            // Blanks around it are no part of it.
            assert!(line.trim() == frame.around(&id, &result), "{}\ncame back as\n{}", cut(&request), cut(&line));
        }
        client.raw.clear();
    }
}

fn cut(text: &str) -> String {
    text.chars().take(4_000).collect()
}

/// How the mirror writes its answer.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Plain,
    Odd,
}

impl Frame {
    fn tool(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Odd => "framed",
        }
    }

    fn around(self, id: &str, result: &str) -> String {
        match self {
            Self::Plain => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Self::Odd => {
                format!(
                    "{{ \"x-before\":[1.0,{{\"id\":7}}], \"result\" : {result}\t, \"id\": {id} ,\"jsonrpc\":\"2.0\"}}"
                )
            }
        }
    }
}

/// What a modern client gets of a legacy server: an object says that it is complete. One whose members cannot be named,
/// for a half of a surrogate pair, stays as it is.
fn with_result_type(result: &str) -> Cow<'_, str> {
    match serde_json::from_str::<BTreeMap<String, &RawValue>>(result) {
        Ok(members) if members.is_empty() => result.replacen('{', r#"{"resultType":"complete""#, 1).into(),
        Ok(members) if !members.contains_key("resultType") => {
            result.replacen('{', r#"{"resultType":"complete","#, 1).into()
        }
        _ => result.into(),
    }
}

/// A JSON text in quotes.
fn text() -> impl Strategy<Value = String> {
    let hard = prop::sample::select(vec![
        "\\ud800",
        "\\udfff",
        "\\ud83d\\ude00",
        "😀",
        "\u{2028}",
        "\u{2029}",
        "\u{85}",
        "\u{feff}",
        "\u{7f}",
        "\\u0000",
        "\\u001f",
        "\\/",
        "\\\\",
        "\\\"",
        "\\n",
        "{",
        "]",
        ",",
        ":",
    ]);
    let any_char = any::<char>().prop_filter("escaped in JSON", |c| !c.is_ascii_control() && !['"', '\\'].contains(c));
    let part = prop_oneof![hard.prop_map(str::to_owned), any_char.prop_map(String::from), "[a-z ]{1,9}"];
    prop::collection::vec(part, 0..5).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn key() -> impl Strategy<Value = String> {
    let known = ["id", "result", "error", "method", "params", "_meta", "name", "arguments", "resultType", "isError"];
    let known = prop::sample::select(known.map(|name| format!("\"{name}\"")).to_vec());
    prop_oneof![text(), known]
}

fn number() -> impl Strategy<Value = String> {
    let hard = ["-0", "-0.0", "1e400", "-1E+400", "1e-400", "1.0", "1e2", "9007199254740993", "18446744073709551616"];
    let hard = prop::sample::select(hard.map(str::to_owned).to_vec());
    prop_oneof![hard, r"-?(0|[1-9][0-9]{0,399})(\.[0-9]{1,399})?([eE][+-]?[0-9]{1,5})?"]
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\t"), 1 => Just("\r ")]
}

/// Any JSON value: members twice and with any name, blanks anywhere but around it.
fn value() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    let leaf = prop_oneof![1 => word, 3 => number(), 3 => text()];
    let tree = leaf.prop_recursive(6, 48, 5, |inner| {
        let item = (blank(), inner.clone(), blank())
            .prop_map(|(before, value, after)| [before, &value, after].concat())
            .boxed();
        let member = (blank(), key(), blank(), item.clone())
            .prop_map(|(before, key, after, value)| [before, &key, after, ":", &value].concat());
        prop_oneof![
            (blank(), prop::collection::vec(item, 0..5)).prop_map(|(blank, items)| enclosed('[', blank, &items, ']')),
            (blank(), prop::collection::vec(member, 0..5)).prop_map(|(blank, all)| enclosed('{', blank, &all, '}')),
        ]
    });
    let tree = tree.boxed();
    let deep = (tree.clone(), 100..=500_usize).prop_map(|(value, depth)| {
        let (open, close): (Vec<&str>, Vec<&str>) = (0..depth).map(|n| [("{\"d\":", "}"), ("[", "]")][n % 2]).unzip();
        open.concat() + &value + &close.into_iter().rev().collect::<String>()
    });
    prop_oneof![9 => tree, 1 => deep]
}

fn enclosed(open: char, blank: &str, parts: &[String], close: char) -> String {
    format!("{open}{blank}{}{close}", parts.join(","))
}

in_ways! {[stdio http]
fn any_json_arrives_as_it_was_written_both_ways_in_both_eras(way: Way) {
    let mirrors = RefCell::new(Mirrors::start(way));
    let config = Config { cases: 1_000, max_shrink_iters: 300, failure_persistence: None, ..Config::default() };
    let frame = prop_oneof![Just(Frame::Plain), Just(Frame::Odd)];
    let outcome = TestRunner::new(config).run(&(value(), frame), |(value, frame)| {
        mirrors.borrow_mut().reflect(&value, frame);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}}

in_ways! {[stdio http]
fn twenty_megabytes_in_one_text_arrive_as_they_were_written(way: Way) {
    let part = "0123456789 \u{2028}😀\\ud800\\n";
    let long = part.repeat((20 << 20) / part.len());
    let mut mirrors = Mirrors::start(way);
    // A modern client and a legacy server, where most is changed around it.
    mirrors.reflect_between(true, 0, &format!(r#"{{"text":"{long}"}}"#), Frame::Odd);
}}

#[test]
fn a_definition_is_listed_and_described_as_it_was_written() {
    let Mirrors { mut clients, upstreams, .. } = Mirrors::start(Way::Stdio);
    let proxy = &mut clients[0];
    let definition = std::fs::read_to_string(Case::new("mirror").folder.join("definition.json")).unwrap();
    let definition = definition.trim();
    let listed = proxy.raw_result("tools/list", "{}");
    assert!(listed.contains(&format!(",{definition},")), "{listed}");
    for meta in ["", &format!(r#","_meta":{}"#, modern_meta())] {
        let arguments = format!(r#"{{"names":["hard"],"key":"{}"}}"#, upstreams[0].key);
        let params = format!(r#"{{"name":"tool_describe","arguments":{arguments}{meta}}}"#);
        let described = proxy.raw_result("tools/call", &params);
        let structured = raw_member(&described, "structuredContent");
        assert_eq!(raw_member(structured, "tools"), format!("[{definition}]"));
        let content: Value = serde_json::from_str(raw_member(&described, "content")).unwrap();
        assert_eq!(content[0]["text"], definition);
    }
}
