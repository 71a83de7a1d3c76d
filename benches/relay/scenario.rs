//! What is measured.

use crate::task::Work;

/// A transport, of the client or of the servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// One thing to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) front: Transport,
    pub(crate) upstream: Transport,
    pub(crate) n_upstreams: usize,
    /// Of each upstream.
    pub(crate) n_tools: usize,
    /// How long an upstream does nothing at its start.
    pub(crate) start_ms: u64,
    pub(crate) work: Work,
    pub(crate) lanes: usize,
    /// How long results are at least.
    pub(crate) bytes: usize,
    pub(crate) seconds: f64,
}

const STDIO: Scenario = Scenario {
    name: "seq",
    what: "stdio→stdio, one call at a time",
    front: Transport::Stdio,
    upstream: Transport::Stdio,
    n_upstreams: 1,
    n_tools: 10,
    start_ms: 0,
    work: Work::Call,
    lanes: 1,
    bytes: 0,
    seconds: 2.0,
};
const HTTP: Scenario =
    Scenario { name: "http-seq", what: "HTTP→stdio, one call at a time", front: Transport::Http, ..STDIO };
const BOTH: Scenario =
    Scenario { name: "hh-seq", what: "HTTP→HTTP, one call at a time", upstream: Transport::Http, ..HTTP };
const LIST: Scenario = Scenario {
    name: "list1k",
    what: "`tools/list` of 1,000",
    n_tools: 1_000,
    work: Work::List,
    bytes: 600_000,
    ..STDIO
};
const SLOW: Scenario = Scenario {
    name: "slow",
    what: "8 calls of 200 ms held by one of 5 upstreams, calls of another",
    n_upstreams: 5,
    work: Work::CallBesideSlow,
    ..STDIO
};
const START: Scenario = Scenario {
    name: "start1",
    what: "from spawn to a call answered, upstream of 200 ms",
    start_ms: 200,
    work: Work::Start,
    ..STDIO
};
const START10: Scenario =
    Scenario { name: "start10", what: "the same, a call of each of 10 such", n_upstreams: 10, ..START };
const START50: Scenario =
    Scenario { name: "start50", what: "the same, a call of each of 50 such", n_upstreams: 50, ..START };
const MEMORY: Scenario =
    Scenario { name: "memory", what: "up to 100,000 calls, 16 in flight", lanes: 16, seconds: 30.0, ..STDIO };

/// Every scenario, in the order of the table.
pub(crate) const SCENARIOS: &[Scenario] = &[
    STDIO,
    Scenario { name: "conc64", what: "64 in flight in one session", lanes: 64, ..STDIO },
    Scenario { name: "big", what: "results of 1 MiB", bytes: 1 << 20, ..STDIO },
    LIST,
    SLOW,
    START,
    START10,
    START50,
    MEMORY,
    HTTP,
    Scenario { name: "http-16", what: "16 sessions", lanes: 16, ..HTTP },
    Scenario { name: "http-256", what: "256 sessions", lanes: 256, ..HTTP },
    Scenario { name: "http-big", what: "results of 1 MiB", bytes: 1 << 20, ..HTTP },
    Scenario { name: "http-list1k", front: Transport::Http, ..LIST },
    Scenario { name: "http-slow", front: Transport::Http, ..SLOW },
    Scenario {
        name: "http-churn",
        what: "sessions opened, listed, one call, closed, 4 at a time",
        work: Work::Session,
        lanes: 4,
        ..HTTP
    },
    Scenario { name: "http-start1", front: Transport::Http, ..START },
    Scenario { name: "http-start10", front: Transport::Http, ..START10 },
    Scenario { name: "http-start50", front: Transport::Http, ..START50 },
    Scenario { name: "http-memory", front: Transport::Http, ..MEMORY },
    BOTH,
    Scenario { name: "hh-16", what: "16 sessions", lanes: 16, ..BOTH },
    Scenario { name: "hh-256", what: "256 sessions", lanes: 256, ..BOTH },
];

/// The scenarios of these names, or all where none is named.
pub(crate) fn named(names: &[String]) -> Result<Vec<Scenario>, String> {
    if names.is_empty() {
        return Ok(SCENARIOS.to_vec());
    }
    let known = || SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| SCENARIOS.iter().find(|scenario| scenario.name == name).copied();
    names.iter().map(|name| find(name).ok_or_else(|| format!("no scenario `{name}`; there are {}", known()))).collect()
}
