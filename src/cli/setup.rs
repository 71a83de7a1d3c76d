//! From `--config`, `--upstream` and `--as` to a checked config and a caller; and the runtime that commands run in.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    args::Setup,
    exit::{Exit, Failed},
};
use crate::{
    app::App,
    catalog::{Snapshot, UpstreamFacts},
    config::{Config, Environment, Loaded, Rule, choose, load_file, load_text},
    model::{
        diagnostic::{Diagnostic, Place},
        name::{UpstreamName, did_you_mean},
        principal::Principal,
        tool::Tool,
    },
    reload::Again,
    skill::SkillSet,
    upstream::Phase,
    wire::era::Era,
};

/// What a command starts with.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) config: Config,
    /// Of the config file; none of them makes it unusable.
    pub(super) findings: Vec<Diagnostic>,
    pub(super) principal: Principal,
    /// How the config is read again; absent where there is no file.
    pub(super) again: Option<Again>,
}

/// Reads the config and picks the upstreams, of which there must be one.
pub(super) fn prepare(setup: &Setup) -> Result<Prepared, Failed> {
    let prepared = prepare_from(setup, config_file(setup))?;
    if prepared.config.upstreams.is_empty() {
        let hint = "name one with `--upstream COMMAND`, or list them in `gatekey.toml`";
        return Err(Failed::new(Exit::Usage, "there is no upstream").hint(hint));
    }
    Ok(prepared)
}

/// The config file that was named, else the usual one.
pub(super) fn config_file(setup: &Setup) -> Option<PathBuf> {
    setup.config.clone().or_else(|| usual_config(&Environment::of_process()))
}

/// Reads the config, where there is one, and picks the upstreams, of which there may be none.
pub(super) fn prepare_from(setup: &Setup, file: Option<PathBuf>) -> Result<Prepared, Failed> {
    let environment = Environment::of_process();
    let Loaded { config, findings } = match &file {
        Some(file) => load_file(file, &environment),
        None => Loaded { config: Some(Config::default()), findings: Vec::new() },
    };
    let Some(mut config) = config else {
        return Err(Failed { findings, ..Failed::new(Exit::Invalid, "failed to load the config") });
    };
    with_cache(&mut config, &environment);
    config.approvals = approvals_file(&environment);
    choose(&mut config, &setup.upstreams, &environment).map_err(|message| Failed::new(Exit::Usage, message))?;
    let principal = principal(setup.principal.as_deref(), &config)?;
    let again = file.map(|file| Again {
        findings: findings.clone(),
        read: read_again(setup, &file, environment, principal.clone()),
        file: Some(file),
    });
    Ok(Prepared { config, findings, principal, again })
}

/// Does for a changed text of the config what [`prepare`] did for the first one. A list of upstreams may be empty then.
fn read_again(
    setup: &Setup,
    file: &Path,
    environment: Environment,
    running: Principal,
) -> Box<dyn Fn(String) -> Loaded + Send> {
    let (file, wanted, given) = (file.to_owned(), setup.upstreams.clone(), setup.principal.clone());
    Box::new(move |text| {
        let Loaded { mut config, mut findings } = load_text(&file, text, &environment);
        let refusal = config.as_mut().and_then(|config| {
            with_cache(config, &environment);
            config.approvals = approvals_file(&environment);
            choose(config, &wanted, &environment).err().or_else(|| {
                let refusal = match principal(given.as_deref(), config) {
                    Ok(principal) if principal == running => return None,
                    // Rules that count on other roles would give more rights than they mean.
                    Ok(_) => {
                        format!("`principals` gives `{running}` other roles, which a running gatekey does not take")
                    }
                    Err(failed) => failed.message,
                };
                Some(refusal)
            })
        });
        if let Some(refusal) = refusal {
            let place = Place { file: file.clone(), ..Place::default() };
            findings.push(Diagnostic::error("config-restart", refusal).at(place));
            config = None;
        }
        Loaded { config, findings }
    })
}

/// The user's cache folder, where the config names none.
pub(super) fn with_cache(config: &mut Config, environment: &Environment) {
    let folder = |name: &str| environment.value(name).map(PathBuf::from);
    let of_user = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache"))).or(folder("LOCALAPPDATA"));
    config.search.cache = config.search.cache.take().or(of_user.map(|folder| folder.join("gatekey")));
}

/// Where what clients were sent is written down, in the user's folder for such things.
pub(super) fn sent_file(environment: &Environment) -> Option<PathBuf> {
    let folder = |name: &str| environment.value(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local").join("state")));
    Some(of_user.or(folder("LOCALAPPDATA"))?.join("gatekey").join("sent.jsonl"))
}

/// Where it is kept which skills the user approved. No config can name it, lest a repository approves itself.
pub(super) fn approvals_file(environment: &Environment) -> Option<PathBuf> {
    environment.data_file("approved.json")
}

/// `gatekey.toml` of the folder, else of the user.
pub(super) fn usual_config(environment: &Environment) -> Option<PathBuf> {
    let of_user = environment
        .value("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment.value("HOME").map(|home| PathBuf::from(home).join(".config")))
        .or_else(|| environment.value("APPDATA").map(PathBuf::from));
    let candidates =
        [Some(PathBuf::from("gatekey.toml")), of_user.map(|folder| folder.join("gatekey").join("gatekey.toml"))];
    candidates.into_iter().flatten().find(|file| file.is_file())
}

/// `NAME` of the config, or `NAME:ROLE,ROLE`. Where the config has rules, a name or role that none of it knows is refused:
/// a slip of the pen must not give more rights.
pub(super) fn principal(given: Option<&str>, config: &Config) -> Result<Principal, Failed> {
    let Some(given) = given else { return Ok(Principal::local()) };
    let (name, roles) = given.split_once(':').unwrap_or((given, ""));
    let mut roles: Vec<String> = roles.split(',').filter(|role| !role.is_empty()).map(str::to_owned).collect();
    if !config.rules.is_empty() {
        let of_rules = |what: fn(&Rule) -> &Vec<String>| config.rules.iter().flat_map(what).map(String::as_str);
        let names: Vec<&str> =
            config.principals.keys().map(String::as_str).chain(of_rules(|rule| &rule.principals)).collect();
        let all_roles = config.principals.values().flat_map(|known| &known.roles).map(String::as_str);
        let known: Vec<&str> = all_roles.chain(of_rules(|rule| &rule.roles)).collect();
        if roles.is_empty() && !names.contains(&name) {
            return Err(unknown("principal", name, &names));
        }
        if let Some(role) = roles.iter().find(|role| !known.contains(&role.as_str())) {
            return Err(unknown("role", role, &known));
        }
    }
    roles.extend(config.principals.get(name).into_iter().flat_map(|known| known.roles.iter().cloned()));
    Ok(Principal::new(name, roles))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Failed {
    let failed = Failed::new(Exit::Usage, format!("the config knows no {what} `{name}`"));
    match did_you_mean(name, known.iter().copied()).first() {
        Some(close) => failed.hint(format!("did you mean `{close}`?")),
        None if known.is_empty() => {
            failed.hint(format!("it names no {what} at all: add it to `principals` or to a rule"))
        }
        None => failed.hint(format!("it knows: {}", known.join(", "))),
    }
}

/// Starts the upstreams for a command that only looks at them.
pub(super) fn start(config: Config) -> Result<App, Failed> {
    let app = App::start(config, None)?;
    app.pool.introduce(Era::Modern, "{}");
    Ok(app)
}

/// What upstreams offer, and all that was found about them.
pub(super) struct Looked {
    pub(super) findings: Vec<Diagnostic>,
    pub(super) snapshot: Arc<Snapshot>,
    /// Whether an upstream is down.
    pub(super) has_failed: bool,
    /// Those that answered.
    pub(super) upstreams: Vec<Seen>,
    /// What the config's folders have.
    pub(super) skills: Arc<SkillSet>,
}

impl Looked {
    /// Why those are down that are.
    pub(super) fn down(&self) -> Vec<Diagnostic> {
        self.findings.iter().filter(|finding| finding.code == "upstream-unreachable").cloned().collect()
    }
}

/// An upstream that answered.
pub(super) struct Seen {
    pub(super) name: UpstreamName,
    pub(super) facts: UpstreamFacts,
    pub(super) tools: Arc<[Arc<Tool>]>,
}

/// Starts the upstreams, waits until each has answered or failed, and ends them.
pub(super) fn look(config: Config) -> Result<Looked, Failed> {
    block_on(async {
        let app = start(config)?;
        app.all_answered().await;
        let (mut findings, snapshot) = (app.findings(), app.store.load());
        let views = app.pool.links().iter().map(|link| (link.name().clone(), link.view())).collect::<Vec<_>>();
        // Who has not said a word by now is as good as down.
        let silent = views.iter().filter(|(_, view)| view.phase == Phase::Starting).map(|(name, _)| {
            Diagnostic::error("upstream-unreachable", format!("upstream `{name}` is down: it does not answer"))
        });
        let silent: Vec<Diagnostic> = silent.collect();
        let has_failed = app.has_failed_upstreams() || !silent.is_empty();
        findings.extend(silent);
        let ready = views.into_iter().filter(|(_, view)| view.phase == Phase::Ready);
        let upstreams = ready.map(|(name, view)| Seen { name, facts: view.facts, tools: view.tools }).collect();
        let looked = Looked { findings, snapshot, has_failed, upstreams, skills: Arc::clone(&app.files().skills) };
        app.stop().await;
        Ok(looked)
    })?
}

/// Runs a command's future on one thread: everything it does is waiting.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(future);
    // A terminal as stdin is read in a thread of its own, which must not be waited for.
    runtime.shutdown_background();
    Ok(outcome)
}
