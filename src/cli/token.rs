//! `gatekey token`: makes, lists and revokes bearer tokens. A token is printed once and kept nowhere.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    args::{Setup, Token, TokenCommand},
    exit::{Exit, Failed},
    output::Output,
    setup::{Prepared, config_file, prepare_from, principal},
};
use crate::{
    auth::{self, TokenFile, new_token},
    files,
    model::principal::{Principal, name_fault},
};

pub(super) fn run(args: &Token, output: Output) -> Result<Exit, Failed> {
    match &args.command {
        TokenCommand::Add { name, roles, expires, config } => {
            add(&Store::find(config.as_ref())?, name, roles, *expires, output)
        }
        TokenCommand::List { config } => list(&Store::find(config.as_ref())?, output),
        TokenCommand::Revoke { token, config } => revoke(&Store::find(config.as_ref())?, token, output),
    }
}

/// The file of tokens that the config names.
struct Store {
    prepared: Prepared,
    file: PathBuf,
}

impl Store {
    fn find(config: Option<&PathBuf>) -> Result<Self, Failed> {
        let setup = Setup { upstreams: Vec::new(), config: config.cloned(), principal: None };
        let prepared = prepare_from(&setup, config_file(&setup))?;
        let file = prepared.config.http.auth.as_ref().and_then(|auth| auth.tokens.clone()).ok_or_else(|| {
            let hint = "write `tokens = \"tokens.json\"` into the config's table `[http.auth]`";
            Failed::new(Exit::Usage, "the config names no file of tokens").hint(hint)
        })?;
        Ok(Self { prepared, file: files::target(&file) })
    }

    fn read(&self) -> Result<TokenFile, Failed> {
        TokenFile::read(&self.file)
            .map_err(|error| Failed::new(Exit::Invalid, format!("failed to read `{}`: {error}", self.file.display())))
    }

    /// Changes the file as one step among those who may be doing the same.
    fn change<T>(&self, change: impl FnOnce(&mut TokenFile) -> Result<T, Failed>) -> Result<T, Failed> {
        let failed = |error: std::io::Error| {
            Failed::new(Exit::Usage, format!("failed to write `{}`: {error}", self.file.display()))
        };
        let lock = files::lock(&self.file).map_err(failed)?;
        let mut tokens = self.read()?;
        let changed = change(&mut tokens)?;
        files::write_private(&self.file, tokens.to_text().as_bytes()).map_err(failed)?;
        drop(lock);
        Ok(changed)
    }
}

fn add(store: &Store, name: &str, roles: &[String], expires: Option<Duration>, output: Output) -> Result<Exit, Failed> {
    if let Some(fault) = name_fault(name) {
        return Err(Failed::new(Exit::Usage, format!("`{}` can be no name of a token: {fault}", name.escape_debug())));
    }
    if let Some(role) = roles.iter().find(|role| name_fault(role).is_some() || role.contains(',')) {
        return Err(Failed::new(Exit::Usage, format!("`{}` can be no role", role.escape_debug())));
    }
    // A slip of the pen must not give more rights: the same check as for `--as`.
    let known = principal(Some(&format!("{name}:{}", roles.join(","))), &store.prepared.config)?;
    let now = seconds(SystemTime::now());
    let expires = expires.map(|after| now.saturating_add(after.as_secs()));
    let (text, token) = new_token(name, roles.to_vec(), now, expires)?;
    store.change(|tokens| {
        tokens.tokens.push(token.clone());
        Ok(())
    })?;
    if output.is_json {
        let mut data = shown(&token);
        data["token"] = json!(text);
        output.envelope("token.added", &data, &[]);
        return Ok(Exit::Done);
    }
    output.note(&format!("token `{}` of `{name}`{}", token.id, until(&token)));
    if !known.roles.is_empty() {
        output.note(&format!("roles: {}", known.roles.join(", ")));
    }
    output.note("It is shown this once only:");
    output.data(&text);
    Ok(Exit::Done)
}

fn list(store: &Store, output: Output) -> Result<Exit, Failed> {
    let tokens = store.read()?.tokens;
    if output.is_json {
        let data: Vec<Value> = tokens.iter().map(shown).collect();
        output.envelope("token.list", &json!({"tokens": data}), &[]);
        return Ok(Exit::Done);
    }
    let known = &store.prepared.config.principals;
    let row = |token: &auth::Token| {
        let of_config = known.get(&token.name).into_iter().flat_map(|known| known.roles.iter().cloned());
        let roles = Principal::new(&token.name, token.roles.iter().cloned().chain(of_config).collect()).roles;
        let roles = if roles.is_empty() { "-".to_owned() } else { roles.join(",") };
        let expires = token.expires.map_or("never".to_owned(), date);
        let state = if token.is_valid(seconds(SystemTime::now())) { "valid" } else { "expired" };
        vec![token.id.clone(), token.name.clone(), roles, date(token.created), expires, state.to_owned()]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    output.table(&["id", "name", "roles", "created", "expires", "state"], &rows);
    Ok(Exit::Done)
}

fn revoke(store: &Store, named: &str, output: Output) -> Result<Exit, Failed> {
    let is_meant = |token: &auth::Token| token.id == named || token.name == named;
    let revoked = store.change(|tokens| {
        let (revoked, kept): (Vec<_>, Vec<_>) = tokens.tokens.drain(..).partition(is_meant);
        tokens.tokens = kept;
        if revoked.is_empty() {
            let hint = "`gatekey token list` shows ids and names";
            return Err(Failed::new(Exit::Findings, format!("there is no token `{named}`")).hint(hint));
        }
        Ok(revoked)
    })?;
    if output.is_json {
        let gone = |token: &auth::Token| {
            let mut data = shown(token);
            data["is_valid"] = json!(false);
            data
        };
        let data: Vec<Value> = revoked.iter().map(gone).collect();
        output.envelope("token.revoked", &json!({"tokens": data}), &[]);
    } else {
        for token in &revoked {
            output.note(&format!("token `{}` of `{}` is revoked", token.id, token.name));
        }
    }
    Ok(Exit::Done)
}

fn shown(token: &auth::Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "roles": token.roles,
        "created": date(token.created),
        "expires": token.expires.map(date),
        "is_valid": token.is_valid(seconds(SystemTime::now())),
        "sha256_start": token.digest_start(),
    })
}

fn until(token: &auth::Token) -> String {
    token.expires.map_or_else(String::new, |expires| format!(", until {}", date(expires)))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| "far away".into())
}

/// A time such as `30d`: a number of seconds, minutes, hours, days or weeks.
pub(super) fn parse_time(given: &str) -> Result<Duration, String> {
    let wrong = || "must be a number with s, m, h, d or w behind it, such as 30d".to_owned();
    let (number, unit) = given.split_at_checked(given.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(parse_time("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["", "d", "30", "-1d", "0h", "1é", "1.5h", "99999999999999999w"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
