//! Parser of a framed reply: tagged fields, and the trailer that completes it.

use bytes::Bytes;
use memchr::memmem;

use crate::script::ReplyMarker;

/// The fields of a response, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    fields: Vec<(u8, Bytes)>,
}

/// The error for a response without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IncompleteReplyError;

/// The field that ends a response.
const TRAILER: u8 = b'.';

/// The field with the label of a failure.
const FAILURE: u8 = b'!';

impl Reply {
    /// Parses the output of a script. Text before the first marker, such as the greeting of a login shell, and text
    /// after the trailer are ignored.
    pub(crate) fn parse(marker: &ReplyMarker, printed: &Bytes) -> Result<Self, IncompleteReplyError> {
        let marker = marker.as_bytes();
        let mut starts = memmem::find_iter(printed, marker).map(|at| at + marker.len());
        let mut start = starts.next().ok_or(IncompleteReplyError)?;
        let mut fields = Vec::new();
        for next in starts {
            let field = printed.slice(start..next - marker.len());
            match field.first() {
                Some(&TRAILER) if field.len() == 1 => return Ok(Self { fields }),
                Some(&tag) => fields.push((tag, field.slice(1..))),
                None => return Err(IncompleteReplyError),
            }
            start = next;
        }
        Err(IncompleteReplyError)
    }

    /// Parses the complete fields of a response that was cut.
    pub(crate) fn beginning(marker: &ReplyMarker, printed: &Bytes) -> Self {
        let marker = marker.as_bytes();
        let starts: Vec<_> = memmem::find_iter(printed, marker).collect();
        let fields = starts.windows(2).filter_map(|ends| {
            let field = printed.slice(ends[0] + marker.len()..ends[1]);
            Some((*field.first()?, field.slice(1..)))
        });
        Self { fields: fields.collect() }
    }

    /// Returns the label of the failure, if the operation failed.
    pub(crate) fn failure(&self) -> Option<&[u8]> {
        self.get(FAILURE).map(|label| &label[..])
    }

    /// Returns the first field with this tag.
    pub(crate) fn get(&self, tag: u8) -> Option<&Bytes> {
        self.all(tag).next()
    }

    /// Returns all fields with their tags, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.fields.iter().map(|(tag, field)| (*tag, &field[..]))
    }

    /// Returns all fields with this tag, in order.
    pub(crate) fn all(&self, tag: u8) -> impl Iterator<Item = &Bytes> {
        self.fields.iter().filter(move |field| field.0 == tag).map(|field| &field.1)
    }

    /// Returns the replies to the parts of a script, each of which begins with a field with this tag.
    pub(crate) fn parts(&self, tag: u8) -> impl Iterator<Item = Reply> {
        let first = self.fields.iter().position(|field| field.0 == tag).unwrap_or(self.fields.len());
        self.fields[first..].chunk_by(move |_, next| next.0 != tag).map(|part| Reply { fields: part.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(marker: &ReplyMarker, text: &str) -> Bytes {
        text.replace('M', std::str::from_utf8(marker.as_bytes()).expect("it is ASCII")).into()
    }

    #[test]
    fn only_complete_responses_are_parsed() {
        let marker = ReplyMarker::random();
        let parse = |text: &str| Reply::parse(&marker, &printed(&marker, text));
        for (text, fields) in [
            ("M.M", &[][..]),
            ("welcome\nM.M", &[]),
            ("MeoneMctwo\nM.M", &[(b'e', "one"), (b'c', "two\n")]),
            ("Me.Me\n.\nM.Mlogout\n", &[(b'e', "."), (b'e', "\n.\n")]),
            ("M!missingM.M", &[(b'!', "missing")]),
            ("McM.Mx", &[(b'c', "")]),
        ] {
            let fields: Vec<_> = fields.iter().map(|(tag, text)| (*tag, Bytes::from(*text))).collect();
            assert_eq!(parse(text), Ok(Reply { fields }), "{text}");
        }
        for text in ["", "M", "Me", "MeM", "MeM.", "MeoneM.xM", "Welcome", "MM.M"] {
            assert_eq!(parse(text), Err(IncompleteReplyError), "{text}");
        }
    }

    #[test]
    fn the_beginning_of_a_response_has_its_complete_fields() {
        let marker = ReplyMarker::random();
        for (text, whole) in
            [("", 0), ("welcome", 0), ("MeoneMctw", 1), ("MeoneMctwoM", 2), ("xMeoneMctwoM!m", 2), ("MM", 0)]
        {
            let reply = Reply::beginning(&marker, &printed(&marker, text));
            let expected = [(b'e', &b"one"[..]), (b'c', b"two")];
            assert_eq!(reply.fields().collect::<Vec<_>>(), expected[..whole], "{text}");
        }
    }

    #[test]
    fn every_prefix_of_a_reply_is_distinguished_from_the_whole() {
        let marker = ReplyMarker::random();
        let whole = printed(&marker, "banner MeoneMc\0\u{1}bytes vfs:MxM.M");
        assert!(Reply::parse(&marker, &whole).is_ok());
        for end in 0..whole.len() {
            assert_eq!(Reply::parse(&marker, &whole.slice(..end)), Err(IncompleteReplyError), "{end}");
        }
        assert_eq!(
            Reply::parse(&ReplyMarker::random(), &whole),
            Err(IncompleteReplyError),
            "it is another call's answer"
        );
    }

    proptest::proptest! {
        #[test]
        fn fields_are_parsed_as_they_were_printed(fields: Vec<(u8, Vec<u8>)>, banner: Vec<u8>, end: Vec<u8>, cut: usize) {
            let marker = ReplyMarker::random();
            let mut printed = banner;
            for (tag, field) in &fields {
                let tag = if *tag == TRAILER { b'x' } else { *tag };
                printed.extend([marker.as_bytes(), &[tag], field].concat());
            }
            printed.extend([marker.as_bytes(), b".", marker.as_bytes()].concat());
            let whole = printed.len();
            let parsed = Reply::parse(&marker, &Bytes::from([&printed[..], &end].concat())).expect("it is whole");
            proptest::prop_assert_eq!(parsed.fields.len(), fields.len());
            for ((_, parsed_field), (_, field)) in parsed.fields.iter().zip(&fields) {
                proptest::prop_assert_eq!(&parsed_field[..], &field[..]);
            }
            printed.truncate(cut % whole);
            proptest::prop_assert_eq!(Reply::parse(&marker, &printed.into()), Err(IncompleteReplyError));
        }
    }

    #[test]
    fn parts_begin_at_their_tag() {
        let marker = ReplyMarker::random();
        let reply = Reply::parse(&marker, &printed(&marker, "MxM#1MeaM#2M!missingM#3M.M")).expect("it is whole");
        let parts: Vec<_> = reply.parts(b'#').collect();
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0].get(b'e').map(|field| &field[..]), Some(&b"a"[..]));
        assert_eq!(parts[1].failure(), Some(&b"missing"[..]));
        assert_eq!((parts[2].failure(), parts[2].get(b'e')), (None, None));
    }
}
