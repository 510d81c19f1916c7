//! Values of settings: sizes, durations and host paths.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

/// A size in bytes, which is written as a number or with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

const UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl ByteSize {
    fn parse(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = (&text[..digits], text[digits..].trim_start());
        let number = number.parse::<u64>().map_err(|_| invalid_size(text))?;
        let unit = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| invalid_size(text))?;
        let bytes = number
            .checked_mul(unit.1)
            .ok_or_else(|| format!("'{text}' is larger than any file can be; write a smaller size"))?;
        Ok(Self(bytes))
    }
}

fn invalid_size(text: &str) -> String {
    format!(
        "'{text}' is not a size; write bytes as a number, or a whole number with a unit, such as \"10 MiB\" or \"4 kB\""
    )
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Accepts a number, or a text with a unit.
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size: bytes as a number, or text such as \"10 MiB\"")
            }

            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes).map(ByteSize).map_err(|_| E::custom("a size cannot be less than 0"))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
                ByteSize::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: a number of bytes, or a whole number with a unit, such as \"10 MiB\" or \"4 kB\".",
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+ *(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$" },
            ],
        })
    }
}

/// A duration, which is written with units, such as `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HumanDuration(pub(crate) Duration);

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        humantime::parse_duration(&text).map(Self).map_err(|error| {
            D::Error::custom(format_args!(
                "'{text}' is not a duration ({error}); write for example \"30s\", \"250ms\" or \"1h 30m\""
            ))
        })
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration with its unit, such as \"30s\", \"250ms\" or \"1h 30m\".",
            "type": "string",
            "pattern": "^[0-9]",
        })
    }
}

/// A duration other than zero: a limit of zero would fail every operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NonZeroDuration(pub(crate) Duration);

impl<'de> Deserialize<'de> for NonZeroDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let HumanDuration(limit) = HumanDuration::deserialize(deserializer)?;
        if limit.is_zero() {
            return Err(D::Error::custom("the duration is zero; write for example \"30s\""));
        }
        Ok(Self(limit))
    }
}

impl JsonSchema for NonZeroDuration {
    fn schema_name() -> Cow<'static, str> {
        HumanDuration::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HumanDuration::json_schema(generator)
    }
}

/// A host path. `~` and variables are not expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPath(PathBuf);

impl AsRef<Path> for HostPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for HostPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if text.is_empty() {
            return Err(D::Error::custom("the path is empty; \".\" is the directory of this file"));
        }
        if text.starts_with('~') {
            return Err(D::Error::custom(format_args!(
                "'~' is not expanded in '{text}'; write an absolute path, one relative to this file, or \"./~\""
            )));
        }
        if text.contains('\0') {
            return Err(D::Error::custom("a path cannot contain a NUL character"));
        }
        Ok(Self(PathBuf::from(text.into_owned())))
    }
}

impl JsonSchema for HostPath {
    fn schema_name() -> Cow<'static, str> {
        "HostPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A host path, relative to the directory of this file. '~' and variables are not expanded.",
            "type": "string",
            "pattern": "^[^~]",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_a_unit() {
        for (text, expected) in [
            ("0 B", Some(0)),
            ("10 MiB", Some(10 << 20)),
            ("10MiB", Some(10 << 20)),
            ("4 kB", Some(4_000)),
            ("16777215 TiB", Some(16_777_215 << 40)),
            ("16777216 TiB", None),
            ("10", None),
            ("10 mib", None),
            ("10 MiB ", None),
            ("1.5 MiB", None),
            ("-1 B", None),
            ("MiB", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(ByteSize::parse(text).ok().map(|size| size.0), expected, "{text:?}");
        }
    }
}
