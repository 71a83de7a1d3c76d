//! What an upstream's link tells those above it. Called from the links' tasks in the order of the upstream's messages, so
//! nothing here may wait.

use std::{fmt::Debug, sync::Arc};

use super::{
    Offering,
    link::{Failure, Link},
};
use crate::wire::{
    envelope::Envelope,
    peer::{Peer, Relay},
};

/// A message of an upstream that is no answer, with all that is known of its cause.
#[derive(Debug)]
pub struct Message<'a> {
    /// The connection that it came on.
    pub peer: &'a Arc<Peer>,
    /// As it came.
    pub line: &'a [u8],
    /// Parsed from the line.
    pub envelope: &'a Envelope<'a>,
    /// Our id of the request on whose stream it came. Over HTTP only.
    pub about: Option<u64>,
}

/// Those who use upstreams. Implemented by the data plane, which stands a floor above.
pub trait Clients: Debug + Send + Sync {
    /// A relayed call has no answer of its upstream's.
    fn failed(&self, link: &Link, relay: &Relay, failure: &Failure);
    /// The upstream asks a client something.
    fn asked(&self, link: &Arc<Link>, message: &Message<'_>);
    /// What an upstream offers besides tools is another list now.
    fn changed(&self, offering: Offering);
    /// The upstream tells clients something, other than progress or a changed list.
    fn told(&self, link: &Arc<Link>, message: &Message<'_>);
    /// The upstream started anew: what it was told of before, it does not know.
    fn connected(&self, link: &Arc<Link>, peer: &Arc<Peer>);
    /// An upstream is not one of the config any more.
    fn removed(&self, link: &Link);
    /// A connection is gone.
    fn lost(&self, peer: &Peer);
}
