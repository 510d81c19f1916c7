//! Serde helpers for bytes, whole numbers, optional fields and lists.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The fields `content`, for UTF-8, and `content_base64`, of which one is set.
pub(super) type ContentFields = (Option<String>, Option<String>);

pub(super) fn split(content: Bytes) -> ContentFields {
    match String::from_utf8(content.into()) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    }
}

pub(super) fn join(fields: ContentFields) -> Result<Bytes, String> {
    match fields {
        (Some(text), None) => Ok(text.into()),
        (None, Some(encoded)) => decode(&encoded),
        (None, None) => Err("missing content: give `content` or `content_base64`".into()),
        (Some(_), Some(_)) => Err("give either `content` or `content_base64`, not both".into()),
    }
}

/// Bytes that are encoded to base64 while they are serialised, so that a large file is not copied.
pub(super) struct Base64Bytes<'a>(pub(super) &'a [u8]);

impl Serialize for Base64Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

pub(super) fn decode(encoded: &str) -> Result<Bytes, String> {
    STANDARD.decode(encoded).map(Bytes::from).map_err(|error| format!("`content_base64` is not base64: {error}"))
}

/// Serialises a time in one piece: chrono writes single characters, which takes a third of the time of a listing.
pub(super) fn time<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true)).serialize(serializer)
}

/// Deserialises `null` as the default, as models that must give every field of a schema send `null`.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Implements the JSON form of an enum of two modes, which is `true` for the second one.
macro_rules! mode_as_bool {
    ($mode:ident: $off:ident, $on:ident) => {
        impl ::serde::Serialize for $mode {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool(*self == $mode::$on)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $mode {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <bool as ::serde::Deserialize>::deserialize(deserializer)
                    .map(|on| if on { $mode::$on } else { $mode::$off })
            }
        }
    };
}
pub(super) use mode_as_bool;

/// Deserialises a list, a single string as a list of one, or `null` as an empty list.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    /// A list, or a string that stands for a list of one.
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a string or a list of strings")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => Vec::new(),
        Some(OneOrMany::One(value)) => vec![value],
        Some(OneOrMany::Many(values)) => values,
    })
}

/// Deserialises a whole number, or `null` as the default.
pub(crate) fn whole<'de, T: TryFrom<u64> + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(optional_whole(deserializer)?.unwrap_or_default())
}

/// Deserialises a required whole number.
pub(crate) fn required_whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    WholeNumber::deserialize(deserializer).map(|whole| whole.0)
}

/// Deserialises a whole number, or `null` as `None`.
pub(crate) fn optional_whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<WholeNumber<T>>::deserialize(deserializer)?.map(|whole| whole.0))
}

/// A whole number, also in the form `2.0`, which a Protobuf `Struct` and some models produce.
struct WholeNumber<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for WholeNumber<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeNumberVisitor(PhantomData)).map(Self)
    }
}

/// Deserialises a whole number from an integer or a float.
struct WholeNumberVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for WholeNumberVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, 0 or more")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::custom(format_args!("{number} is too large")))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        let whole = u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        self.visit_u64(whole)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        /// The first whole number from which floats are not exact.
        const END: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        if number.fract() == 0.0 && (0.0..END).contains(&number) {
            self.visit_u64(number as u64)
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}
