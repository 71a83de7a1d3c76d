//! Everything that is no tool: resources, prompts, completions, tasks, and methods that we know nothing of. What a client
//! names is looked up, the gate is asked, and one upstream gets the request; lists are put together of all.

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use super::{
    call::down_reason,
    dispatch::{Gateway, Request, no_method},
    error::{Denied, NO_CREDENTIAL},
    finish::{Expected, Finishing},
    inputs::Unfinished,
    offers::{Found, ORIGIN, distinct},
    params::{Rewrite, is_ambiguous},
};
use crate::{
    catalog::{OpenSkills, Snapshot},
    config::BeyondTools,
    gate::policy::{Decision, Kind, Standing},
    model::{
        limits::{CACHE_MS, CONNECT_WAIT, RESTART_WAIT},
        name::SkillName,
    },
    session::LogLevel,
    upstream::{Link, Offering, Owner},
    wire::{
        envelope::{as_text, json_text, request_line, result_line},
        era::{Era, INVALID_PARAMS, META_LOG_LEVEL, RESOURCE_NOT_FOUND},
        outbox::PushError,
        peer::{Form, Peer, Relay, Watcher},
        splice::{Edits, member, members},
    },
};

/// One request on its way to one upstream.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    /// Position of the upstream.
    pub(super) upstream: usize,
    pub(super) method: &'a str,
    /// What is asked for, for messages.
    pub(super) label: Arc<str>,
    pub(super) form: Form,
    pub(super) rewrite: Rewrite<'a>,
    /// What the client named and what the upstream calls it, where that differs.
    pub(super) renamed: Option<(String, String)>,
    /// What the answer must have in it, where the upstream's list of skills says.
    pub(super) expected: Option<Expected>,
    /// Skills whose use the answer shows, if it is no error.
    pub(super) shows_use_of: Vec<SkillName>,
    /// Whether it does no harm if the upstream gets it twice.
    pub(super) is_repeatable: bool,
    /// Who wants to know what becomes of it, if anybody does.
    pub(super) watcher: Option<Box<dyn Watcher>>,
}

/// Why there is no connection for a request.
#[derive(Debug)]
pub(super) enum NoConnection {
    /// The upstream is not one of the config any more.
    Gone,
    /// The caller has nothing by which the upstream would know them, for this reason.
    NoRight(String),
}

/// What a request names, and where that is.
struct Target<'a> {
    /// The member of the params that names it.
    member: &'a str,
    /// What stands there instead for the upstream, as JSON.
    value: String,
    /// As the client calls it.
    exposed: String,
    found: Found,
}

impl Gateway {
    /// Serves a request that is about no tool.
    pub(super) fn relay(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        match method {
            "resources/list" => self.list_offering(request, Offering::Resources),
            "resources/templates/list" => self.list_offering(request, Offering::Templates),
            "prompts/list" => self.list_offering(request, Offering::Prompts),
            "skills/list" => self.list_offering(request, Offering::Skills),
            "tasks/list" if self.has(Offering::Tasks) => self.list_offering(request, Offering::Tasks),
            "resources/read" | "resources/directory/read" | "skills/get" if self.answer_own_skill(request, method) => {}
            "resources/read" | "resources/directory/read" | "skills/get" => {
                self.about_uri(request, method, &[Offering::Resources, Offering::Templates, Offering::Skills]);
            }
            "prompts/get" => self.about_prompt(request, method),
            "completion/complete" => self.complete(request),
            "tasks/get" | "tasks/cancel" | "tasks/result" | "tasks/update" => self.about_task(request, method),
            _ => self.custom(request, method),
        }
    }

    /// Lists what all upstreams have, as one page.
    fn list_offering(self: &Arc<Self>, request: &Request<'_>, offering: Offering) {
        if request.params.raw("cursor").is_some_and(|cursor| cursor != "null") {
            return request.refuse(INVALID_PARAMS, "invalid cursor");
        }
        if !request.has_waited() {
            let gateway = Arc::clone(self);
            let snapshot = Arc::clone(&request.snapshot);
            return self.later(request, async move {
                if offering == Offering::Skills {
                    super::skills::read_all(snapshot).await;
                }
                drop(gateway.ask_all(offering).await);
            });
        }
        let table = self.table(offering);
        let kind = if offering == Offering::Tasks { Kind::Other } else { Kind::Resource };
        let is_allowed = |upstream: usize, exposed: &str, original: &str| {
            let decision = self.may_use(request, kind, upstream, exposed, original);
            !matches!(decision, Decision::Forbidden | Decision::Inactive)
        };
        if request.era == Era::Legacy && matches!(offering, Offering::Resources | Offering::Skills) {
            let known = self.lists.resources(&request.snapshot, &request.session.principal);
            request.session.state().known_resources = Some(known);
        }
        let is_own = |id: &str, upstream: usize| self.tasks.is_for(id, upstream, request.session);
        let mut listed = self.own_entries(request, offering);
        for entry in &table.entries {
            if is_allowed(entry.upstream, &entry.exposed, &entry.original)
                && (offering != Offering::Tasks || is_own(&entry.original, entry.upstream))
            {
                listed.push(entry.listed.clone());
            }
        }
        let rest = match request.era {
            Era::Legacy => String::new(),
            Era::Modern => format!(r#","resultType":"complete","ttlMs":{CACHE_MS},"cacheScope":"private""#),
        };
        let result = format!(r#"{{"{}":[{}]{rest}}}"#, offering.member(), listed.join(","));
        request.to.answer(result_line(&request.id, &result));
    }

    /// A request about one URI.
    pub(super) fn about_uri(self: &Arc<Self>, request: &Request<'_>, method: &str, offerings: &[Offering]) {
        let Some(uri) = request.params.text_of("uri") else {
            return request.refuse(INVALID_PARAMS, "`uri` must be a text");
        };
        if self.is_asking(request, offerings) {
            return;
        }
        let is_of_skills = method == "skills/get" || method == "resources/directory/read";
        let has_skills =
            |found: &Found| self.pool.link(found.upstream).is_some_and(|link| link.offers(Offering::Skills));
        match self.find_uri(&uri).filter(|found| !is_of_skills || has_skills(found)) {
            Some(found) => {
                let value = json_text(&found.original);
                self.about(request, method, Target { member: "uri", value, exposed: uri.into_owned(), found });
            }
            None => unknown(request, method, &uri),
        }
    }

    fn about_prompt(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        let Some(name) = request.params.text_of("name") else {
            return request.refuse(INVALID_PARAMS, "`name` must be a text");
        };
        if self.is_asking(request, &[Offering::Prompts]) {
            return;
        }
        let Some(found) = self.find_prompt(&name) else {
            return unknown(request, method, &name);
        };
        let value = json_text(&found.original);
        self.about(request, method, Target { member: "name", value, exposed: name.into_owned(), found });
    }

    /// A prompt by the name that clients know; where one upstream has prompts, also one that it does not list.
    fn find_prompt(&self, name: &str) -> Option<Found> {
        if let Some(entry) = self.table(Offering::Prompts).find(name) {
            return Some(Found { upstream: entry.upstream, original: entry.original.clone() });
        }
        let links = self.pool.links();
        let mut having = links.iter().filter(|link| link.offers(Offering::Prompts));
        let upstream = having.next()?.index();
        having.next().is_none().then(|| Found { upstream, original: name.to_owned() })
    }

    /// A completion is about an argument of a prompt or of a template.
    fn complete(self: &Arc<Self>, request: &Request<'_>) {
        let reference = request.params.raw("ref");
        let all = reference.and_then(|reference| members(reference)).unwrap_or_default();
        let named: Vec<(&str, &str)> =
            ["name", "uri"].iter().filter_map(|key| Some((*key, member(&all, key)?.value))).collect();
        // The gate must not decide on one while the upstream completes the other.
        let is_ambiguous = is_ambiguous(&all, &["type", "name", "uri"]);
        let (Some(reference), &[(key, named)]) = (reference.filter(|_| !is_ambiguous), named.as_slice()) else {
            return request.refuse(INVALID_PARAMS, "`ref` must name one prompt or one resource template");
        };
        if self.is_asking(request, &[Offering::Prompts, Offering::Templates, Offering::Resources]) {
            return;
        }
        let exposed = as_text(named).unwrap_or_default().into_owned();
        let found = if key == "name" { self.find_prompt(&exposed) } else { self.find_uri(&exposed) };
        let Some(found) = found else {
            return unknown(request, "completion/complete", &exposed);
        };
        let completes = |link: Arc<Link>| link.capabilities().said.get("completions").is_some();
        let may_use = self.may_use(request, Kind::Resource, found.upstream, &exposed, &found.original);
        if may_use != Decision::Forbidden && !self.pool.link(found.upstream).is_some_and(completes) {
            return request.answer(json!({"completion": {"values": [], "total": 0, "hasMore": false}}));
        }
        let mut edits = Edits::new(reference);
        if found.original != exposed {
            edits.replace(named, json_text(&found.original));
        }
        let value = edits.apply();
        self.about(request, "completion/complete", Target { member: "ref", value, exposed, found });
    }

    fn about_task(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        let Some(id) = request.params.text_of("taskId") else {
            return request.refuse(INVALID_PARAMS, "`taskId` must be a text");
        };
        let links = self.pool.links();
        let mut having = links.iter().filter(|link| link.has_tasks());
        let only = having.next().filter(|_| having.next().is_none()).map(|link| link.index());
        let known = self.tasks.upstream(&id, &request.session.principal);
        let Some(upstream) = known.or(only.filter(|only| self.tasks.is_for(&id, *only, request.session))) else {
            let has_any = links.iter().any(|link| link.has_tasks());
            return if has_any { unknown(request, method, &id) } else { no_method(request, method) };
        };
        let found = Found { upstream, original: id.clone().into_owned() };
        self.about(
            request,
            method,
            Target { member: "taskId", value: json_text(&id), exposed: id.into_owned(), found },
        );
    }

    /// A method that we know nothing of goes to the upstream that the client names, or to the only one there is.
    fn custom(self: &Arc<Self>, request: &Request<'_>, method: &str) {
        let links = self.pool.links();
        let named = request.params.meta_text(ORIGIN);
        let link = match &named {
            Some(name) => links.iter().find(|link| link.name().as_str() == name),
            None => links.first().filter(|_| links.len() == 1),
        };
        let Some(upstream) = link.map(|link| link.index()) else {
            if links.len() > 1 && named.is_none() {
                let hint =
                    format!("method not found: {method}; `_meta[\"{ORIGIN}\"]` can name the upstream that has it");
                return request.refuse(crate::wire::era::METHOD_NOT_FOUND, &hint);
            }
            return no_method(request, method);
        };
        if !is_anybodys(method) || !is_open_to(request, upstream) {
            // What it does is not known, so it is not there for somebody to whom nothing of the upstream is open.
            return no_method(request, method);
        }
        let found = Found { upstream, original: method.to_owned() };
        let target = Target { member: "", value: String::new(), exposed: method.to_owned(), found };
        self.about(request, method, target);
    }

    /// Asks upstreams for their lists where one was never asked, and takes the request up again after that.
    fn is_asking(self: &Arc<Self>, request: &Request<'_>, offerings: &[Offering]) -> bool {
        let unasked: Vec<Offering> = offerings.iter().copied().filter(|offering| self.is_unasked(*offering)).collect();
        if request.has_waited() || unasked.is_empty() {
            return false;
        }
        let gateway = Arc::clone(self);
        self.later(request, async move {
            for offering in unasked {
                gateway.ask_all(offering).await;
            }
        });
        true
    }

    /// Asks the gate and sends the request to the one upstream.
    fn about(self: &Arc<Self>, request: &Request<'_>, method: &str, target: Target<'_>) {
        let Target { member, value, exposed, found } = target;
        let Some(link) = self.pool.link(found.upstream) else { return gone(request) };
        let kind = match member {
            "uri" | "name" | "ref" => Kind::Resource,
            _ => Kind::Other,
        };
        let decision = self.may_use(request, kind, found.upstream, &exposed, &found.original);
        if decision == Decision::Unavailable && !request.is_last_try() && link.is_available() {
            return self.later(request, async move { drop(link.wait_ready(RESTART_WAIT).await) });
        }
        let is_concealed = decision == Decision::Forbidden && request.snapshot.config.is_concealing;
        if is_concealed || decision == Decision::NotFound {
            self.record_denial(request, &exposed, if is_concealed { "forbidden" } else { "not_found" });
            return unknown(request, method, &exposed);
        }
        if decision != Decision::Allow {
            return self.deny(request, decision, &link, &exposed);
        }
        let link = match self.connection(request, found.upstream) {
            Ok(link) => link,
            Err(NoConnection::Gone) => return gone(request),
            Err(NoConnection::NoRight(reason)) => {
                self.record_denial(request, &exposed, NO_CREDENTIAL);
                let data = json!({"code": NO_CREDENTIAL});
                return request.refuse_with(INVALID_PARAMS, &format!("`{}`: {reason}", link.name()), Some(&data));
            }
        };
        let Some(peer) = link.peer() else {
            if request.is_last_try() {
                return self.deny(request, Decision::Unavailable, &link, &exposed);
            }
            return self.later(request, async move { drop(link.wait_ready(CONNECT_WAIT).await) });
        };
        let renamed = (exposed != found.original).then(|| (exposed.clone(), found.original.clone()));
        let outgoing = Outgoing {
            upstream: found.upstream,
            method,
            label: exposed.as_str().into(),
            form: Form::Error,
            rewrite: Rewrite { names: (!member.is_empty()).then_some((member, value.as_str())), ..Rewrite::default() },
            expected: if method == "resources/read" { self.expected(&found) } else { None },
            renamed,
            shows_use_of: Vec::new(),
            is_repeatable: matches!(
                method,
                "resources/read" | "resources/directory/read" | "skills/get" | "completion/complete" | "tasks/get"
            ),
            watcher: None,
        };
        if self.send(request, &link, &peer, outgoing).is_err() {
            self.deny(request, Decision::Unavailable, &link, &exposed);
        }
    }

    /// The connection for a request: one by the caller's own right where the upstream wants that, and never another one
    /// then; a session of the older era that can be asked something gets its own where the upstream may ask.
    ///
    /// # Errors
    /// There is none for this caller.
    pub(super) fn connection(&self, request: &Request<'_>, upstream: usize) -> Result<Arc<Link>, NoConnection> {
        let link = self.pool.link(upstream).ok_or(NoConnection::Gone)?;
        let session = request.session;
        let right = link.right_of(&session.principal, session.brought().as_deref()).map_err(NoConnection::NoRight)?;
        let (caller, brought) = right.map_or_else(Default::default, |(caller, brought)| (Some(caller), brought));
        if request.era == Era::Legacy && !session.is_alone && link.is_for_one() {
            let capabilities = session.state().capabilities.clone();
            let owner = Owner { session: Some(session.id), caller: caller.clone() };
            let own = capabilities
                .filter(|said| asks_back(said))
                .and_then(|said| self.pool.open_own(upstream, owner, Some(&said), brought.clone(), false));
            if let Some(own) = own {
                return Ok(own);
            }
        }
        if caller.is_none() {
            return Ok(link);
        }
        let has_waited = request.has_waited();
        let own = self.pool.open_own(upstream, Owner { session: None, caller }, None, brought, !has_waited);
        let own = own.ok_or_else(|| NoConnection::NoRight("too many connections to it are open".into()))?;
        match own.no_right().filter(|_| has_waited && own.peer().is_none()) {
            Some(reason) => Err(NoConnection::NoRight(reason)),
            None => Ok(own),
        }
    }

    /// Whether the caller may use something of an upstream that is no tool: the same decision as for tools. Patterns of
    /// rules are held against the name or URI.
    pub(super) fn may_use(
        &self,
        request: &Request<'_>,
        kind: Kind,
        upstream: usize,
        exposed: &str,
        original: &str,
    ) -> Decision {
        let Some(link) = self.pool.link(upstream) else { return Decision::NotFound };
        let standing = Standing {
            kind,
            upstream: link.name(),
            exposed,
            original,
            is_quarantined: false,
            is_open: request.snapshot.config.beyond_tools == BeyondTools::Readable || is_open_to(request, upstream),
            is_available: link.peer().is_some(),
        };
        request.snapshot.policy.decide(&request.session.principal, Some(&standing))
    }

    fn deny(&self, request: &Request<'_>, decision: Decision, link: &Link, what: &str) {
        let tools = request.snapshot.registry.tools().iter().enumerate();
        let own = tools.filter(|(_, tool)| tool.upstream == *link.name());
        let openers = own.flat_map(|(position, _)| request.snapshot.openers(position));
        let (policy, principal) = (&request.snapshot.policy, &request.session.principal);
        let skills = openers.map(SkillName::as_str).filter(|skill| policy.is_skill_visible(principal, skill));
        let denied = Denied { what, skills: distinct(skills), reason: down_reason(link) };
        self.record_denial(request, what, &format!("{decision:?}").to_lowercase());
        let (code, message, data) = denied.error(decision, request.era);
        request.refuse_with(code, &message, Some(&data));
    }

    /// The caller may know that it is there and that they may not use it.
    pub(super) fn forbid(&self, request: &Request<'_>, what: &str) {
        self.record_denial(request, what, "forbidden");
        let denied = Denied { what, skills: Vec::new(), reason: None };
        let (code, message, data) = denied.error(Decision::Forbidden, request.era);
        request.refuse_with(code, &message, Some(&data));
    }

    /// Sends a request to its upstream.
    ///
    /// # Errors
    /// The upstream does not take it; the client is not answered yet.
    pub(super) fn send(
        self: &Arc<Self>,
        request: &Request<'_>,
        link: &Link,
        peer: &Peer,
        mut outgoing: Outgoing<'_>,
    ) -> Result<(), PushError> {
        // A tool's call is recorded where more of it is known.
        if outgoing.method != "tools/call" && !self.record_request(request, link.name().as_str(), &mut outgoing) {
            return Err(PushError::Closed);
        }
        let Outgoing {
            upstream,
            method,
            label,
            form,
            rewrite,
            renamed,
            expected,
            shows_use_of,
            is_repeatable,
            watcher,
        } = outgoing;
        let from = link.era();
        let Some(state) = self.own_state(request, link) else {
            request.refuse(INVALID_PARAMS, "`requestState` is none that this client was given");
            return Ok(());
        };
        let rewrite = Rewrite { state: state.as_deref(), ..rewrite };
        let rewrite = Rewrite { from_modern: request.era == Era::Modern, to_modern: from == Era::Modern, ..rewrite };
        let is_cached = method == "resources/read";
        let is_bridged = request.era == Era::Legacy && from == Era::Modern;
        let unfinished = is_bridged.then(|| Unfinished {
            session: Arc::clone(request.session),
            to: Arc::clone(request.to),
            line: request.line.to_owned(),
            n_rounds: request.n_rounds,
        });
        let (capabilities, log_level) = if is_bridged {
            let state = request.session.state();
            (state.capabilities.clone(), state.log_level)
        } else {
            (None, None)
        };
        let rewrite =
            Rewrite { capabilities: capabilities.as_deref(), log_level: log_level.map(LogLevel::as_str), ..rewrite };
        let finishing = Finishing {
            gateway: Arc::clone(self),
            upstream,
            from,
            to: request.era,
            is_cached,
            may_be_task: method == "tools/call" && link.has_tasks(),
            renamed,
            expected,
            shows_use_of,
            seals_for: (request.session.is_one_of_many && from == Era::Modern && request.era == Era::Modern)
                .then(|| link.name().clone()),
            session: Arc::clone(request.session),
            unfinished,
        };
        let now = Instant::now();
        let idle = link.config().call_idle;
        let relay = Relay {
            to: Arc::clone(request.to),
            session: request.session.id,
            client_id: request.id.clone(),
            label,
            form,
            takes_log: request.era == Era::Legacy || request.params.meta_text(META_LOG_LEVEL).is_some(),
            token: request.params.token().map(|token| token.into()),
            is_repeatable,
            finish: finishing.into_finish(),
            watcher,
            sent: (method == "tools/call").then(|| Arc::clone(&request.session.sent)),
            held: request.to.held(),
            idle,
            expires: now + idle,
            ends: now + link.config().call_total,
        };
        peer.relay(relay, |id| request_line(id, method, &request.params.rewritten(rewrite, id)))
    }
}

impl Gateway {
    /// The state with which a request goes on, as its upstream wrote it and as JSON, where clients have it sealed: an
    /// upstream knows none of our callers, so one could go on where another stopped. `None` where it is not the caller's.
    fn own_state(&self, request: &Request<'_>, link: &Link) -> Option<Option<String>> {
        let session = request.session;
        // A legacy client is given no state; what stands there then is what we put there.
        let is_ours = request.era == Era::Legacy && request.n_rounds > 0;
        let Some(given) = request.params.raw("requestState").filter(|_| session.is_one_of_many && !is_ours) else {
            return Some(None);
        };
        let sealed = as_text(given)?;
        let state = self.secret.unseal(&session.principal, link.name(), &sealed)?;
        Some(Some(json_text(state)))
    }
}

/// Whether a tool of the upstream is open to the caller.
fn is_open_to(request: &Request<'_>, upstream: usize) -> bool {
    is_any_open(&request.snapshot, &super::call::open_to(request, None), upstream)
}

/// Whether any of these skills opens a tool of the upstream, or one is always open.
pub(super) fn is_any_open(snapshot: &Snapshot, open: &OpenSkills, upstream: usize) -> bool {
    let mut own = snapshot.registry.tools().iter().enumerate().filter(|(_, tool)| tool.upstream_index == upstream);
    own.any(|(position, _)| snapshot.is_open(position, open))
}

/// Whether a method that we know nothing of may be passed on. Those of the protocol's own families name things that rules
/// are about, in ways that we do not know; and what is spelled nearly as one of them is one to a lenient server.
fn is_anybodys(method: &str) -> bool {
    let family = method.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_plain = method.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain && !["tools", "resources", "prompts", "completion", "tasks", "skills"].contains(&&*family)
}

/// Whether a client said that it can be asked anything.
fn asks_back(capabilities: &str) -> bool {
    let said: serde_json::Value = serde_json::from_str(capabilities).unwrap_or_default();
    ["sampling", "elicitation", "roots"].iter().any(|name| said.get(name).is_some())
}

/// What was found is of a server that a new config does not have.
fn gone(request: &Request<'_>) {
    request.refuse(INVALID_PARAMS, "its server is not in the config any more");
}

/// Nothing of this name is there, or the caller must not know that it is.
fn unknown(request: &Request<'_>, method: &str, what: &str) {
    match method {
        "prompts/get" => request.refuse(INVALID_PARAMS, &format!("unknown prompt: {what}")),
        "completion/complete" => request.refuse(INVALID_PARAMS, &format!("unknown reference: {what}")),
        "tasks/get" | "tasks/cancel" | "tasks/result" | "tasks/update" => {
            request.refuse(INVALID_PARAMS, &format!("unknown task: {what}"));
        }
        "skills/get" | "resources/directory/read" => {
            let data = json!({"uri": what});
            request.refuse_with(INVALID_PARAMS, "there is no such skill or folder", Some(&data));
        }
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => not_there(request, what),
        _ => no_method(request, method),
    }
}

/// No upstream has a resource of this URI.
pub(super) fn not_there(request: &Request<'_>, uri: &str) {
    let code = if request.era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    request.refuse_with(code, "resource not found", Some(&json!({"uri": uri})));
}
