//! The gate as a whole: whatever the map, the rights, the key and the path, a server receives what the gate allows and
//! nothing else. Expected values come from the test's own reading of the rules.

use std::{collections::BTreeSet, time::Duration};

use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};

use crate::support::{
    cases::{called, journal},
    proxy::{Proxy, gatekey, modern_meta, names, text_of, upstream_names},
    root,
};

/// Tools of the only upstream; those that end in `get` are marked read-only.
const TOOLS: &[&str] = &["a_get", "a_put", "ab_get", "ab_put", "b_get", "b_put", "core_get", "free"];
const SKILLS: &[&str] = &["s0", "s1", "s2"];
/// Entries of maps, with what they open.
const ENTRIES: &[&str] = &["a_", "a", "b_", "ab_", "=a_put", "=free", "*", "many:b_", "other:a_"];
const PATTERNS: &[&str] = &["*", "a_*", "*_put", "?_get", "many:a*", "other:*", "free"];

#[derive(Debug, Clone)]
struct World {
    always: Vec<&'static str>,
    skills: Vec<Vec<&'static str>>,
    allow: Vec<&'static str>,
    deny: Vec<&'static str>,
    conceal: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Load(usize),
    Unload(usize),
    Plain { tool: usize, modern: bool },
    Dispatch { tool: usize, modern: bool, read: bool, key: Key },
}

#[derive(Debug, Clone)]
enum Key {
    None,
    Of(usize),
    OfOtherPrincipal(usize),
    Invented(usize),
}

fn world() -> impl Strategy<Value = World> {
    let entries = || prop::sample::subsequence(ENTRIES, 0..3);
    let patterns = || prop::sample::subsequence(PATTERNS, 0..2);
    let skills = prop::collection::vec(entries(), SKILLS.len());
    let always = prop::sample::subsequence(&["core_", "=free"][..], 0..=2);
    (always, skills, patterns(), patterns(), any::<bool>()).prop_map(|(always, skills, allow, deny, conceal)| World {
        always,
        skills,
        allow,
        deny,
        conceal,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let key = prop_oneof![
        1 => Just(Key::None),
        4 => (0..SKILLS.len()).prop_map(Key::Of),
        1 => (0..SKILLS.len()).prop_map(Key::OfOtherPrincipal),
        1 => (0..SKILLS.len()).prop_map(Key::Invented),
    ];
    prop_oneof![
        2 => (0..SKILLS.len()).prop_map(Step::Load),
        1 => (0..SKILLS.len()).prop_map(Step::Unload),
        4 => (0..TOOLS.len(), any::<bool>()).prop_map(|(tool, modern)| Step::Plain { tool, modern }),
        6 => (0..TOOLS.len(), any::<bool>(), any::<bool>(), key)
            .prop_map(|(tool, modern, read, key)| Step::Dispatch { tool, modern, read, key }),
    ]
}

impl World {
    /// The rules again, read plainly.
    fn opens(&self, entry: &str, tool: &str) -> bool {
        match entry.split_once(':').unwrap_or(("many", entry)) {
            ("many", "*") => true,
            ("many", name) => name.strip_prefix('=').map_or_else(|| tool.starts_with(name), |exact| tool == exact),
            _ => false,
        }
    }

    /// A skill all of whose tools are forbidden is not known, so nobody gets a key of it.
    fn knows(&self, skill: usize) -> bool {
        let opened = || TOOLS.iter().filter(|tool| self.skill_opens(skill, tool));
        opened().next().is_none() || opened().any(|tool| self.is_visible(tool))
    }

    fn skill_opens(&self, skill: usize, tool: &str) -> bool {
        self.skills[skill].iter().any(|entry| self.opens(entry, tool))
    }

    fn is_visible(&self, tool: &str) -> bool {
        let matches = |pattern: &str| match pattern {
            "*" => true,
            "a_*" => tool.starts_with("a_"),
            "*_put" => tool.ends_with("_put"),
            "?_get" => tool.len() == 5 && tool.ends_with("_get"),
            "many:a*" => tool.starts_with('a'),
            "free" => tool == "free",
            _ => false,
        };
        !self.deny.iter().any(|pattern| matches(pattern))
            && (self.allow.is_empty() || self.allow.iter().any(|pattern| matches(pattern)))
    }

    fn files(&self, folder: &std::path::Path) -> std::path::PathBuf {
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            file
        };
        let mut map = format!("version = 1\nalways = {}\n[skills]\n", json!(self.always));
        for (name, entries) in SKILLS.iter().zip(&self.skills) {
            map.push_str(&format!("{name} = {}\n", json!(entries)));
            write(
                &format!("skills/{name}/SKILL.md"),
                format!("---\nname: {name}\ndescription: Skill {name}.\n---\nDo.\n"),
            );
        }
        write("map.toml", map);
        let server = root().join("tests/cases/many/server.py");
        let mut args = vec![
            server.to_string_lossy().into_owned(),
            "--journal".into(),
            folder.join("journal.jsonl").to_string_lossy().into_owned(),
        ];
        for tool in TOOLS {
            args.extend([if tool.ends_with("get") { "--read" } else { "--tool" }.to_owned(), (*tool).to_owned()]);
        }
        let rule = format!(
            "[principals.bob]\n[[rules]]\nprincipals = [\"ann\"]\nallow = {}\ndeny = {}\n",
            json!(self.allow),
            json!(self.deny)
        );
        // On a busy machine a server may need longer than clients are made to wait.
        let top = format!(
            "version = 1\nmaps = [\"map.toml\"]\nskills = [\"skills\"]\nconceal = {}\nkey-secret = \"s\"\nstart-wait-ms = 20000\n",
            self.conceal
        );
        let upstream = format!("[upstreams.many]\ncommand = \"python3\"\nargs = {}\n", json!(args));
        write("gatekey.toml", format!("{top}{rule}{upstream}"))
    }
}

fn session(config: &std::path::Path, principal: &str) -> Proxy {
    let mut command = gatekey();
    command.arg("proxy").arg("--config").arg(config).args(["--as", principal]);
    let mut proxy = Proxy::spawn(command);
    proxy.initialize();
    proxy
}

fn key_of(proxy: &mut Proxy, skill: &str) -> String {
    let params = json!({"name": "skill_load", "arguments": {"name": skill}, "_meta": modern_meta()});
    let loaded = proxy.result("tools/call", params);
    // A skill all of whose tools are forbidden is not known, so it has no key.
    loaded["structuredContent"]["key"].as_str().unwrap_or("none.aaaaaa").to_owned()
}

/// What one step should do: whether the server is called, and the code of the answer if not.
fn expected(world: &World, unlocked: &BTreeSet<usize>, step: &Step) -> Option<Result<&'static str, &'static str>> {
    let (tool, by_key, read) = match step {
        Step::Load(_) | Step::Unload(_) => return None,
        Step::Plain { tool, .. } => (TOOLS[*tool], None, None),
        Step::Dispatch { tool, read, key, .. } => {
            (TOOLS[*tool], if let Key::Of(skill) = key { Some(*skill) } else { None }, Some(*read))
        }
    };
    let is_modern = matches!(step, Step::Plain { modern: true, .. } | Step::Dispatch { modern: true, .. });
    let is_invented = match step {
        Step::Dispatch { key: Key::Invented(_) | Key::OfOtherPrincipal(_), .. } => true,
        Step::Dispatch { key: Key::Of(skill), .. } => !world.knows(*skill),
        _ => false,
    };
    let is_open = world.always.iter().any(|entry| world.opens(entry, tool))
        || by_key.is_some_and(|skill| world.skill_opens(skill, tool))
        || (!is_modern && !is_invented && unlocked.iter().any(|skill| world.skill_opens(*skill, tool)));
    Some(if !world.is_visible(tool) {
        Err(if world.conceal { "not_found" } else { "forbidden" })
    } else if !is_open {
        Err("inactive")
    } else if read == Some(true) && !tool.ends_with("get") {
        Err("not_read_only")
    } else {
        Ok(tool)
    })
}

fn walk(world: &World, steps: &[Step]) {
    let scratch = tempfile::tempdir().unwrap();
    let config = world.files(scratch.path());
    let mut proxy = session(&config, "ann");
    let mut other = session(&config, "bob");
    let keys: Vec<String> = SKILLS.iter().map(|skill| key_of(&mut proxy, skill)).collect();
    let others: Vec<String> = SKILLS.iter().map(|skill| key_of(&mut other, skill)).collect();
    let mut unlocked = BTreeSet::new();
    let mut forwarded = Vec::new();
    for step in steps {
        let result = match step {
            Step::Load(skill) | Step::Unload(skill) => {
                let is_load = matches!(step, Step::Load(_));
                let result =
                    proxy.call(if is_load { "skill_load" } else { "skill_unload" }, json!({"name": SKILLS[*skill]}));
                if result["isError"] != true {
                    if is_load {
                        unlocked.insert(*skill)
                    } else {
                        unlocked.remove(skill)
                    };
                }
                result
            }
            Step::Plain { tool, modern: false } => proxy.call(TOOLS[*tool], json!({"n": 1})),
            Step::Plain { tool, modern: true } => proxy.modern_call(TOOLS[*tool], json!({"n": 1})),
            Step::Dispatch { tool, modern, read, key } => {
                let key = match key {
                    Key::None => Value::Null,
                    Key::Of(skill) => json!(keys[*skill]),
                    Key::OfOtherPrincipal(skill) => json!(others[*skill]),
                    Key::Invented(skill) => json!(format!("{}.abcdef", SKILLS[*skill])),
                };
                let meta_tool = if *read { "tool_call_read" } else { "tool_call_write" };
                let arguments = json!({"key": key, "name": TOOLS[*tool], "arguments": {"n": 1}});
                if *modern { proxy.modern_call(meta_tool, arguments) } else { proxy.call(meta_tool, arguments) }
            }
        };
        match expected(world, &unlocked, step) {
            None => {}
            Some(Ok(tool)) => {
                assert_eq!(text_of(&result), format!("ok:{tool}"), "{step:?}");
                forwarded.push(tool);
            }
            Some(Err(code)) => assert_eq!(result["structuredContent"]["code"], code, "{step:?}: {result}"),
        }
        // The list shows what is open and visible, and nothing else.
        let is_listed = |tool: &&&str| {
            let is_open = world.always.iter().any(|entry| world.opens(entry, tool))
                || unlocked.iter().any(|skill| world.skill_opens(*skill, tool));
            world.is_visible(tool) && is_open
        };
        if matches!(step, Step::Load(_) | Step::Unload(_)) {
            let listed = proxy.list();
            assert_eq!(upstream_names(&listed), TOOLS.iter().filter(is_listed).copied().collect::<Vec<_>>());
        }
    }
    assert_eq!(called(&journal(&scratch.path().join("journal.jsonl"))), forwarded);
}

proptest! {
    #![proptest_config(Config { cases: 16, max_shrink_iters: 30, failure_persistence: None, ..Config::default() })]
    #[test]
    fn no_server_receives_a_call_that_the_gate_refused(world in world(), steps in prop::collection::vec(step(), 40)) {
        walk(&world, &steps);
    }
}

fn plain_world() -> World {
    World {
        always: vec!["core_"],
        skills: vec![vec!["a_"], vec!["b_"], vec![]],
        allow: vec![],
        deny: vec![],
        conceal: false,
    }
}

#[test]
fn the_modern_list_never_depends_on_earlier_calls_and_has_what_caches_need() {
    let scratch = tempfile::tempdir().unwrap();
    let mut proxy = session(&plain_world().files(scratch.path()), "ann");
    let list = |proxy: &mut Proxy| proxy.result("tools/list", json!({"_meta": modern_meta()}));
    let discovered = proxy.result("server/discover", json!({"_meta": modern_meta()}));
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "gatekey");
    assert!(discovered["instructions"].as_str().unwrap().contains("s0: Skill s0."));
    let before = list(&mut proxy);
    assert_eq!((&before["resultType"], &before["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(before["ttlMs"].is_u64());
    assert!(!names(before["tools"].as_array().unwrap()).contains(&"skill_unload"));
    assert_eq!(upstream_names(before["tools"].as_array().unwrap()), ["core_get"]);
    proxy.load("s0");
    assert_eq!(list(&mut proxy), before);
    let called = proxy.modern_call("core_get", json!({"n": 1}));
    assert_eq!(
        (text_of(&called), &called["resultType"]),
        ("ok:core_get", &json!("complete")),
        "a legacy server's result is bridged"
    );
}

#[test]
fn a_subscription_is_acknowledged_first_and_told_only_of_real_changes() {
    let case = crate::support::cases::Case::new("16");
    let mut proxy = Proxy::with_config(&case.clients_config());
    proxy.send(json!({"id": "sub", "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true, "x": true}, "_meta": modern_meta()}}));
    let first =
        proxy.wait_for("the acknowledgement", Duration::from_secs(10), |message| message.get("method").is_some());
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    let changed = proxy.wait_for("a change", Duration::from_secs(15), |message| message.get("method").is_some());
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}

#[test]
fn a_client_that_never_lists_again_is_not_told_again_and_calls_by_name_all_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let mut proxy = session(&plain_world().files(scratch.path()), "ann");
    proxy.list();
    let is_notice = |message: &Value| message["method"] == "notifications/tools/list_changed";
    proxy.load("s0");
    assert_eq!(proxy.count(is_notice), 1);
    // Two seconds without a list; a call that takes as long tells us when they are over.
    let nap = std::time::Instant::now();
    crate::support::wait_until("two seconds are over", Duration::from_secs(5), || {
        nap.elapsed() > Duration::from_millis(2_100)
    });
    proxy.load("s1");
    assert_eq!(proxy.count(is_notice), 1, "no second notice");
    assert_eq!(text_of(&proxy.call("b_put", json!({"n": 1}))), "ok:b_put");
}

#[test]
fn a_skill_over_the_list_budget_adds_only_the_tools_that_were_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let config = plain_world().files(scratch.path());
    let text = std::fs::read_to_string(&config).unwrap();
    // One definition has about 60 tokens by the estimate.
    std::fs::write(&config, text.replacen("conceal", "list-budget-tokens = 90\nconceal", 1)).unwrap();
    let mut proxy = session(&config, "ann");
    proxy.list();
    proxy.load("s0");
    assert_eq!(upstream_names(&proxy.list()), ["core_get"]);
    let described = proxy.call("tool_describe", json!({"names": ["a_put", "b_put"]}));
    assert_eq!(names(described["structuredContent"]["tools"].as_array().unwrap()), ["a_put"]);
    assert_eq!(described["structuredContent"]["not_described"][0]["skill"], "s1");
    assert_eq!(upstream_names(&proxy.list()), ["a_put", "core_get"]);
    assert_eq!(text_of(&proxy.call("a_get", json!({"n": 1}))), "ok:a_get", "the others are open all the same");
}

#[test]
fn a_second_load_is_short_unless_it_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let mut proxy = session(&plain_world().files(scratch.path()), "ann");
    let first = proxy.call("skill_load", json!({"name": "s0"}));
    assert!(text_of(&first).contains("<skill name=\"s0\">\nDo.\n</skill>"));
    let second = proxy.call("skill_load", json!({"name": "s0"}));
    assert!(text_of(&second).contains("already loaded") && !text_of(&second).contains("<skill"));
    let mut without_body = first["structuredContent"].clone();
    assert_eq!(without_body.as_object_mut().unwrap().remove("body"), Some(json!("Do.")));
    assert_eq!(second["structuredContent"], without_body);
    let again = proxy.call("skill_load", json!({"name": "s0", "again": true}));
    assert_eq!(text_of(&again), text_of(&first));
}

#[test]
fn an_intent_is_asked_for_and_taken_off_before_the_call() {
    let scratch = tempfile::tempdir().unwrap();
    let config = plain_world().files(scratch.path());
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen("conceal", "intent = \"required\"\nconceal", 1)).unwrap();
    let mut proxy = session(&config, "ann");
    let key = proxy.load("s0")["key"].clone();
    let listed = proxy.list();
    let tool = listed.iter().find(|tool| tool["name"] == "a_put").unwrap();
    assert_eq!(tool["inputSchema"]["required"], json!(["intent", "n"]));
    for result in [
        proxy.call("a_put", json!({"n": 1})),
        proxy.call("tool_call_write", json!({"key": key, "name": "a_put", "arguments": {"n": 1}})),
    ] {
        assert_eq!(result["structuredContent"]["code"], "invalid_arguments", "{result}");
    }
    proxy.call("tool_call_write", json!({"key": key, "name": "a_put", "arguments": {"n": 0, "intent": "To try it."}}));
    proxy.call("a_put", json!({"n": 1, "intent": "To try it."}));
    proxy.call("tool_call_write", json!({"key": key, "name": "a_put", "arguments": {"n": 2}, "intent": "To try it."}));
    let calls = journal(&scratch.path().join("journal.jsonl"));
    let arguments: Vec<&Value> = calls
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .map(|message| &message["params"]["arguments"])
        .collect();
    assert_eq!(arguments, [&json!({"n": 0}), &json!({"n": 1}), &json!({"n": 2})]);
}

#[test]
fn arguments_that_do_not_fit_are_answered_with_the_schema_and_odd_ones_are_understood() {
    let scratch = tempfile::tempdir().unwrap();
    let mut proxy = session(&plain_world().files(scratch.path()), "ann");
    let key = proxy.load("s0")["key"].clone();
    let wrong = proxy.call("tool_call_write", json!({"key": key, "name": "a_put", "arguments": {"n": "one"}}));
    assert_eq!(wrong["structuredContent"]["code"], "invalid_arguments");
    assert!(text_of(&wrong).contains("`n`") && text_of(&wrong).contains(r#""required": ["n"]"#), "{wrong}");
    for odd in
        [json!({"key": key, "name": "a_put", "arguments": "{\"n\":1}"}), json!({"key": key, "name": "a_put", "n": 1})]
    {
        assert_eq!(text_of(&proxy.call("tool_call_write", odd)), "ok:a_put");
    }
}

#[test]
fn exposure_dispatch_never_changes_the_list_and_list_always_does() {
    for (exposure, listed) in [("dispatch", &["core_get"][..]), ("list", &["a_get", "a_put", "core_get"])] {
        let scratch = tempfile::tempdir().unwrap();
        let config = plain_world().files(scratch.path());
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replacen("conceal", &format!("exposure = \"{exposure}\"\nconceal"), 1)).unwrap();
        let mut proxy = session(&config, "ann");
        proxy.list();
        proxy.load("s0");
        assert_eq!(upstream_names(&proxy.list()), listed, "{exposure}");
        assert_eq!(text_of(&proxy.call("a_put", json!({"n": 1}))), "ok:a_put", "{exposure}");
    }
}
