//! Names of the keys on the server.

use vfs_core::{Error, Result};

use crate::store::Namespace;

/// Maximum length of a prefix in bytes.
const MAX_PREFIX: usize = 100;

/// Names of all keys under one prefix.
///
/// The keys of a namespace share the part in braces, so that a proxy before a cluster sends a script to one server. Neither a
/// prefix nor a namespace can contain a brace, so no two namespaces share a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyNames {
    prefix: String,
}

impl KeyNames {
    pub(super) fn new(prefix: &str) -> Result<Self> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.chars().all(is_allowed) {
            let message = format!("the prefix of a Redis store has 1 to {MAX_PREFIX} letters, digits and '-_.:'");
            return Err(Error::invalid_argument(message));
        }
        Ok(Self { prefix: prefix.to_owned() })
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key of the set of namespaces.
    pub(super) fn namespaces(&self) -> String {
        format!("{}:namespaces", self.prefix)
    }

    /// Returns the prefix of all keys of a namespace.
    pub(super) fn base(&self, namespace: &Namespace) -> String {
        format!("{}:{{/{namespace}}}", self.prefix)
    }

    pub(super) fn log(&self, namespace: &Namespace) -> String {
        format!("{}:log", self.base(namespace))
    }

    /// Returns the key of the record of an operation.
    pub(super) fn operation(&self, namespace: &Namespace, key: &str) -> String {
        format!("{}:operation:{key}", self.base(namespace))
    }

    /// Returns the key of a staged content.
    pub(super) fn staged(&self, namespace: &Namespace, id: &str) -> String {
        format!("{}:staged:{id}", self.base(namespace))
    }

    /// Returns the glob of Redis that matches the keys of all files.
    pub(super) fn all_files(&self) -> String {
        format!("{}:{{/*}}:file:*", self.prefix)
    }

    /// Splits the key of a file into namespace and path. Returns `None` if it is not the key of a file.
    pub(super) fn parse_file_key<'a>(&self, key: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b":{/")?;
        let end = rest.iter().position(|byte| *byte == b'}')?;
        Some((&rest[..end], rest[end..].strip_prefix(b"}:file:")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_namespace_has_keys_of_its_own() {
        let names = KeyNames::new("app:vfs").expect("a prefix");
        let namespace = |text: &str| Namespace::parse(text).expect("a namespace");
        assert_eq!(names.base(&namespace("")), "app:vfs:{/}");
        assert_eq!(names.log(&namespace("org/user")), "app:vfs:{/org/user}:log");
        let file = names.parse_file_key(b"app:vfs:{/org}:file:/a}:file:/b");
        assert_eq!(file, Some((&b"org"[..], &b"/a}:file:/b"[..])));
        assert_eq!(names.parse_file_key(b"app:vfs:{/org}:index"), None);
    }

    #[test]
    fn a_prefix_is_plain() {
        for (prefix, is_right) in [("vfs", true), ("a:b-c_d.9", true), ("", false), ("a{b", false), ("a*", false)] {
            assert_eq!(KeyNames::new(prefix).is_ok(), is_right, "{prefix}");
        }
        assert!(KeyNames::new(&"x".repeat(101)).is_err());
    }
}
