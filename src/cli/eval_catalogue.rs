//! What `gatekey eval` searches: the skills of a config or of folders, or servers with their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use serde::Deserialize;

use super::{
    args::{Eval, Setup},
    eval::read,
    exit::{Exit, Failed},
    setup::{config_file, look, prepare, prepare_from, with_cache},
};
use crate::{
    catalog::{Snapshot, semantic},
    config::{Config, Encoder, Environment},
    gateway::META_TOOLS,
    reload::Files,
    search::{Entry, Found, Index, Semantic},
};

/// A catalogue that can be searched.
pub(super) struct Catalogue {
    /// By position.
    pub(super) names: Vec<String>,
    kind: Kind,
    semantic: Semantic,
    words_weight: f32,
}

enum Kind {
    Skills(Arc<Snapshot>),
    Servers(Index, Vec<BTreeSet<String>>),
}

/// What was found.
pub(super) struct Ranking {
    /// Best first.
    pub(super) positions: Vec<usize>,
    /// See [`Found::is_doubtful`].
    pub(super) is_doubtful: bool,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Tool {
    server: String,
    name: String,
    #[serde(default)]
    description: Option<String>,
}

impl Catalogue {
    /// Reads what is searched, with another config than the one of `args` where there is one, and encodes it.
    pub(super) fn of(args: &Eval, config: Option<&Path>, is_lexical: bool) -> Result<Self, Failed> {
        let setup = Setup { config: config.map(Path::to_owned), ..args.setup.clone() };
        let has_own = !args.skills.is_empty() || args.servers.is_some();
        let mut config = match (has_own, config) {
            (true, None) => Config::default(),
            _ => {
                let config = prepare_from(&setup, config_file(&setup))?.config;
                // Skills can be looked for without any upstream.
                if has_own || !config.skills.is_empty() { config } else { prepare(&setup)?.config }
            }
        };
        with_cache(&mut config, &Environment::of_process());
        if is_lexical {
            config.search.encoder = Encoder::Off;
            config.search.reranker = None;
        }
        let (semantic, words_weight) = (semantic(&config.search), config.search.words_weight);
        if let Some(servers) = &args.servers {
            let (names, index, tools) = read_servers(servers, args.tools.as_deref())?;
            index.learn(&semantic, || true);
            return Ok(Self { names, kind: Kind::Servers(index, tools), semantic, words_weight });
        }
        let snapshot = if args.skills.is_empty() {
            look(config)?.snapshot
        } else {
            config.skills = args.skills.iter().cloned().map(Into::into).collect();
            config.upstreams.clear();
            Arc::new(Files::read(config).snapshot(0, Vec::new(), META_TOOLS))
        };
        snapshot.learn_skills(&semantic, || true);
        let names = snapshot.skills.keys().map(ToString::to_string).collect();
        Ok(Self { names, kind: Kind::Skills(snapshot), semantic, words_weight })
    }

    /// What skills are ranked by, as it stands after they were searched for `query`.
    pub(super) fn ranked_by(&self, query: &str) -> String {
        self.search(query).by()
    }

    /// What the encoder and the reranker are called, where there are such.
    pub(super) fn models(&self) -> [Option<String>; 2] {
        [self.semantic.encoder_name().map(str::to_owned), self.semantic.reranker_name()]
    }

    /// What fits, without what search never shows.
    pub(super) fn find(&self, query: &str) -> Ranking {
        let found = self.search(query);
        let is_hidden = |position: usize| match &self.kind {
            Kind::Skills(snapshot) => {
                snapshot.skills.get(self.names[position].as_str()).is_some_and(|skill| skill.is_hidden)
            }
            Kind::Servers(..) => false,
        };
        let positions = found.hits.iter().map(|hit| hit.position).filter(|position| !is_hidden(*position));
        Ranking { positions: positions.collect(), is_doubtful: found.is_doubtful }
    }

    /// Whether the skill at `position` opens `tool`, by its exposed or its own name.
    pub(super) fn opens(&self, position: usize, tool: &str) -> bool {
        match &self.kind {
            Kind::Skills(snapshot) => {
                let skill = snapshot.skills.get(self.names[position].as_str());
                let tools =
                    skill.into_iter().flat_map(|skill| &skill.tools).map(|tool| &snapshot.registry.tools()[*tool]);
                tools.into_iter().any(|opened| opened.exposed.as_str() == tool || opened.tool.name.as_str() == tool)
            }
            Kind::Servers(_, tools) => tools[position].contains(tool),
        }
    }

    fn search(&self, query: &str) -> Found {
        match &self.kind {
            Kind::Skills(snapshot) => snapshot.find_skills(query, &self.semantic),
            Kind::Servers(index, _) => index.search(query, &self.semantic, self.words_weight).unwrap_or_default(),
        }
    }
}

/// Names, an index and the tools of each, in the order of the file.
type Servers = (Vec<String>, Index, Vec<BTreeSet<String>>);

fn read_servers(servers: &Path, tools: Option<&Path>) -> Result<Servers, Failed> {
    let servers: Vec<Server> = read(servers)?;
    let mut of_server: BTreeMap<String, Vec<Tool>> = BTreeMap::new();
    for tool in tools.map(read::<Tool>).transpose()?.into_iter().flatten() {
        of_server.entry(tool.server.clone()).or_default().push(tool);
    }
    let of = |server: &Server| of_server.get(&server.name).map(Vec::as_slice).unwrap_or_default();
    let line = |tool: &Tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        format!("{} {}", tool.name, description.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let entry = |server: &Server| Entry {
        name: server.name.clone(),
        description: server.description.clone(),
        tools: of(server).iter().map(line).collect::<Vec<_>>().join("\n"),
        ..Entry::default()
    };
    let index = Index::build(servers.iter().map(entry));
    let index = index.map_err(|error| Failed::new(Exit::Internal, format!("failed to index the servers: {error}")))?;
    let tools = servers.iter().map(|server| of(server).iter().map(|tool| tool.name.clone()).collect()).collect();
    Ok((servers.into_iter().map(|server| server.name).collect(), index, tools))
}
