//! Keys: proof that a skill was loaded, without any state between requests. A guard against invented calls, not a right:
//! rights are checked at every call besides.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::map::Pattern;
use crate::model::{
    name::{SkillName, UpstreamName},
    principal::Principal,
};

/// Characters of the digest in a key: 30 bits, enough against guessing a name that was never handed out.
const DIGEST_CHARS: usize = 6;

/// What keys are made with; never shown.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Takes any number of bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The key by which `principal` may call what `skill` opens: `eshop-orders.k3f9q7`. It changes with the skill's
    /// patterns, so a map edit makes old keys stale.
    pub fn key(&self, principal: &Principal, skill: &SkillName, patterns: &[Pattern]) -> String {
        let mut sorted: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        sorted.sort();
        let parts = [principal.name.as_str(), skill.as_str()].into_iter().chain(sorted.iter().map(String::as_str));
        let mut digest = BASE32_NOPAD.encode(&self.mac(parts).finalize().into_bytes()).to_ascii_lowercase();
        digest.truncate(DIGEST_CHARS);
        format!("{skill}.{digest}")
    }

    /// What only we can make of these parts: 256 bits, as lowercase base 32.
    pub fn tag(&self, parts: &[&str]) -> String {
        BASE32_NOPAD.encode(&self.mac(parts.iter().copied()).finalize().into_bytes()).to_ascii_lowercase()
    }

    /// The state of an unfinished request, as a client of `principal` gets it: its upstream knows none of our callers, so
    /// that it could not tell whose state comes back.
    pub fn seal(&self, principal: &Principal, upstream: &UpstreamName, state: &str) -> String {
        let mac = self.mac(sealed_parts(principal, upstream, state));
        format!("{}.{state}", BASE64URL_NOPAD.encode(&mac.finalize().into_bytes()))
    }

    /// What was sealed for `principal` and this upstream; `None` where it was for others, or never.
    pub fn unseal<'s>(&self, principal: &Principal, upstream: &UpstreamName, sealed: &'s str) -> Option<&'s str> {
        let (digest, state) = sealed.split_once('.')?;
        let digest = BASE64URL_NOPAD.decode(digest.as_bytes()).ok()?;
        self.mac(sealed_parts(principal, upstream, state)).verify_slice(&digest).ok()?;
        Some(state)
    }

    fn mac<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Hmac<Sha256> {
        #[expect(clippy::expect_used, reason = "HMAC takes a secret of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a secret of any length");
        for part in parts {
            // With its length before it no part can run into the next one.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn sealed_parts<'p>(principal: &'p Principal, upstream: &'p UpstreamName, state: &'p str) -> [&'p str; 4] {
    ["state of an unfinished request", &principal.name, upstream.as_str(), state]
}

/// The skill that `key` claims to be for, where it has the shape of a key.
pub fn claimed_skill(key: &str) -> Option<&str> {
    let (skill, digest) = key.trim().rsplit_once('.')?;
    (digest.len() == DIGEST_CHARS && !skill.is_empty()).then_some(skill)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::map::NamePattern;

    fn patterns(prefixes: &[&str]) -> Vec<Pattern> {
        let pattern = |prefix: &&str| Pattern { upstream: None, name: NamePattern::Prefix((*prefix).into()) };
        prefixes.iter().map(pattern).collect()
    }

    #[test]
    fn a_sealed_state_is_of_use_to_its_principal_and_upstream_only() {
        let principal = |name: &str| Principal::new(name, Vec::new());
        let (secret, shop, mail) = (Secret::new("s"), UpstreamName::new("shop"), UpstreamName::new("mail"));
        let sealed = secret.seal(&principal("ann"), &shop, "a.b {\"x\":1}");
        assert_eq!(secret.unseal(&principal("ann"), &shop, &sealed), Some("a.b {\"x\":1}"));
        assert_eq!(secret.unseal(&principal("bob"), &shop, &sealed), None);
        assert_eq!(secret.unseal(&principal("ann"), &mail, &sealed), None);
        assert_eq!(Secret::new("t").unseal(&principal("ann"), &shop, &sealed), None);
        for forged in ["", "a.b", ".a.b", &sealed.replace("\"x\":1", "\"x\":2"), sealed.trim_end_matches("}")] {
            assert_eq!(secret.unseal(&principal("ann"), &shop, forged), None, "{forged}");
        }
    }

    #[test]
    fn a_key_depends_on_secret_principal_skill_and_patterns_but_not_on_their_order() {
        let principal = |name: &str| Principal { name: name.into(), roles: Vec::new() };
        let skill = SkillName::new("eshop-orders");
        let secret = Secret::new("s");
        let key = secret.key(&principal("ann"), &skill, &patterns(&["a_", "b_"]));
        assert_eq!(key, secret.key(&principal("ann"), &skill, &patterns(&["b_", "a_"])));
        assert_eq!(claimed_skill(&key), Some("eshop-orders"));
        for other in [
            Secret::new("t").key(&principal("ann"), &skill, &patterns(&["a_", "b_"])),
            secret.key(&principal("bob"), &skill, &patterns(&["a_", "b_"])),
            secret.key(&principal("ann"), &SkillName::new("x"), &patterns(&["a_", "b_"])),
            secret.key(&principal("ann"), &skill, &patterns(&["a_"])),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn texts_of_another_shape_are_no_keys() {
        for text in ["", "x", ".abcdef", "x.abc", "x.abcdefg"] {
            assert_eq!(claimed_skill(text), None, "{text}");
        }
    }
}
