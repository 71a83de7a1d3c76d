//! What `--upstream X` means: a name in the config, a URL, a command line, or a program on PATH, in this order.

use super::{
    config::{Config, Transport, Upstream},
    entry::is_usual,
    variables::Environment,
};
use crate::model::{
    limits,
    name::UpstreamName,
    program::{Endpoint, Program},
};

/// Keeps those upstreams of `config` that `wanted` names and adds the others it describes. An empty `wanted` keeps all.
///
/// # Errors
/// A text names a disabled upstream or is empty, or a command line's quotes do not close.
pub fn choose(config: &mut Config, wanted: &[String], environment: &Environment) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut chosen: Vec<Upstream> = Vec::new();
    for text in wanted {
        if config.left_out.iter().any(|name| name.as_str() == text) {
            return Err(format!("upstream `{text}` is disabled in the config"));
        }
        let named = config.upstreams.iter().find(|upstream| upstream.name.as_str() == text);
        if let Some(named) = named {
            chosen.push(named.clone());
            continue;
        }
        let mut upstream = ad_hoc(text, environment)?;
        upstream.name = free_name(&upstream.name, &chosen);
        chosen.push(upstream);
    }
    let is_chosen = |upstream: &Upstream| chosen.iter().any(|other| other.name == upstream.name);
    let unchosen =
        config.upstreams.iter().filter(|upstream| !is_chosen(upstream)).map(|upstream| upstream.name.clone());
    config.left_out.extend(unchosen);
    config.upstreams = chosen;
    Ok(())
}

/// Makes an upstream of a URL, a command line or a program's name.
///
/// # Errors
/// The text is empty, or a command line's quotes do not close.
pub fn ad_hoc(text: &str, environment: &Environment) -> Result<Upstream, String> {
    let (name, transport) = if text.starts_with("http://") || text.starts_with("https://") {
        (
            host_of(text),
            Transport::Http(Endpoint {
                url: text.into(),
                headers: Default::default(),
                ca_file: None,
                caller_headers: Default::default(),
                oauth: None,
            }),
        )
    } else {
        let words = shlex::split(text).ok_or_else(|| format!("the quotes of `{text}` do not close"))?;
        let Some((command, args)) = words.split_first() else {
            return Err("an upstream is named by an empty text".into());
        };
        let program = Program {
            command: command.clone(),
            args: args.to_vec(),
            env: environment.some(is_usual),
            cwd: None,
            sandbox: None,
        };
        (program_name(&words), Transport::Stdio(program))
    };
    Ok(Upstream {
        name: UpstreamName::new(name),
        transport: Ok(transport),
        prefix: String::new(),
        handshake: limits::HANDSHAKE,
        call_idle: limits::CALL_IDLE,
        call_total: limits::CALL_TOTAL,
    })
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default().to_owned()
}

/// Programs that start another one, which is the server.
const LAUNCHERS: &[&str] =
    &["npx", "uvx", "bunx", "node", "deno", "bun", "python", "python3", "pnpm", "uv", "sh", "bash", "env", "cmd"];
/// Words between a launcher and what it launches.
const LAUNCHER_WORDS: &[&str] = &["run", "dlx", "exec", "tool"];
/// File and folder names that say nothing about the server in them.
const EMPTY_NAMES: &[&str] = &[
    "index",
    "main",
    "__main__",
    "cli",
    "server",
    "mcp",
    "mcp-server",
    "dist",
    "build",
    "src",
    "bin",
    "lib",
    "node_modules",
];

/// The program's name without folder and ending; behind a launcher, that of what it launches.
fn program_name(words: &[String]) -> String {
    let is_word =
        |word: &&String| !word.starts_with('-') && !word.contains('=') && !LAUNCHER_WORDS.contains(&word.as_str());
    let mut rest = words.iter().skip(1).filter(is_word);
    let mut name = words.first().map(|word| telling_part(word)).unwrap_or_default();
    while LAUNCHERS.contains(&name.as_str()) {
        match rest.next().map(|word| telling_part(word)).filter(|name| !name.is_empty()) {
            Some(launched) => name = launched,
            None => break,
        }
    }
    name
}

/// The last part of a path, without version and ending, that says what the program is.
fn telling_part(word: &str) -> String {
    let endings = [".js", ".mjs", ".cjs", ".py", ".ts", ".exe", ".cmd", ".sh"];
    let stem = |part: &str| {
        // `@scope`, or `name@version`.
        let part = part.strip_prefix('@').unwrap_or(part);
        let part = part.split_once('@').map_or(part, |(name, _)| name);
        endings.iter().find_map(|ending| part.strip_suffix(ending)).unwrap_or(part).to_owned()
    };
    let parts: Vec<String> = word.split(['/', '\\']).map(stem).filter(|part| !part.is_empty()).collect();
    let telling = parts.iter().rev().find(|part| !EMPTY_NAMES.contains(&part.as_str()));
    telling.or(parts.last()).cloned().unwrap_or_default()
}

fn free_name(name: &UpstreamName, taken: &[Upstream]) -> UpstreamName {
    let is_free = |candidate: &str| taken.iter().all(|upstream| upstream.name.as_str() != candidate);
    if is_free(name.as_str()) {
        return name.clone();
    }
    let candidates = (2..).map(|number| format!("{name}-{number}"));
    candidates.into_iter().find(|candidate| is_free(candidate)).map_or_else(|| name.clone(), UpstreamName::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_named_after_what_it_runs() {
        for (text, name) in [
            ("eshop-mcp", "eshop-mcp"),
            ("/usr/bin/eshop-mcp --role clerk", "eshop-mcp"),
            ("npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio", "server-everything"),
            ("uvx mcp-server-git --repository .", "mcp-server-git"),
            ("node 'my servers/shop.mjs' x", "shop"),
            ("node /opt/node_modules/@modelcontextprotocol/server-memory/dist/index.js", "server-memory"),
            ("npx @playwright/mcp@latest", "playwright"),
            ("node node_modules/@playwright/mcp/cli.js", "playwright"),
            ("env A=1 B=/x/y node ./notes/build/index.js", "notes"),
            ("python3 server.py", "server"),
            ("https://user@mcp.example.com:8443/mcp?x=1", "mcp.example.com"),
        ] {
            assert_eq!(ad_hoc(text, &Environment::default()).unwrap().name.as_str(), name, "{text}");
        }
        assert!(ad_hoc("", &Environment::default()).is_err());
        assert!(ad_hoc("sh -c 'x", &Environment::default()).is_err());
    }

    #[test]
    fn names_in_the_config_come_first_and_repeats_get_a_number() {
        let mut config = Config::default();
        let mut named = ad_hoc("other-program", &Environment::default()).unwrap();
        named.name = UpstreamName::new("shop");
        config.upstreams = vec![named];
        let wanted = ["shop".to_owned(), "tool a".into(), "tool b".into()];
        choose(&mut config, &wanted, &Environment::default()).unwrap();
        let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
        assert_eq!(names, ["shop", "tool", "tool-2"]);
        let Ok(Transport::Stdio(program)) = &config.upstreams[0].transport else { panic!("shop is a program") };
        assert_eq!(program.command, "other-program");
    }
}
