//! What a client was sent, in numbers and bytes, by what it was for. Counting is two additions without a lock, so every
//! message can be counted; of what was said nothing is kept.

use std::sync::atomic::{AtomicU64, Ordering};

/// What something that was sent is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentAs {
    /// The server's instructions.
    Instructions,
    /// The first list.
    FirstList,
    /// A further list.
    List,
    /// What loading a skill returned.
    Load,
    /// What the other tools of ours returned: searches, references, definitions.
    Discovery,
    /// A tool call that the gate refused.
    Refusal,
    /// What an upstream's tool returned.
    Result,
}

impl SentAs {
    /// All of them, in the order of a session.
    pub const ALL: [Self; 7] =
        [Self::Instructions, Self::FirstList, Self::List, Self::Load, Self::Discovery, Self::Refusal, Self::Result];

    /// Its name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::FirstList => "first_list",
            Self::List => "list",
            Self::Load => "load",
            Self::Discovery => "discovery",
            Self::Refusal => "refusal",
            Self::Result => "result",
        }
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or_default()
    }
}

/// How often something was sent, and how many bytes that were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Messages.
    pub n: u64,
    /// Of them together.
    pub bytes: u64,
}

/// What one client was sent so far.
#[derive(Debug, Default)]
pub struct Sent {
    counts: [(AtomicU64, AtomicU64); SentAs::ALL.len()],
}

impl Sent {
    /// So many bytes are being sent.
    pub fn add(&self, kind: SentAs, bytes: usize) {
        let Some((n, all)) = self.counts.get(kind.index()) else { return };
        n.fetch_add(1, Ordering::Relaxed);
        all.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A list of so many bytes is being sent.
    pub fn add_list(&self, bytes: usize) {
        let is_first = self.amount(SentAs::FirstList).n == 0;
        self.add(if is_first { SentAs::FirstList } else { SentAs::List }, bytes);
    }

    /// What was sent of a kind.
    pub fn amount(&self, kind: SentAs) -> Amount {
        self.counts.get(kind.index()).map_or_else(Amount::default, |(n, bytes)| Amount {
            n: n.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        })
    }

    /// All amounts, as [`SentAs::ALL`].
    pub fn amounts(&self) -> [Amount; SentAs::ALL.len()] {
        SentAs::ALL.map(|kind| self.amount(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_list_is_told_from_the_others() {
        let sent = Sent::default();
        sent.add_list(10);
        sent.add_list(20);
        sent.add_list(30);
        sent.add(SentAs::Load, 5);
        assert_eq!(sent.amount(SentAs::FirstList), Amount { n: 1, bytes: 10 });
        assert_eq!(sent.amount(SentAs::List), Amount { n: 2, bytes: 50 });
        assert_eq!(sent.amount(SentAs::Load), Amount { n: 1, bytes: 5 });
        assert_eq!(sent.amount(SentAs::Result), Amount::default());
    }
}
