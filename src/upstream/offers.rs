//! What an upstream offers besides tools: asked for when a client asks, and kept to route by until it says that it has
//! changed.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use serde_json::Value;
use tracing::warn;

use super::{link::Link, lists::walk};
use crate::{
    model::limits::OFFER_WAIT,
    wire::{
        envelope::as_text,
        splice::{member, members},
    },
};

/// A kind of things that upstreams list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offering {
    /// By URI.
    Resources,
    /// By URI template.
    Templates,
    /// By name.
    Prompts,
    /// Skills of the Skills extension, by the URI of their SKILL.md.
    Skills,
    /// Tasks of the older era, by id.
    Tasks,
}

/// One entry of a list.
#[derive(Debug)]
pub struct Offer {
    /// As the upstream calls it.
    pub key: String,
    /// The entry, as it came.
    pub raw: Box<str>,
}

impl Offering {
    /// The method that lists them.
    pub fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
            Self::Skills => "skills/list",
            Self::Tasks => "tasks/list",
        }
    }

    /// The member of the result that holds them.
    pub fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            Self::Skills => "skills",
            Self::Tasks => "tasks",
        }
    }

    /// The member of an entry that tells it from others.
    pub fn key(self) -> &'static str {
        match self {
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
            Self::Prompts => "name",
            Self::Tasks => "taskId",
        }
    }

    /// Where the upstream says that it has any.
    fn capability(self) -> &'static str {
        match self {
            Self::Resources | Self::Templates => "/resources",
            Self::Prompts => "/prompts",
            Self::Skills => "/extensions/io.modelcontextprotocol~1skills",
            Self::Tasks => "/tasks/list",
        }
    }
}

/// What an upstream says that it can do; what every call wants to know of it is read once.
#[derive(Debug, Default)]
pub struct Capabilities {
    /// As the upstream said it.
    pub said: Value,
    offered: Vec<Offering>,
    has_tasks: bool,
}

impl Capabilities {
    pub(super) fn new(said: Value) -> Self {
        let all = [Offering::Resources, Offering::Templates, Offering::Prompts, Offering::Skills, Offering::Tasks];
        let offered = all.into_iter().filter(|offering| said.pointer(offering.capability()).is_some()).collect();
        let has_tasks =
            said.get("tasks").is_some() || said.pointer("/extensions/io.modelcontextprotocol~1tasks").is_some();
        Self { said, offered, has_tasks }
    }
}

impl Link {
    /// Whether the upstream says that it has such things.
    pub fn offers(&self, offering: Offering) -> bool {
        self.capabilities().offered.contains(&offering)
    }

    /// Whether calls of it can become tasks, in either era's way.
    pub fn has_tasks(&self) -> bool {
        self.capabilities().has_tasks
    }

    /// Forgets what was listed: the upstream says that it has changed.
    pub fn forget(&self, offering: Offering) {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).remove(&offering);
    }

    /// What it listed last, without asking.
    pub fn known(&self, offering: Offering) -> Option<Arc<[Offer]>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).get(&offering).cloned()
    }

    /// Asks the upstream for what it has; what it listed last where it does not answer in time.
    ///
    /// # Cancel safety
    /// Dropped, what is known stays as it was.
    pub async fn list_offers(&self, offering: Offering) -> Arc<[Offer]> {
        let known = || self.known(offering).unwrap_or_default();
        let Some(peer) = self.peer().filter(|_| self.offers(offering)) else { return known() };
        let mut offers = Vec::new();
        let mut seen = HashSet::new();
        let walked = walk(&peer, self.era(), offering.method(), offering.member(), |raw| {
            let all = members(raw).unwrap_or_default();
            let key = member(&all, offering.key()).and_then(|key| as_text(key.value)).map(|key| key.into_owned());
            let Some(key) = key.filter(|key| seen.insert(key.clone())) else { return false };
            offers.push(Offer { key, raw: raw.into() });
            true
        });
        match tokio::time::timeout(OFFER_WAIT, walked).await {
            Ok(Ok(cut)) => {
                if let Some(why) = cut {
                    warn!(upstream = %self.name(), method = offering.method(), why, "a list was cut");
                }
            }
            Ok(Err(error)) => {
                warn!(upstream = %self.name(), method = offering.method(), %error, "upstream did not list");
                return known();
            }
            Err(_elapsed) => {
                warn!(upstream = %self.name(), method = offering.method(), "upstream did not list in time");
                return known();
            }
        }
        let offers: Arc<[Offer]> = offers.into();
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).insert(offering, Arc::clone(&offers));
        offers
    }
}
