//! Who is measured, and how each is started between the client and the servers.

use std::{
    collections::BTreeMap,
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    Result,
    scenario::{Scenario, Transport},
    task::Front,
};

/// Somebody between the client and the servers, or nobody.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Contender {
    Direct,
    Ideal,
    Gatekey,
    /// The cargo package of this name, over HTTP only.
    McpProxy(PathBuf),
    /// The PyPI package of this name.
    FastMcp(PathBuf),
}

/// A server behind a proxy.
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// How it is started over stdio.
    pub(crate) command: Vec<String>,
    /// Where it listens already, over HTTP.
    pub(crate) url: Option<String>,
}

/// How a contender is started and reached.
pub(crate) struct Launch {
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) front: Front,
    pub(crate) skills: Vec<String>,
}

/// Everybody who is installed; and a word about who is not.
pub(crate) fn contenders() -> (Vec<Contender>, Vec<String>) {
    let mut found = vec![Contender::Direct, Contender::Ideal, Contender::Gatekey];
    let mut missing = Vec::new();
    let mcp_proxy = installed("bin", "mcp-proxy", "Standalone MCP proxy").map(Contender::McpProxy);
    let fastmcp = installed("fastmcp/bin", "fastmcp", "FastMCP").map(Contender::FastMcp);
    for rival in [mcp_proxy, fastmcp] {
        match rival {
            Ok(rival) => found.push(rival),
            Err(reason) => missing.push(reason),
        }
    }
    (found, missing)
}

/// The program in the rivals' `folder` or on the path; others of its name say something else in their help.
fn installed(folder: &str, program: &str, help: &str) -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_BIN_EXE_gatekey")).ancestors().nth(2).unwrap_or(Path::new("target"));
    let path = env::var_os("PATH").unwrap_or_default();
    let is_it = |program: &PathBuf| {
        let output = Command::new(program).arg("--help").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(help))
    };
    let folders = [target.join("rivals").join(folder)].into_iter().chain(env::split_paths(&path));
    let mut programs = folders.map(|folder| folder.join(program)).filter(|program| program.is_file());
    programs.find(is_it).ok_or_else(|| format!("{program} is not installed"))
}

impl Contender {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Ideal => "ideal",
            Self::Gatekey => "gatekey",
            Self::McpProxy(_) => "mcp-proxy",
            Self::FastMcp(_) => "fastmcp",
        }
    }

    /// Whether it is one of the project's own, whose errors are ours.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Direct | Self::Ideal | Self::Gatekey)
    }

    /// Whether it stands before one server only.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Direct | Self::Ideal)
    }

    /// How it is started; `None` where it has no such front. Its config goes into `folder`.
    pub(crate) fn launch(&self, scenario: &Scenario, upstreams: &[Upstream], folder: &Path) -> Result<Option<Launch>> {
        let front = if scenario.front == Transport::Stdio { Front::Stdio } else { Front::Http };
        Ok(match self {
            Self::Direct => Some(direct(front, &upstreams[0])),
            Self::Ideal => Some(Launch::new(ideal(&front, &upstreams[0])?, front)),
            Self::Gatekey => Some(gatekey(front, upstreams, folder)?),
            Self::McpProxy(_) if front == Front::Stdio => None,
            Self::McpProxy(program) => Some(mcp_proxy(program, upstreams, folder)?),
            Self::FastMcp(program) => Some(fastmcp(program, front, upstreams, folder)?),
        })
    }
}

impl Launch {
    fn new(command: Vec<String>, front: Front) -> Self {
        Self { command, env: BTreeMap::new(), front, skills: Vec::new() }
    }
}

/// Of words and paths.
fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn direct(front: Front, upstream: &Upstream) -> Launch {
    let mut command = upstream.command.clone();
    if front == Front::Http {
        command.push("--http".into());
    }
    Launch::new(command, front)
}

fn ideal(front: &Front, upstream: &Upstream) -> Result<Vec<String>> {
    let itself = own_program()?;
    Ok(match (front, &upstream.url) {
        (_, Some(url)) => words([&itself, "ideal", "http-http", url]),
        (Front::Stdio, None) => [words([&itself, "ideal", "stdio", "--"]), upstream.command.clone()].concat(),
        (_, None) => [words([&itself, "ideal", "http-stdio", "--"]), upstream.command.clone()].concat(),
    })
}

/// With the gate on: each upstream is a skill, and its tools are closed until that is loaded.
fn gatekey(front: Front, upstreams: &[Upstream], folder: &Path) -> Result<Launch> {
    let mut config = String::from("version = 1\nlist-budget-tokens = 1_000_000\n");
    for upstream in upstreams {
        // Texts and lists of texts are the same in JSON and TOML.
        let place = match &upstream.url {
            Some(url) => format!("url = {}", json!(url)),
            None => format!("command = {}\nargs = {}", json!(upstream.command[0]), json!(upstream.command[1..])),
        };
        config.push_str(&format!("[upstreams.{}]\n{place}\n", upstream.name));
    }
    let file = written(folder, "gatekey.toml", &config)?;
    let mut command = words([env!("CARGO_BIN_EXE_gatekey"), "proxy", "--config", &file]);
    if front == Front::Http {
        command.extend(words(["--http", "127.0.0.1:0"]));
    }
    let skills = upstreams.iter().map(|upstream| upstream.name.clone()).collect();
    Ok(Launch { skills, ..Launch::new(command, front) })
}

fn mcp_proxy(program: &Path, upstreams: &[Upstream], folder: &Path) -> Result<Launch> {
    let port = free_port()?;
    let mut config = format!(
        "[proxy]\nname = \"relay\"\nseparator = \"__\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
         [observability]\nlog_level = \"error\"\naudit = false\n"
    );
    for upstream in upstreams {
        let place = match &upstream.url {
            Some(url) => format!("transport = \"http\"\nurl = {}", json!(url)),
            None => format!(
                "transport = \"stdio\"\ncommand = {}\nargs = {}",
                json!(upstream.command[0]),
                json!(upstream.command[1..])
            ),
        };
        config.push_str(&format!("[[backends]]\nname = {}\n{place}\n", json!(upstream.name)));
    }
    let file = written(folder, "mcp-proxy.toml", &config)?;
    let command = words([&program.to_string_lossy(), "--config", &file]);
    Ok(Launch::new(command, Front::HttpAt(format!("http://127.0.0.1:{port}/"))))
}

fn fastmcp(program: &Path, front: Front, upstreams: &[Upstream], folder: &Path) -> Result<Launch> {
    let server = |upstream: &Upstream| match &upstream.url {
        Some(url) => json!({"url": url, "transport": "http"}),
        None => json!({"command": upstream.command[0], "args": upstream.command[1..]}),
    };
    let servers: BTreeMap<&str, Value> =
        upstreams.iter().map(|upstream| (upstream.name.as_str(), server(upstream))).collect();
    let file = written(folder, "fastmcp.json", &json!({"mcpServers": servers}).to_string())?;
    let mut launch =
        Launch::new(words([&program.to_string_lossy(), "run", &file, "--no-banner", "-l", "ERROR"]), front);
    launch.env.insert("FASTMCP_CHECK_FOR_UPDATES".into(), "off".into());
    if launch.front == Front::Http {
        let port = free_port()?.to_string();
        launch.command.extend(words(["-t", "http", "--host", "127.0.0.1", "-p", &port]));
        launch.front = Front::HttpAt(format!("http://127.0.0.1:{port}/mcp"));
    }
    Ok(launch)
}

/// The path of this very program.
pub(crate) fn own_program() -> Result<String> {
    Ok(env::current_exe()?.to_string_lossy().into_owned())
}

/// For those who cannot say which port the system gave them.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn written(folder: &Path, name: &str, text: &str) -> Result<String> {
    let file = folder.join(name);
    fs::write(&file, text)?;
    Ok(file.to_string_lossy().into_owned())
}
