//! Detection, decoding and encoding of text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::DecoderResult;

pub use crate::requests::{Encoding, LineEnding};

/// The MIME type of unknown content.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// The size of the beginning of a large file by which its type is detected: 64 KiB.
pub const SAMPLE: usize = 64 << 10;

/// The size of the beginning that is searched for signatures, as some matchers of `infer` scan all of their input.
const SIGNATURE_BYTES: usize = 8 << 10;

/// The size of the beginning that the encoding detector reads. The detector is slow, and more bytes do not improve its result.
const MAX_DETECTION_BYTES: usize = 1 << 20;

/// Types whose signature is two ASCII letters, with which legacy text may begin. Files of these types contain NUL bytes.
const WEAK_SIGNATURES: [&str; 3] =
    ["application/postscript", "application/vnd.microsoft.portable-executable", "image/bmp"];

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";
const UTF16_LE_BOM: &[u8] = b"\xFF\xFE";
const UTF16_BE_BOM: &[u8] = b"\xFE\xFF";
const UTF32_LE_BOM: &[u8] = b"\xFF\xFE\0\0";

/// The detected type of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// Text in an encoding.
    Text(Encoding),
    /// Binary content.
    Binary,
}

/// The extent of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleExtent {
    /// The sample is the whole file.
    Whole,
    /// The sample is the beginning of a file; its last character may be cut.
    Beginning,
}

/// Detects whether `sample` is text, and in which encoding.
///
/// # Behaviour
///
/// * A byte order mark determines the encoding; content that is invalid in it is binary.
/// * A PDF, and content with a NUL, is binary. Valid UTF-8 is UTF-8.
/// * Other content is binary if it has the signature of a binary format, or over 2 % control bytes. Otherwise it is text in the
///   most likely legacy encoding, if it is valid in that encoding.
///
/// ```
/// use vfs_core::text::{Encoding, SampleExtent, Sniffed, sniff};
///
/// assert_eq!(sniff(b"plain", SampleExtent::Whole), Sniffed::Text(Encoding::Utf8));
/// assert_eq!(sniff(b"\x89PNG\r\n\x1a\n\0\0", SampleExtent::Beginning), Sniffed::Binary);
/// ```
pub fn sniff(sample: &[u8], extent: SampleExtent) -> Sniffed {
    if let Some((_, encoding)) = utf8_text(sample, extent) {
        return Sniffed::Text(encoding);
    }
    let encoding = if sample.starts_with(UTF8_BOM) || sample.starts_with(UTF32_LE_BOM) {
        None
    } else if sample.starts_with(UTF16_LE_BOM) {
        utf16_text(sample, Encoding::Utf16Le, extent)
    } else if sample.starts_with(UTF16_BE_BOM) {
        utf16_text(sample, Encoding::Utf16Be, extent)
    } else {
        legacy_text(sample, extent)
    };
    encoding.map_or(Sniffed::Binary, Sniffed::Text)
}

/// Returns `sample` as UTF-8, without a cut last character, if [`sniff`] detects UTF-8.
pub(crate) fn utf8_text(sample: &[u8], extent: SampleExtent) -> Option<(&str, Encoding)> {
    if sample.starts_with(b"%PDF-") || memchr::memchr(0, sample).is_some() {
        return None;
    }
    let text = match std::str::from_utf8(sample) {
        Ok(text) => text,
        Err(error) if extent == SampleExtent::Beginning && error.error_len().is_none() => {
            std::str::from_utf8(&sample[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    Some((text, if sample.starts_with(UTF8_BOM) { Encoding::Utf8Bom } else { Encoding::Utf8 }))
}

fn utf16_text(sample: &[u8], encoding: Encoding, extent: SampleExtent) -> Option<Encoding> {
    let mut units = &sample[2..];
    if extent == SampleExtent::Beginning {
        units = &units[..units.len() & !1];
        let last = units.last_chunk::<2>().map(|unit| unit_of(*unit, encoding));
        if last.is_some_and(|unit| (0xD800..0xDC00).contains(&unit)) {
            units = &units[..units.len() - 2];
        }
    }
    let text = decode_units(units, encoding)?;
    (!text.contains('\0')).then_some(encoding)
}

fn legacy_text(sample: &[u8], extent: SampleExtent) -> Option<Encoding> {
    if memchr::memchr(0, sample).is_some() || has_binary_signature(sample) || is_full_of_controls(sample) {
        return None;
    }
    let beginning = sample.iter().position(|byte| !byte.is_ascii()).unwrap_or(0).saturating_sub(SIGNATURE_BYTES);
    let guessed = &sample[beginning..sample.len().min(beginning.saturating_add(MAX_DETECTION_BYTES))];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(guessed, extent == SampleExtent::Whole && beginning + guessed.len() == sample.len());
    let encoding = detector.guess(None, Utf8Detection::Deny);
    decodes(sample, encoding, extent).then_some(Encoding::Legacy(encoding))
}

fn has_binary_signature(sample: &[u8]) -> bool {
    infer::get(&sample[..sample.len().min(SIGNATURE_BYTES)]).is_some_and(|kind| {
        kind.matcher_type() != infer::MatcherType::Text && !WEAK_SIGNATURES.contains(&kind.mime_type())
    })
}

fn is_full_of_controls(sample: &[u8]) -> bool {
    let controls = sample
        .iter()
        .filter(|byte| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0B | 0x0C | 0x1B));
    controls.count() > sample.len() / 50
}

fn decodes(sample: &[u8], encoding: &'static encoding_rs::Encoding, extent: SampleExtent) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut scratch = [0; 4096];
    let mut rest = sample;
    loop {
        let (result, read, _) =
            decoder.decode_to_utf8_without_replacement(rest, &mut scratch, extent == SampleExtent::Whole);
        rest = &rest[read..];
        match result {
            DecoderResult::InputEmpty => return true,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => return false,
        }
    }
}

/// Decodes `bytes`, or returns `None` if they are invalid in `encoding`. The byte order mark of UTF-16 is removed.
pub fn decode(bytes: &[u8], encoding: Encoding) -> Option<String> {
    match encoding {
        Encoding::Utf16Le => decode_units(bytes.strip_prefix(UTF16_LE_BOM).unwrap_or(bytes), encoding),
        Encoding::Utf16Be => decode_units(bytes.strip_prefix(UTF16_BE_BOM).unwrap_or(bytes), encoding),
        _ => decode_part(bytes, encoding),
    }
}

/// Decodes a part that begins after the byte order mark.
pub(crate) fn decode_part(bytes: &[u8], encoding: Encoding) -> Option<String> {
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Encoding::Utf16Le | Encoding::Utf16Be => decode_units(bytes, encoding),
        Encoding::Legacy(encoding) => {
            encoding.decode_without_bom_handling_and_without_replacement(bytes).map(|text| text.into_owned())
        }
    }
}

fn decode_units(bytes: &[u8], encoding: Encoding) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(units.len());
    for character in char::decode_utf16(units.iter().map(|unit| unit_of(*unit, encoding))) {
        text.push(character.ok()?);
    }
    Some(text)
}

fn unit_of(bytes: [u8; 2], encoding: Encoding) -> u16 {
    if encoding == Encoding::Utf16Be { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

/// Encodes `text`, with the byte order mark of UTF-16, or returns `None` if the encoding lacks a character.
pub fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => Some(text.as_bytes().to_vec()),
        Encoding::Utf16Le => Some(encode_units(UTF16_LE_BOM, text, u16::to_le_bytes)),
        Encoding::Utf16Be => Some(encode_units(UTF16_BE_BOM, text, u16::to_be_bytes)),
        Encoding::Legacy(encoding) => {
            let (bytes, used, unmappable) = encoding.encode(text);
            (!unmappable && used == encoding).then(|| bytes.into_owned())
        }
    }
}

fn encode_units(mark: &[u8], text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(mark.len() + text.len() * 2);
    bytes.extend_from_slice(mark);
    for unit in text.encode_utf16() {
        bytes.extend_from_slice(&bytes_of(unit));
    }
    bytes
}

/// Returns how the lines of UTF-8 or single-byte text end. A lone `\r` ends no line.
pub(crate) fn line_ending(text: &[u8]) -> LineEnding {
    let crlf = match memchr::memchr(b'\r', text) {
        Some(first) => memchr::memmem::find_iter(&text[first..], b"\r\n").count(),
        None => 0,
    };
    match crlf {
        0 if memchr::memchr(b'\n', text).is_none() => LineEnding::None,
        0 => LineEnding::Lf,
        _ if memchr::memchr_iter(b'\n', text).count() == crlf => LineEnding::Crlf,
        _ => LineEnding::Mixed,
    }
}

/// Returns the MIME type of `bytes` by signature, or [`OCTET_STREAM`].
pub fn mime_type(bytes: &[u8]) -> &'static str {
    infer::get(&bytes[..bytes.len().min(SIGNATURE_BYTES)]).map_or(OCTET_STREAM, |kind| kind.mime_type())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn legacy(label: &str) -> Encoding {
        Encoding::from_name(label).expect("a known label")
    }

    #[test]
    fn the_type_is_detected_from_the_content() {
        let cyrillic = encoding_rs::WINDOWS_1251.encode("Привет, мир! Это обычный русский текст.").0;
        let japanese = encoding_rs::SHIFT_JIS.encode("これは日本語のテキストです。漢字とかな。").0;
        for (sample, expected) in [
            (&b""[..], Sniffed::Text(Encoding::Utf8)),
            (b"plain\x0c\x1b[0m\n", Sniffed::Text(Encoding::Utf8)),
            ("größe €".as_bytes(), Sniffed::Text(Encoding::Utf8)),
            (b"\xEF\xBB\xBFbom", Sniffed::Text(Encoding::Utf8Bom)),
            (b"\xEF\xBB\xBF\xFF", Sniffed::Binary),
            (b"\xFF\xFEa\0\n\0", Sniffed::Text(Encoding::Utf16Le)),
            (b"\xFE\xFF\0a\0\n", Sniffed::Text(Encoding::Utf16Be)),
            (b"\xFF\xFE", Sniffed::Text(Encoding::Utf16Le)),
            (b"\xFF\xFEa", Sniffed::Binary),
            (b"\xFF\xFE\0\xD8a\0", Sniffed::Binary),
            (b"\xFF\xFE\0\0a\0\0\0", Sniffed::Binary),
            (b"\0\0\xFE\xFF\0\0\0a", Sniffed::Binary),
            (b"%PDF-1.7\nall ascii", Sniffed::Binary),
            (b"a\0b", Sniffed::Binary),
            (b"\x89PNG\r\n\x1a\n", Sniffed::Binary),
            (b"\xFF\xD8\xFF\xE0 jpeg", Sniffed::Binary),
            (b"\x01\x02\x03\x04\xFE\xFD", Sniffed::Binary),
            (b"BMW f\xE4hrt gr\xFCn, sch\xF6n\n", Sniffed::Text(legacy("windows-1252"))),
            (b"na\xEFve caf\xE9\n", Sniffed::Text(legacy("windows-1252"))),
            (&cyrillic, Sniffed::Text(legacy("windows-1251"))),
            (&japanese, Sniffed::Text(legacy("shift_jis"))),
        ] {
            assert_eq!(sniff(sample, SampleExtent::Whole), expected, "{sample:?}");
        }
    }

    #[test]
    fn a_beginning_may_end_inside_a_character() {
        for (sample, encoding) in [
            (&"aé".as_bytes()[..2], Encoding::Utf8),
            (&"a😀".as_bytes()[..4], Encoding::Utf8),
            (b"\xFF\xFEa\0b", Encoding::Utf16Le),
            (b"\xFF\xFEa\0\x3D\xD8", Encoding::Utf16Le),
            (b"\xFE\xFF\0a\xD8\x3D\xDE", Encoding::Utf16Be),
        ] {
            assert_eq!(sniff(sample, SampleExtent::Beginning), Sniffed::Text(encoding), "{sample:?}");
            assert_ne!(sniff(sample, SampleExtent::Whole), Sniffed::Text(encoding), "{sample:?}");
        }
    }

    #[test]
    fn decoding_and_encoding_are_strict() {
        assert_eq!(decode(b"\xEF\xBB\xBFa", Encoding::Utf8Bom).as_deref(), Some("\u{FEFF}a"));
        assert_eq!(decode(b"a\xFF", Encoding::Utf8), None);
        assert_eq!(decode(b"\xFF\xFEa\0", Encoding::Utf16Le).as_deref(), Some("a"));
        assert_eq!(decode(b"\xFF\xFEa", Encoding::Utf16Le), None);
        assert_eq!(decode(b"\xEF\xBB\xBF", legacy("windows-1252")).as_deref(), Some("ï»¿"));
        assert_eq!(encode("€", legacy("iso-8859-5")), None);
        assert_eq!(encode("€", legacy("windows-1252")).as_deref(), Some(&b"\x80"[..]));
        assert_eq!(encode("a", Encoding::Utf16Be).as_deref(), Some(&b"\xFE\xFF\0a"[..]));
        assert_eq!(encode("a", legacy("utf-16")), None, "only the encodings of this library write UTF-16");
    }

    #[test]
    fn signatures_name_the_type() {
        assert_eq!(mime_type(b"\x89PNG\r\n\x1a\n"), "image/png");
        assert_eq!(mime_type(b"%PDF-1.4"), "application/pdf");
        assert_eq!(mime_type(b"\x01\x02"), OCTET_STREAM);
        let skippable_frames = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0].repeat(200_000);
        assert_eq!(mime_type(&skippable_frames), OCTET_STREAM);
    }

    proptest! {
        #[test]
        fn detected_text_always_decodes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            mime_type(&bytes);
            sniff(&bytes, SampleExtent::Beginning);
            if let Sniffed::Text(encoding) = sniff(&bytes, SampleExtent::Whole) {
                prop_assert!(decode(&bytes, encoding).is_some());
            }
        }

        #[test]
        fn utf16_survives_the_round_trip(text in any::<String>()) {
            for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encode(&text, encoding).expect("UTF-16 holds every character");
                prop_assert_eq!(decode(&bytes, encoding), Some(text.clone()));
            }
        }
    }
}
