//! Mapping between object keys and paths.

use std::borrow::Cow;

use object_store::path::Path;
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use crate::store::{Key, Namespace};

/// Maximum length in bytes of a key that every service accepts.
pub(super) const MAX_KEY: usize = 1024;

/// Key component before and after the components of a namespace.
const MARKER: &str = "=";

/// Layout of the keys of a store below one prefix of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyLayout {
    /// Prefix of all keys; empty, or ends in `/`.
    base: String,
}

/// Meaning of the key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParsedKey {
    /// File at this path of the namespace.
    File(Namespace, VfsPath),
    /// Marker of a folder, as some tools create; not a file.
    Folder,
    /// Key that no file has, written by another program.
    Foreign,
}

impl KeyLayout {
    /// Creates the layout of the objects below `prefix`, or of the whole bucket if `prefix` is empty.
    pub(super) fn new(prefix: &str) -> Result<Self> {
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            return Ok(Self { base: String::new() });
        }
        let refuse =
            |reason: &str| Err(Error::invalid_argument(format!("the prefix {prefix:.100?} of the bucket {reason}")));
        if prefix.len() > MAX_KEY / 2 {
            return refuse("has over 512 bytes");
        }
        if prefix.split('/').any(is_marker_run) {
            return refuse("has a part that consists of '='; these parts mark namespaces");
        }
        if Path::parse(prefix).is_err() {
            return refuse("has an empty part, '.', '..' or a control character; write it as 'team/files'");
        }
        Ok(Self { base: format!("{prefix}/") })
    }

    /// Returns the prefix without its trailing `/`.
    pub(super) fn prefix(&self) -> &str {
        self.base.strip_suffix('/').unwrap_or(&self.base)
    }

    /// Returns the prefix of all keys of the store.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the prefix of the keys of all namespaces with components.
    pub(super) fn named_prefix(&self) -> String {
        format!("{}{MARKER}/", self.base)
    }

    /// Returns the prefix of the keys of a namespace. For the namespace without components, this is also a prefix of the
    /// keys of all other namespaces.
    pub(super) fn root_prefix(&self, namespace: &Namespace) -> String {
        match namespace.as_str() {
            "" => self.base.clone(),
            components => format!("{}{components}/{MARKER}/", self.named_prefix()),
        }
    }

    /// Returns the prefix of the keys below a directory.
    pub(super) fn directory_prefix(&self, namespace: &Namespace, directory: &VfsPath) -> String {
        let root = self.root_prefix(namespace);
        if directory.is_root() { root } else { format!("{root}{}/", encode(directory.relative())) }
    }

    /// Returns the key of the object of a file.
    pub(super) fn key(&self, key: &Key) -> Result<Path> {
        let text = format!("{}{}", self.root_prefix(&key.namespace), encode(key.path.relative()));
        if text.len() > MAX_KEY {
            let reason = format!(
                "the path is too long for an object store: its key would have {} bytes, and may have {MAX_KEY}; use a shorter one",
                text.len()
            );
            return Err(Error::new(ErrorKind::InvalidPath, reason).with_path(&key.path));
        }
        Path::parse(&text).map_err(|_| Error::at(ErrorKind::InvalidPath, &key.path))
    }

    /// Returns the maximum length in bytes of a path without encoded characters in the namespace without components.
    pub(super) fn max_path(&self) -> usize {
        MAX_KEY - self.base.len() + "/".len()
    }

    /// Parses a key of the store.
    pub(super) fn parse_key(&self, key: &str) -> ParsedKey {
        if key.is_empty() || key.ends_with('/') {
            return ParsedKey::Folder;
        }
        let Some(relative) = key.strip_prefix(self.base.as_str()) else { return ParsedKey::Foreign };
        let (namespace, relative) = match relative.strip_prefix("=/") {
            None => (Namespace::default(), relative),
            Some(rest) => match rest.split_once("/=/").map(|(components, path)| (Namespace::parse(components), path)) {
                Some((Ok(namespace), path)) if !namespace.as_str().is_empty() => (namespace, path),
                _ => return ParsedKey::Foreign,
            },
        };
        decode(relative).map_or(ParsedKey::Foreign, |path| ParsedKey::File(namespace, path))
    }
}

/// Returns the problem of an object whose key no file can have.
pub(super) fn foreign_object_problem(path: &str) -> Problem {
    let reason = "the object has a key that no file can have; rename or remove it with the tool that created it";
    Problem::new(path, &Error::new(ErrorKind::InvalidPath, reason).with_path_text(path))
}

/// Encodes a path without its leading `/` as part of a key.
pub(super) fn encode(relative: &str) -> String {
    let mut key = String::with_capacity(relative.len());
    for (index, component) in relative.split('/').enumerate() {
        if index > 0 {
            key.push('/');
        }
        if is_marker_run(component) {
            key.push_str(MARKER);
        }
        for (at, c) in component.char_indices() {
            if c.is_ascii_control() {
                key.push_str(&format!("%{:02X}", u32::from(c)));
            } else if c == '%' && unescape(&component[at..]).is_some() {
                key.push_str("%25");
            } else {
                key.push(c);
            }
        }
    }
    key
}

/// Returns the path of which `relative` is the [`encode`]d form, if there is one.
pub(super) fn decode(relative: &str) -> Option<VfsPath> {
    let components: Vec<Cow<'_, str>> = relative.split('/').map(decode_component).collect::<Option<_>>()?;
    let path = VfsPath::parse(&format!("/{}", components.join("/"))).ok()?;
    (!path.is_root() && encode(path.relative()) == relative).then_some(path)
}

fn decode_component(component: &str) -> Option<Cow<'_, str>> {
    if is_marker_run(component) {
        return component.strip_prefix(MARKER).filter(|rest| !rest.is_empty()).map(Cow::Borrowed);
    }
    if !component.contains('%') {
        return Some(Cow::Borrowed(component));
    }
    let mut name = String::with_capacity(component.len());
    let mut rest = component;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        match unescape(rest) {
            Some(c) => {
                name.push(c);
                rest = &rest["%XX".len()..];
            }
            None => {
                name.push('%');
                rest = &rest["%".len()..];
            }
        }
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

/// Returns the character of the code `%XX` at the beginning of `text`, if that is a control character or `%`.
fn unescape(text: &str) -> Option<char> {
    let digits = text.strip_prefix('%')?.get(..2)?;
    if !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F')) {
        return None;
    }
    let c = char::from(u8::from_str_radix(digits, 16).ok()?);
    (c.is_ascii_control() || c == '%').then_some(c)
}

fn is_marker_run(component: &str) -> bool {
    !component.is_empty() && component.bytes().all(|byte| byte == b'=')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a path")
    }

    #[test]
    fn a_path_is_its_own_key_except_for_encoded_characters() {
        for (text, key) in [
            ("/a", "a"),
            ("/src/main.rs", "src/main.rs"),
            ("/with space/ü/日本/#?&+*", "with space/ü/日本/#?&+*"),
            ("/a\nb", "a%0Ab"),
            ("/\u{7f}", "%7F"),
            ("/\u{1}\t", "%01%09"),
            ("/100%", "100%"),
            ("/%41", "%41"),
            ("/%0a", "%0a"),
            ("/%0A", "%250A"),
            ("/%25", "%2525"),
            ("/%%25", "%%2525"),
            ("/%00", "%2500"),
            ("/%2", "%2"),
            ("/%2é", "%2é"),
            ("/=", "=="),
            ("/==/=a/===", "===/=a/===="),
            ("/a=/=", "a=/=="),
        ] {
            assert_eq!(encode(path(text).relative()), key, "{text:?}");
            assert_eq!(decode(key), Some(path(text)), "{key:?}");
        }
    }

    #[test]
    fn a_key_that_no_path_has_is_foreign() {
        let long = "x".repeat(256);
        for key in ["", "a//b", "/a", "a/", ".", "a/../b", "./a", "=", "a/=", "=/a", "%00", "%25zz", "%2541", &long] {
            assert_eq!(decode(key), None, "{key:?}");
        }
    }

    #[test]
    fn namespaces_have_nothing_in_common() {
        let layout = KeyLayout::new("/team/files/").expect("a prefix");
        for (namespace, text, expected) in [
            ("", "/a/b", "team/files/a/b"),
            ("", "/=/org/=/a", "team/files/==/org/==/a"),
            ("org", "/a", "team/files/=/org/=/a"),
            ("org", "/user/=/a", "team/files/=/org/=/user/==/a"),
            ("org/user", "/a", "team/files/=/org/user/=/a"),
        ] {
            let namespace = Namespace::parse(namespace).expect("a namespace");
            let key = layout.key(&Key::new(namespace.clone(), path(text))).expect("a key");
            assert_eq!(key.as_ref(), expected);
            assert_eq!(layout.parse_key(expected), ParsedKey::File(namespace, path(text)));
        }
        for (key, name) in [
            ("team/files/a/", ParsedKey::Folder),
            ("team/files/=/org", ParsedKey::Foreign),
            ("team/files/=/=/a", ParsedKey::Foreign),
            ("team/files/=/org/=/", ParsedKey::Folder),
            ("team/files/=/o g/=/a", ParsedKey::Foreign),
            ("team/filesa", ParsedKey::Foreign),
        ] {
            assert_eq!(layout.parse_key(key), name, "{key}");
        }
    }

    #[test]
    fn a_prefix_is_plain() {
        for wrong in ["a//b", "a/./b", "..", "=", "a/==/b", "a\nb", &"x".repeat(600)] {
            assert!(KeyLayout::new(wrong).is_err(), "{wrong}");
        }
        assert_eq!(KeyLayout::new("").expect("no prefix").prefix(), "");
        assert_eq!(KeyLayout::new("a b/c").expect("a prefix").prefix(), "a b/c");
    }

    #[test]
    fn a_key_has_at_most_1024_bytes() {
        let layout = KeyLayout::new("team").expect("a prefix");
        let of_bytes = |count: usize| {
            let name = "x".repeat(200);
            let mut text = format!("/{name}").repeat(count / 201);
            text.push('/');
            text.push_str(&"y".repeat(count - text.len()));
            Key::new(Namespace::default(), path(&text))
        };
        assert_eq!(layout.key(&of_bytes(layout.max_path())).expect("a key").as_ref().len(), MAX_KEY);
        let error = layout.key(&of_bytes(layout.max_path() + 1)).expect_err("it is too long");
        assert_eq!(error.kind(), ErrorKind::InvalidPath);
        assert!(error.for_model().contains("1024"), "{error}");
    }

    proptest! {
        #[test]
        fn every_path_comes_back(text in "/[a-c%=/ \\x01\\n\\x7f0-9A-F~.éU-Z-]{1,60}") {
            if let Ok(path) = VfsPath::parse(&text) {
                prop_assume!(!path.is_root());
                let key = encode(path.relative());
                prop_assert_eq!(decode(&key), Some(path.clone()));
                prop_assert_eq!(Path::parse(&key).map(String::from).ok(), Some(key.clone()));
                let layout = KeyLayout::new("p").expect("a prefix");
                prop_assert_eq!(layout.parse_key(&format!("p/{key}")), ParsedKey::File(Namespace::default(), path));
            }
        }

        #[test]
        fn every_key_has_at_most_one_path(key in "\\PC{0,40}|[a%=/.0-2F5\\x01]{0,20}") {
            if let Some(path) = decode(&key) {
                prop_assert_eq!(encode(path.relative()), key);
            }
        }
    }
}
