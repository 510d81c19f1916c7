//! Environment variables of a command.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};

use vfs_core::ExecuteRequest;
use vfs_core::shell::BaseEnvironment;

use crate::config::ShellConfig;

/// Builds the whole environment of the command of `req`.
pub(crate) fn build_environment(config: &ShellConfig, req: &ExecuteRequest) -> Vec<(OsString, OsString)> {
    let mut all = BTreeMap::new();
    if req.terminal.is_some() {
        all.insert("TERM".into(), "xterm-256color".into());
    }
    all.extend(config.environment.clone());
    if req.base_env == BaseEnvironment::Inherited {
        all.extend(env::vars_os().filter(|(name, value)| !is_secret(&config.secrets, name, value)));
    }
    all.extend(req.env.iter().map(|(name, value)| (name.into(), value.into())));
    all.into_iter().collect()
}

fn is_secret(patterns: &[String], name: &OsStr, value: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    patterns.iter().any(|pattern| matches_pattern(pattern.as_bytes(), name))
        || has_url_credentials(value.as_encoded_bytes())
}

/// Returns whether `name` matches `pattern`, ignoring case; `*` matches any characters.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|&byte| byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(last) = parts.next_back() else { return name.eq_ignore_ascii_case(first) };
    let fits =
        |at: usize, part: &[u8]| name.get(at..at + part.len()).is_some_and(|text| text.eq_ignore_ascii_case(part));
    if name.len() < first.len() + last.len() || !fits(0, first) || !fits(name.len() - last.len(), last) {
        return false;
    }
    let end = name.len() - last.len();
    // The first match of each inner part is as good as any later one.
    let mut at = first.len();
    for part in parts {
        match (at..=end.saturating_sub(part.len())).find(|&at| fits(at, part)) {
            Some(found) if found + part.len() <= end => at = found + part.len(),
            _ => return false,
        }
    }
    true
}

/// Returns whether `value` has a URL with a user, who may be a token, or with a password, which may contain `/`.
fn has_url_credentials(value: &[u8]) -> bool {
    value.windows(3).enumerate().filter(|(_, window)| window == b"://").any(|(at, _)| {
        let url = value[at + 3..].split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let user = url.iter().rposition(|&byte| byte == b'@').map(|end| &url[..end]).unwrap_or_default();
        !user.is_empty() && (user.contains(&b':') || !user.contains(&b'/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_look_like_secrets_are_recognised() {
        let secrets: Vec<String> = ShellConfig::SECRETS.iter().map(|&pattern| pattern.to_owned()).collect();
        for (name, value, expected) in [
            ("OPENAI_API_KEY", "x", true),
            ("github_token", "x", true),
            ("Db_Password_2", "x", true),
            ("AWS_PROFILE", "x", true),
            ("MY_AWS_PROFILE", "x", false),
            ("SENTRY_DSN", "x", true),
            ("DSN", "x", false),
            ("SSH_AUTH_SOCK", "x", true),
            ("PATH", "/bin", false),
            ("HOME", "/root", false),
            ("LANG", "C.UTF-8", false),
            ("HTTPS_PROXY", "http://user:word@proxy:8080", true),
            ("HTTPS_PROXY", "http://proxy:8080", false),
            ("LINK", "https://example.org/a:b@c", true),
            ("LINK", "https://example.org/package@18", false),
            ("REMOTE", "https://ghp_abc@github.com/x", true),
            ("CACHE", "redis://:a/b@host", true),
            ("MYSQL_PWD", "x", true),
            ("DB_PASS", "x", true),
            ("GH_PAT", "x", true),
            ("PWD", "/", false),
            ("OLDPWD", "/", false),
            ("BOTH", "a://b c://d:e@f", true),
            ("", "", false),
        ] {
            assert_eq!(is_secret(&secrets, OsStr::new(name), OsStr::new(value)), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, name, expected) in [
            ("A", "a", true),
            ("A", "AB", false),
            ("*", "", true),
            ("*", "ANY", true),
            ("A*A", "A", false),
            ("A*A", "AA", true),
            ("A*B*C", "AxByC", true),
            ("A*B*C", "AxyC", false),
            ("*B*", "B", true),
            ("AB*B", "AB", false),
            ("*AB*ABC", "xABC", false),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches_pattern(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
