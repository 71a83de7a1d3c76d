//! The ways by which a client reaches gatekey, and tests that hold in several.

/// How a client speaks to gatekey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A legacy session over stdio.
    Stdio,
    /// A legacy session over HTTP, with an open stream for what nobody asked for.
    Http,
    /// Requests of the newer era over stdio; what a skill opens is called by its key.
    ModernStdio,
    /// The same over HTTP.
    ModernHttp,
}

impl Way {
    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::ModernHttp)
    }

    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::ModernStdio | Self::ModernHttp)
    }
}

/// Makes one test a way of each function, so that a failure in one way hides no other.
macro_rules! in_ways {
    ([$($way:ident)*] $(#[$meta:meta])* fn $name:ident($arg:ident: Way) $body:block) => {
        $(#[$meta])*
        mod $name {
            use super::*;
            fn check($arg: $crate::support::ways::Way) $body
            $(in_ways!(@ $way);)*
        }
    };
    (@ stdio) => { #[test] fn stdio() { check($crate::support::ways::Way::Stdio); } };
    (@ http) => { #[test] fn http() { check($crate::support::ways::Way::Http); } };
    (@ modern_stdio) => { #[test] fn modern_stdio() { check($crate::support::ways::Way::ModernStdio); } };
    (@ modern_http) => { #[test] fn modern_http() { check($crate::support::ways::Way::ModernHttp); } };
}
pub(crate) use in_ways;
