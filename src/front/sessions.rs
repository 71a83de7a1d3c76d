//! Sessions of the older era: opened by `initialize`, named by a header, ended by DELETE or by not being used.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use data_encoding::HEXLOWER;
use tokio::time::Instant;

use super::stream::Stream;
use crate::{
    auth::{Caller, Credential},
    gateway::Gateway,
    model::{
        limits::{REPLAY_ENDED_BYTES, SESSION_SHARE, STREAMS, UNSOLICITED_BYTES},
        name::SkillName,
    },
    session::Session,
    wire::outbox::{Kind, Outbox},
};

/// One session of a client over HTTP.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: Box<str>,
    pub(super) session: Arc<Session>,
    /// What nobody asked for.
    pub(super) unsolicited: Arc<Stream>,
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
    last_stream: AtomicU64,
    used: Mutex<Instant>,
    /// Who used it last: the same principal always, but not always by the same right.
    caller: Mutex<Caller>,
    /// Connections that are open.
    pub(super) n_open: AtomicU64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Sessions {
    gateway: Arc<Gateway>,
    most: usize,
    idle: Duration,
    all: Mutex<HashMap<Box<str>, Arc<HttpSession>>>,
}

impl HttpSession {
    /// Opens a stream for the answer to a request, and keeps it for a client that loses its connection.
    pub(super) fn open_stream(&self, outbox: &Arc<Outbox>) -> Arc<Stream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = Arc::new(Stream::new(number, Arc::clone(outbox)));
        let mut streams = self.streams();
        streams.insert(number, Arc::clone(&stream));
        while streams.len() > STREAMS {
            let ended = streams.iter().find(|(_, stream)| stream.outbox.is_done()).map(|(number, _)| *number);
            match ended {
                Some(number) => drop(streams.remove(&number)),
                None => drop(streams.pop_first()),
            }
        }
        stream
    }

    /// A stream that can be taken up again.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        if number == 0 { Some(Arc::clone(&self.unsolicited)) } else { self.streams().get(&number).cloned() }
    }

    /// A stream ended. That its answer was written does not mean that it arrived, so the last ones are kept for a client
    /// that lost its connection meanwhile.
    pub(super) fn forget_ended(&self) {
        let mut streams = self.streams();
        let mut kept_bytes = 0;
        let mut is_too_much = |stream: &Stream| {
            kept_bytes += stream.size_bytes();
            kept_bytes > REPLAY_ENDED_BYTES
        };
        let ended = streams.iter().rev().filter(|(_, stream)| stream.outbox.is_done());
        let old: Vec<u64> = ended.filter(|(_, stream)| is_too_much(stream)).map(|(number, _)| *number).collect();
        for number in old {
            streams.remove(&number);
        }
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is used now.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn caller(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self, most: Duration) -> bool {
        self.n_open.load(Ordering::Relaxed) == 0
            && self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= most
    }
}

impl Sessions {
    pub(super) fn new(gateway: Arc<Gateway>, most: usize, idle: Duration) -> Self {
        Self { gateway, most, idle, all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<HttpSession>>> {
        // Nothing in here can panic half-way through a change.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session; `None` where there are too many, none of which is idle. One of many callers can take only a part of
    /// them, so that there are some left for the others.
    pub(super) fn open(&self, caller: &Caller, skill: Option<SkillName>) -> Option<Arc<HttpSession>> {
        if self.all().len() >= self.most {
            self.end_idle();
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id: Box<str> = HEXLOWER.encode(&random).into();
        let outbox = Arc::new(Outbox::of_kind(Kind::Unsolicited, UNSOLICITED_BYTES));
        let mut session = Session::new(Arc::clone(&outbox), caller.principal.clone());
        session.own_skill = skill;
        session.is_one_of_many = caller.credential != Credential::None;
        let session = Arc::new(session);
        let opened = Arc::new(HttpSession {
            id: id.clone(),
            session: Arc::clone(&session),
            unsolicited: Arc::new(Stream::new(0, outbox)),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
            caller: Mutex::new(caller.clone()),
            n_open: AtomicU64::new(0),
        });
        let mut all = self.all();
        let is_own = |other: &&Arc<HttpSession>| other.session.principal.name == caller.principal.name;
        let most_own = if session.is_one_of_many { (self.most / SESSION_SHARE).max(1) } else { self.most };
        if all.len() >= self.most || all.values().filter(is_own).count() >= most_own {
            return None;
        }
        all.insert(id, Arc::clone(&opened));
        drop(all);
        self.gateway.open(&session);
        Some(opened)
    }

    /// The session that a client names. That of another principal is none, and so is one from before its principal had the
    /// roles of now.
    pub(super) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let found = self.all().get(id).filter(|session| session.session.principal == caller.principal).cloned();
        if let Some(session) = &found {
            session.touch();
            session.caller().clone_from(caller);
        }
        found
    }

    /// Ends those that may not stay.
    pub(super) fn end_others(&self, may_stay: impl Fn(&Caller) -> bool) {
        let ended: Vec<Box<str>> = self
            .all()
            .values()
            .filter(|session| !may_stay(&session.caller()))
            .map(|session| session.id.clone())
            .collect();
        for id in ended {
            self.end(&id);
        }
    }

    /// Ends a session; says whether there was one.
    pub(super) fn end(&self, id: &str) -> bool {
        let ended = self.all().remove(id);
        if let Some(ended) = &ended {
            self.gateway.close(&ended.session);
            ended.session.outbox().close();
        }
        ended.is_some()
    }

    /// Ends those that were not used for a while.
    pub(super) fn end_idle(&self) {
        let idle: Vec<Box<str>> = self
            .all()
            .values()
            .filter(|session| session.is_idle(self.idle))
            .map(|session| session.id.clone())
            .collect();
        for id in idle {
            self.end(&id);
        }
    }

    /// Ends all.
    pub(super) fn end_all(&self) {
        let ids: Vec<Box<str>> = self.all().keys().cloned().collect();
        for id in ids {
            self.end(&id);
        }
    }
}
