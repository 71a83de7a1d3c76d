//! `${VAR}` and `${VAR:-default}` in the values of a config, expanded once.

use std::{collections::BTreeMap, path::PathBuf};

/// The environment that a config is read in, taken once at the command line.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

/// Why a value could not be expanded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum VariableError {
    /// Not set, and without a default.
    #[error("variable `{0}` is not set")]
    Unset(String),
    /// `${` without `}`.
    #[error("`${{` is not closed")]
    Unclosed,
    /// Between the braces stands no name.
    #[error("`{0}` is no variable name")]
    BadName(String),
}

impl Environment {
    /// Takes the process's environment; variables that are not text are left out.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(std::env::vars_os().filter_map(text).collect())
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A file of ours in the user's folder for data.
    pub fn data_file(&self, name: &str) -> Option<PathBuf> {
        let folder = |name: &str| self.value(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_user = folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local").join("share")));
        Some(of_user.or(folder("LOCALAPPDATA"))?.join("gatekey").join(name))
    }

    /// The variables whose name `is_wanted`.
    pub(super) fn some(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        self.0.iter().filter(|(name, _)| is_wanted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Expands `text`. `$${` stands for `${`; a `$` before anything else stands for itself; values are not expanded
    /// again.
    pub(super) fn expand(&self, text: &str) -> Result<String, VariableError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                out.push_str(before);
                out.push_str("${");
                rest = after;
                continue;
            }
            out.push_str(before);
            let (inner, after) = after.split_once('}').ok_or(VariableError::Unclosed)?;
            let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(VariableError::BadName(name.into()));
            }
            let value = self.value(name).or(default).ok_or_else(|| VariableError::Unset(name.into()))?;
            out.push_str(value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_expanded_once_and_everything_else_stays() {
        let env = Environment::from([("SET", "a ${OTHER} \"q\" \\\nend"), ("EMPTY", ""), ("OTHER", "other")]);
        for (text, value) in [
            ("--arg=${SET}", Ok("--arg=a ${OTHER} \"q\" \\\nend")),
            ("${UNSET:-fall:-back}", Ok("fall:-back")),
            ("${UNSET:-}", Ok("")),
            ("${EMPTY:-x}", Ok("")),
            ("$SET $ $$", Ok("$SET $ $$")),
            ("$${SET}", Ok("${SET}")),
            ("${OTHER}/${OTHER}", Ok("other/other")),
            ("${UNSET}", Err(VariableError::Unset("UNSET".into()))),
            ("${SET", Err(VariableError::Unclosed)),
            ("${}", Err(VariableError::BadName(String::new()))),
            ("${a b}", Err(VariableError::BadName("a b".into()))),
        ] {
            assert_eq!(env.expand(text), value.map(str::to_owned), "{text}");
        }
    }
}
