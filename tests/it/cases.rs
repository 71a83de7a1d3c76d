//! The cases of `tests/cases`, each with the values that are right.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    cases::{Case, called, open_all},
    is_running,
    proxy::{Proxy, run, text_of},
    wait_until,
    ways::{Way, in_ways},
};

const SECOND: Duration = Duration::from_secs(1);

/// Every opened tool, called once: the texts of the answers, sorted.
fn answers_of_all(proxy: &mut Proxy) -> Vec<String> {
    let mut texts: Vec<String> =
        open_all(proxy).iter().map(|tool| text_of(&proxy.call(tool, json!({}))).to_owned()).collect();
    texts.sort();
    texts
}

// 03 — two upstreams with the same tool name

in_ways! { [stdio http modern_stdio modern_http]
fn a_name_belongs_to_the_upstream_that_stands_first_whichever_starts_first(way: Way) {
    let mut case = Case::new("03");
    let mut proxy = case.start_in(way);
    let first_run = open_all(&mut proxy);
    assert_eq!(first_run, ["beta_fetch", "beta_search", "fetch", "search"]);
    for (tool, answer) in [("search", "alpha:search"), ("beta_search", "beta:search"), ("beta_fetch", "beta:fetch")] {
        assert_eq!(text_of(&proxy.call(tool, json!({}))), answer);
    }
    let calls = case.journal("journal-beta.jsonl");
    assert_eq!(called(&calls), ["search", "fetch"], "the upstream is called by its own names");

    let swap = |server: &mut Value, delay: &str| {
        let arguments = server["args"].as_array_mut().unwrap();
        arguments.extend([json!("--init-delay"), json!(delay)]);
    };
    swap(&mut case.servers["alpha"], "0");
    swap(&mut case.servers["beta"], "1.5");
    let mut proxy = case.start_in(way);
    assert_eq!(open_all(&mut proxy), first_run);

    case.servers.remove("beta");
    case.own_config("start-wait-ms = 20000");
    wait_until("beta is gone", 5 * SECOND, || !json!(proxy.list()).to_string().contains("\"beta\""));
    assert_eq!(open_all(&mut proxy), ["fetch", "search"]);
    assert_eq!(text_of(&proxy.call("search", json!({}))), "alpha:search", "alpha's names have not changed");
    let mut proxy = case.start_in(way);
    assert_eq!(open_all(&mut proxy), ["fetch", "search"]);
}
}

// 04 — the separator inside names

in_ways! { [stdio http modern_stdio modern_http]
fn separators_inside_names_never_lead_to_another_upstream(way: Way) {
    let case = Case::new("04").all_the_way(way);
    let mut proxy = case.start_in(way);
    assert_eq!(answers_of_all(&mut proxy), ["my__srv|do__it", "my_|do", "my|_do", "my|srv__do__it"]);
}
}

// 05 — names at and over 64 characters

in_ways! { [stdio http modern_stdio modern_http]
fn long_names_are_exposed_within_bounds_and_the_same_after_a_restart(way: Way) {
    let case = Case::new("05").all_the_way(way);
    let mut proxy = case.start_in(way);
    let exposed = open_all(&mut proxy);
    assert_eq!(exposed.len(), 8);
    assert!(exposed.iter().all(|name| gatekey::model::name::is_exposable(name)), "{exposed:?}");
    let lengths: Vec<String> = exposed
        .iter()
        .map(|tool| text_of(&proxy.call(tool, json!({}))).split(' ').next().unwrap_or_default().to_owned())
        .collect();
    let count = |length: &str| lengths.iter().filter(|found| *found == length).count();
    assert_eq!(["len:1", "len:63", "len:64", "len:65", "len:90", "len:128"].map(count), [1, 1, 1, 1, 3, 1]);
    assert_eq!(open_all(&mut case.start_in(way)), exposed);
}
}

// 06 — characters that model APIs refuse

in_ways! { [stdio http modern_stdio modern_http]
fn odd_names_are_exposed_apart_and_called_by_their_own(way: Way) {
    let case = Case::new("06").all_the_way(way);
    let mut proxy = case.start_in(way);
    let exposed = open_all(&mut proxy);
    assert_eq!(exposed.len(), 12);
    assert!(exposed.iter().all(|name| gatekey::model::name::is_exposable(name)), "{exposed:?}");
    for name in ["UPPER", "upper", "calendar_respond"] {
        assert!(exposed.contains(&name.to_owned()), "{name} needs no change");
    }
    let expected: BTreeSet<&str> =
        "calendar.respond|calendar_respond|calendar/respond|fs read|a:b|naïve|工具|😀|UPPER|upper|-lead|9nine"
            .split('|')
            .collect();
    for tool in &exposed {
        proxy.call(tool, json!({}));
    }
    let messages = case.messages("journal.jsonl");
    assert_eq!(called(&messages).into_iter().collect::<BTreeSet<_>>(), expected);
    let key = proxy.load("google workspace")["key"].clone();
    let described = proxy.call("tool_describe", json!({"query": "calendar", "key": key}));
    assert!(text_of(&described).contains("calendar/respond"), "the own name is found by people: {described}");
}
}

// 07 — one malformed tool

in_ways! { [stdio http modern_stdio modern_http]
fn a_malformed_tool_costs_itself_only_and_is_reported(way: Way) {
    let case = Case::new("07").all_the_way(way);
    let mut proxy = case.start_in(way);
    let mut exposed = open_all(&mut proxy);
    exposed.retain(|name| name != "good");
    assert_eq!(exposed, ["bad_output", "empty", "no_schema", "only_dialect", "other_good", "root_anyof"]);
    for tool in ["good", "root_anyof", "other_good"] {
        let said = proxy.call(tool, json!({"id": "fits one arm"}));
        assert!(text_of(&said).starts_with("ok:"), "{tool}: {said}");
    }
    let tools = proxy.definitions(&["mixed", "other"]);
    assert_eq!(tools.len(), 7);
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool.get("outputSchema").is_none_or(|schema| schema["type"] == "object"), "{tool}");
    }
    let anyof = tools.iter().find(|tool| tool["name"] == "root_anyof").unwrap();
    assert_eq!(anyof["inputSchema"]["anyOf"].as_array().unwrap().len(), 2, "both arms are there");

    let (code, stdout, _) = run(["check", "--config", case.clients_config().to_str().unwrap()]);
    assert_eq!(code, 1);
    for finding in [
        "`string_type` of `mixed` is left out",
        "`null_schema` of `mixed` is left out",
        "entry 9 of `mixed` is left out",
        "`empty` of `mixed`: inputSchema got",
    ] {
        assert!(stdout.contains(finding), "{finding} in {stdout}");
    }
}
}

// 10 — two kinds of error

in_ways! { [stdio http modern_stdio modern_http]
fn tool_errors_and_protocol_errors_stay_what_they_are(way: Way) {
    let case = Case::new("10");
    let mut proxy = case.start_in(way);
    proxy.load("faulty");
    let fails = proxy.call("fails", json!({}));
    assert_eq!(fails["isError"], true);
    assert_eq!(fails["content"].as_array().unwrap().len(), 2);
    for (tool, code, message) in [
        ("rpc", -32602, "bad argument q"),
        ("custom", -32042, "sign in first"),
        ("odd", 7, "line one \"quoted\"\nline two"),
    ] {
        let id = proxy.ask("tools/call", json!({"name": tool}));
        let answer = proxy.answer_to(id);
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(code), &json!(message)));
    }
    let id = proxy.ask("tools/call", json!({"name": "rpc"}));
    assert_eq!(proxy.answer_to(id)["error"]["data"], json!({"field": "q", "got": null}));

    let n_before = called(&case.journal("journal.jsonl")).len();
    let unknown = proxy.call("nobody_has_this", json!({}));
    assert_eq!((&unknown["isError"], &unknown["structuredContent"]["code"]), (&json!(true), &json!("not_found")));
    assert_eq!(called(&case.journal("journal.jsonl")).len(), n_before, "no upstream was asked");
}
}

in_ways! { [stdio http modern_http]
fn a_call_of_a_server_that_ended_names_it_at_once(way: Way) {
    let mut case = Case::new("10");
    let script = "import sys\nfrom os.path import dirname\nsys.path.insert(0, dirname(sys.argv[1]))\n";
    let quitter = case.write("quitter.py", &format!("{script}import os, threading\nsys.argv = sys.argv[1:]\nthreading.Thread(target=lambda: (sys.stdin.read(0))).start()\nexec(open(sys.argv[0]).read().replace('fake.run()', 'fake.methods[\"tools/call\"] = lambda p, c: (sys.stderr.write(\"out of coffee\\\\n\"), sys.stderr.flush(), os._exit(3))\\nfake.run()'), {{'__file__': sys.argv[0], '__name__': '__main__'}})\n"));
    let server = case.servers["faulty"]["args"][0].clone();
    case.servers["faulty"]["args"] = json!([quitter, server]);
    let mut proxy = case.start_in(way);
    proxy.load("faulty");
    let started = Instant::now();
    let ended = proxy.call("fails", json!({}));
    assert!(started.elapsed() < 2 * SECOND);
    assert_eq!(ended["isError"], true);
    let text = text_of(&ended);
    for part in ["`faulty`", "code 3", "out of coffee"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
}

// 12 — cancellation

in_ways! { [stdio http modern_stdio modern_http]
fn a_cancellation_reaches_the_server_under_its_own_id_and_late_answers_surface_nowhere(way: Way) {
    let case = Case::new("12");
    let mut proxy = case.start_in(way);
    proxy.load("jobs");
    for _ in 0..3 {
        assert_eq!(text_of(&proxy.call("fast", json!({}))), "done");
    }
    let mut given_up = Vec::new();
    for tool in ["slow", "stubborn"] {
        let id = proxy.ask("tools/call", json!({"name": tool, "arguments": {}}));
        given_up.push(id);
        let in_journal =
            |messages: &[Value]| messages.iter().find(|message| message["params"]["name"] == tool).cloned();
        wait_until("the call arrives", 5 * SECOND, || in_journal(&case.journal("journal.jsonl")).is_some());
        let upstream_id = in_journal(&case.journal("journal.jsonl")).unwrap()["id"].clone();
        let reason = format!("enough of {tool}");
        proxy.cancel(id, &reason);
        wait_until("the cancellation arrives", SECOND, || {
            case.journal("journal.jsonl").iter().any(|message| {
                message["method"] == "notifications/cancelled"
                    && message["params"]["requestId"] == upstream_id
                    && (message["params"]["reason"] == reason || way == Way::ModernHttp)
            })
        });
        let fast = proxy.ask("tools/call", json!({"name": "fast"}));
        proxy.answer_within(fast, SECOND);
    }
    let n_cancelled = || {
        let messages = case.journal("journal.jsonl");
        messages.iter().filter(|message| message["method"] == "notifications/cancelled").count()
    };
    // Whoever gives up by closing a connection cannot name another's.
    let of_nobody = [json!(9999), json!(given_up[0].to_string()), json!(1)];
    for id in of_nobody.iter().filter(|_| way != Way::ModernHttp) {
        proxy.send(json!({"method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    // `stubborn` answers after 1.5 s; two naps of the same server are longer.
    let late = proxy.ask("tools/call", json!({"name": "stubborn", "arguments": {}}));
    proxy.answer_to(late);
    assert_eq!(proxy.count(|message| given_up.iter().any(|id| message["id"] == *id)), 0);
    assert_eq!(n_cancelled(), 2, "ids that never were, and calls already answered, are nobody's");

    proxy.ask("tools/call", json!({"name": "slow", "arguments": {}}));
    wait_until("the call arrives", 5 * SECOND, || {
        called(&case.journal("journal.jsonl")).iter().filter(|name| **name == "slow").count() == 2
    });
    proxy.close();
    wait_until("the call of a client that is gone is cancelled", 5 * SECOND, || n_cancelled() == 3);
    let initialize_is_cancelled = case
        .journal("journal.jsonl")
        .iter()
        .any(|message| message["method"] == "notifications/cancelled" && message["params"]["requestId"] == 1);
    assert!(!initialize_is_cancelled);
}
}

// 13 — a slow call

in_ways! { [stdio http modern_stdio modern_http]
fn a_slow_call_blocks_nothing_else(way: Way) {
    let case = Case::new("13");
    let mut proxy = case.start_in(way);
    open_all(&mut proxy);
    let started = Instant::now();
    let slow = proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 3, "tag": "slow"}}));
    let others = [
        proxy.ask("tools/call", json!({"name": "nap", "arguments": {"seconds": 0, "tag": "same"}})),
        proxy.ask("tools/call", json!({"name": "b_nap", "arguments": {"seconds": 0, "tag": "other"}})),
        proxy.ask("tools/list", json!({})),
        proxy.ask("ping", json!({})),
    ];
    let answers: Vec<Value> = others.iter().map(|id| proxy.answer_to(*id)).collect();
    assert!(started.elapsed() < 2 * SECOND, "{:?}", started.elapsed());
    assert_eq!(text_of(&answers[0]["result"]), "woke same");
    assert_eq!(text_of(&answers[1]["result"]), "woke other");
    assert_eq!(text_of(&proxy.answer_to(slow)["result"]), "woke slow");
    assert!(started.elapsed() > 2 * SECOND, "the nap was taken");
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn twenty_calls_at_once_are_answered_together_under_their_own_ids(way: Way) {
    let case = Case::new("13");
    let mut proxy = case.start_in(way);
    open_all(&mut proxy);
    let started = Instant::now();
    let asked: Vec<(u64, String)> = (0..20)
        .map(|number| {
            let arguments = json!({"seconds": 1, "tag": format!("t{number}")});
            (proxy.ask("tools/call", json!({"name": "nap", "arguments": arguments})), format!("woke t{number}"))
        })
        .collect();
    for (id, expected) in asked {
        assert_eq!(text_of(&proxy.answer_to(id)["result"]), expected);
    }
    assert!(started.elapsed() < 5 * SECOND, "{:?}", started.elapsed());
}
}

// 14 — noise on stdout

in_ways! { [stdio http modern_stdio modern_http]
fn noise_on_stdout_is_passed_over_and_never_answered(way: Way) {
    let case = Case::new("14");
    let mut proxy = case.start_in(way);
    proxy.load("chatty");
    for kind in ["text", "scalar", "object", "blank", "binary", "long", "bom", "crlf", "half"] {
        let id = proxy.ask("tools/call", json!({"name": "say", "arguments": {"kind": kind}}));
        assert_eq!(text_of(&proxy.answer_within(id, 5 * SECOND)["result"]), format!("said {kind}"));
    }
    let own: BTreeSet<&str> =
        ["initialize", "notifications/initialized", "server/discover", "tools/list", "tools/call"].into();
    for message in case.journal("journal.jsonl") {
        assert!(
            message.get("error").is_none() && own.contains(message["method"].as_str().unwrap_or_default()),
            "{message}"
        );
    }
    let log = proxy.stderr();
    assert!(log.contains("upstream=chatty"), "noise is logged with the upstream's name");
    assert!(log.lines().all(|line| line.len() < 1_000), "and cut in length");
}
}

// 15 — a flood on stderr

in_ways! { [stdio http modern_stdio modern_http]
fn a_flood_on_stderr_stops_nothing_and_is_not_copied(way: Way) {
    let case = Case::new("15");
    let mut proxy = case.start_in(way);
    proxy.load("loud");
    let started = Instant::now();
    for _ in 0..5 {
        assert_eq!(text_of(&proxy.call("echo", json!({}))), "still here");
    }
    assert!(started.elapsed() < 5 * SECOND);
    assert!(proxy.stderr().len() < 50_000, "the log has {} bytes", proxy.stderr().len());
}
}

// 16 — bad neighbors

in_ways! { [stdio http modern_stdio modern_http]
fn broken_upstreams_cost_the_others_nothing(way: Way) {
    let case = Case::new("16");
    let started = Instant::now();
    let mut proxy = Proxy::opened(way, &case.clients_config());
    if way.is_modern() {
        proxy.result("server/discover", json!({}));
    }
    assert!(started.elapsed() < 2 * SECOND, "the greeting took {:?}", started.elapsed());
    proxy.subscribe();
    proxy.list();
    proxy.load("good");
    assert_eq!(text_of(&proxy.call("hello_good", json!({}))), "ok:hello_good");
    // Processes start slowly on a busy machine; an idle one takes 2 s.
    assert!(started.elapsed() < 6 * SECOND, "good worked after {:?}", started.elapsed());

    // Other news may come before, as of what was loaded.
    while !json!(proxy.list()).to_string().contains("hello_slow") {
        proxy.wait_for("slow's tool is announced", 10 * SECOND, |message| {
            message["method"] == "notifications/tools/list_changed"
        });
    }
    let slow = proxy.load("slow");
    assert_eq!(slow["tools"][0]["name"], "hello_slow");
    let n_initialized =
        case.journal("journal-slow.jsonl").iter().filter(|message| message["method"] == "initialize").count();
    assert_eq!(n_initialized, 1, "a slow server is started once");

    for (skill, reasons) in
        [("quits", ["code 3", "config file not found"]), ("missing", ["no-such-program-here", "missing"])]
    {
        let asked = Instant::now();
        let loaded = proxy.load(skill);
        assert!(asked.elapsed() < 2 * SECOND);
        let warning = loaded["warnings"][0].as_str().unwrap_or_default();
        assert!(reasons.iter().all(|reason| warning.contains(reason)), "{warning}");
    }
    let n_starts = case.journal("journal-quits.jsonl").iter().filter(|message| message["started"] == true).count();
    assert!(n_starts <= 5, "quits was started {n_starts} times");
}
}

// 19 — orphans

/// The processes of the launcher that serves this client.
fn pids(proxy: &mut Proxy) -> Vec<u32> {
    proxy.load("launcher");
    let said = proxy.call("pids", json!({}));
    let pids: Vec<u32> = text_of(&said).split(' ').filter_map(|pid| pid.parse().ok()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| is_running(*pid)), "{said}");
    pids
}

/// Starts the case's launcher and returns the proxy with the two processes that it started.
fn launcher(way: Way, extra: &[&str]) -> (Case, Proxy, Vec<u32>) {
    let mut case = Case::new("19");
    case.add_args("launcher", extra);
    let mut proxy = case.start_in(way);
    let pids = pids(&mut proxy);
    (case, proxy, pids)
}

in_ways! { [stdio http modern_stdio modern_http]
fn nothing_is_left_running_however_the_proxy_is_ended(way: Way) {
    // A client over HTTP goes away without an end for the others.
    let endings = [("close", Some(0)), ("TERM", Some(0)), ("INT", Some(130))].into_iter();
    for (how, code) in endings.filter(|(how, _)| *how != "close" || !way.is_http()) {
        for (extra, most) in [(&[][..], 5), (&["--slow-exit"][..], 10)] {
            let (_case, mut proxy, pids) = launcher(way, extra);
            match how {
                "close" => proxy.close(),
                signal => proxy.signal(signal),
            }
            assert_eq!(proxy.ended(most * SECOND).code(), code, "{how} {extra:?}");
            // Killed, but on a busy machine not yet gone.
            wait_until("nothing is left", 5 * SECOND, || pids.iter().all(|pid| !is_running(*pid)));
        }
    }
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn an_upstream_that_a_new_config_does_not_have_leaves_nothing_running(way: Way) {
    for (extra, most) in [(&[][..], 5), (&["--slow-exit"][..], 10)] {
        let (mut case, mut proxy, pids) = launcher(way, extra);
        let launcher = case.servers.remove("launcher").unwrap();
        case.own_config("start-wait-ms = 20000");
        wait_until("nothing is left", most * SECOND, || pids.iter().all(|pid| !is_running(*pid)));
        case.servers.insert("launcher".into(), launcher);
        case.own_config("start-wait-ms = 20000");
        wait_until("it is back", 20 * SECOND, || text_of(&proxy.call("pids", json!({}))).split(' ').count() == 2);
    }
}
}

in_ways! { [stdio http modern_stdio modern_http]
fn nothing_is_left_running_when_the_proxy_is_killed(way: Way) {
    for extra in [&[][..], &["--slow-exit"][..]] {
        let (_case, mut proxy, pids) = launcher(way, extra);
        proxy.signal("KILL");
        proxy.ended(SECOND * 5);
        wait_until("the guard ends them", 5 * SECOND, || pids.iter().all(|pid| !is_running(*pid)));
    }
}
}

#[test]
fn a_session_that_ends_takes_its_own_processes_with_it_and_no_others() {
    let mut case = Case::new("19");
    // Who can be asked has a process of its own where the shared one is spoken to in the newer era.
    case.add_args("launcher", &["--era", "dual", "--slow-exit"]);
    let mut beside = case.start_in(Way::Http);
    let mut askable = beside.another_at(Way::Http, beside.url().to_owned());
    askable.initialize_as(&json!({"elicitation": {}}));
    let (shared, own) = (pids(&mut beside), pids(&mut askable));
    assert_ne!(shared, own);
    askable.close();
    wait_until("its own processes are gone", 10 * SECOND, || own.iter().all(|pid| !is_running(*pid)));
    assert_eq!(pids(&mut beside), shared);
}
