//! Secrets of URLs in messages: a URL may stand where another value belongs, and what says so must not repeat its password.

/// `text` with the user, password and parameters of the URLs in it masked.
///
/// A secret may hold any character, so that where a URL ends cannot be known. If in doubt, too much is masked.
pub(crate) fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = scheme_end(rest) {
        let (before, url) = rest.split_at(start);
        masked.push_str(before);
        // An example in a message is no secret.
        let is_example = url.starts_with("user@") || url.starts_with("user:password@");
        let url = match url.rfind('@').filter(|_| !is_example) {
            Some(at) => {
                masked.push_str("***");
                &url[at..]
            }
            None => url,
        };
        let end = url.find(char::is_whitespace).unwrap_or(url.len());
        match url[..end].find('?') {
            Some(query) => {
                masked.push_str(&url[..query]);
                masked.push_str("?***");
            }
            None => masked.push_str(&url[..end]),
        }
        rest = &url[end..];
    }
    masked.push_str(rest);
    masked
}

/// Where the first scheme of a URL in `text` ends, with its `:` or `://`.
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
        // Without the slashes it is one only if it has a user.
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
    fn nothing_of_a_url_is_left_that_may_be_a_secret() {
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
            assert_eq!(masked(text), shown);
        }
    }
}
