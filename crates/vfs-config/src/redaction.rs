//! Redaction of credentials in URLs inside messages.

/// Returns `text` with the user, password and parameters of all URLs redacted.
///
/// A URL can be anywhere in a message, for example if it was written in place of another value. A password can contain any
/// character, so the end of a URL is ambiguous; in doubt, more text is redacted.
pub(crate) fn redact_urls(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = scheme_end(rest) {
        let (before, url) = rest.split_at(start);
        redacted.push_str(before);
        // Examples in messages contain no secret.
        let is_example = url.starts_with("user@") || url.starts_with("user:password@");
        let url = match url.rfind('@').filter(|_| !is_example) {
            Some(at) => {
                redacted.push_str("***");
                &url[at..]
            }
            None => url,
        };
        let end = url.find(char::is_whitespace).unwrap_or(url.len());
        match url[..end].find('?') {
            Some(query) => {
                redacted.push_str(&url[..query]);
                redacted.push_str("?***");
            }
            None => redacted.push_str(&url[..end]),
        }
        rest = &url[end..];
    }
    redacted.push_str(rest);
    redacted
}

/// Returns the end of the first URL scheme in `text`, including its `:` or `://`.
fn scheme_end(text: &str) -> Option<usize> {
    for (colon, _) in text.match_indices(':') {
        let scheme =
            text[..colon].bytes().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        if scheme.count() < 2 {
            continue;
        }
        let after = &text[colon + 1..];
        if after.starts_with("//") {
            return Some(colon + 3);
        }
        // Without slashes, only a text with a user counts as a URL.
        let word = after.split(char::is_whitespace).next().unwrap_or_default();
        if word.contains('@') {
            return Some(colon + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_url_that_may_be_secret_is_left() {
        for (text, shown) in [
            ("it is `postgres://u:s3cret@h/db?x=s3cret`, no", "it is `postgres://***@h/db?*** no"),
            ("redis://s3cret@h/0", "redis://***@h/0"),
            ("redis://:s3'c re@t@h:1/0 is no", "redis://***@h:1/0 is no"),
            ("postgres:u:s3cret@h", "postgres:***@h"),
            ("/srv/postgres://u:s3cret@h/db", "/srv/postgres://***@h/db"),
            ("s3://bucket/p?key=s3cret and https://h/p", "s3://bucket/p?*** and https://h/p"),
            ("vfs.toml:3:8: layers[0]: it is sqlite:a.db; a@b", "vfs.toml:3:8: layers[0]: it is sqlite:a.db; a@b"),
            ("write 'redis://user:password@host:1/0'", "write 'redis://user:password@host:1/0'"),
            ("no URL: write 'name@host'", "no URL: write 'name@host'"),
            ("é://ü@h", "é://ü@h"),
        ] {
            assert_eq!(redact_urls(text), shown);
        }
    }
}
