//! Parser of file metadata as `stat` and `find` print it, and versions derived from it.

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDateTime, Utc};
use vfs_core::tree::ChildKind;
use vfs_core::{Error, ErrorKind, FileInfo, Result, Version, VfsPath};

/// Variant of `stat`, which determines the format of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatFlavour {
    /// GNU: times in seconds, with nanoseconds.
    Gnu,
    /// Busybox: times as dates.
    Busybox,
    /// Busybox up to 1.31, whose dates are without a zone.
    Zoneless,
    /// BSDs and macOS.
    Bsd,
}

impl StatFlavour {
    /// Returns the command that prints the metadata of its arguments, one line for each.
    pub(crate) fn command(self) -> &'static str {
        match self {
            StatFlavour::Gnu => r"stat -c '%f %a %u %g %h|%d %i %s %.9Y|%.9Z",
            StatFlavour::Busybox | StatFlavour::Zoneless => r"stat -c '%f %a %u %g %h|%d %i %s %y|%z",
            StatFlavour::Bsd => r"stat -f '%p %Lp %u %g %l|%d %i %z %Fm|%Fc",
        }
    }

    /// Returns the command that prints the size of its argument.
    pub(crate) fn size_command(self) -> &'static str {
        match self {
            StatFlavour::Gnu | StatFlavour::Busybox | StatFlavour::Zoneless => "stat -c %s",
            StatFlavour::Bsd => "stat -f %z",
        }
    }

    fn time(self, at: UnixTime) -> String {
        match self {
            StatFlavour::Gnu | StatFlavour::Bsd => format!("{}.{:09}", at.seconds, at.nanos),
            StatFlavour::Busybox => at.utc().map_or_else(String::new, |at| at.format(DATE_OUT).to_string()),
            StatFlavour::Zoneless => at.utc().map_or_else(String::new, |at| at.format(ZONELESS).to_string()),
        }
    }
}

/// Format of GNU's `find -printf` for each entry, with the fields in the same order, followed by the path below the
/// start.
pub(crate) const FIND: &str = "-%y %m %U %G %n|%D %i %s %T@|%C@|%P";

const DATE: &str = "%Y-%m-%d %H:%M:%S%.f %z";
const DATE_OUT: &str = "%Y-%m-%d %H:%M:%S%.9f +0000";
/// A date without a zone is in UTC, which every script sets.
const ZONELESS: &str = "%Y-%m-%d %H:%M:%S%.9f";

/// A time of an entry, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnixTime {
    seconds: i64,
    nanos: u32,
}

impl UnixTime {
    fn parse(text: &str) -> Option<Self> {
        if text.contains(' ') {
            let at = DateTime::parse_from_str(text, DATE).map(|at| at.to_utc());
            let at = at.or_else(|_| NaiveDateTime::parse_from_str(text, ZONELESS).map(|at| at.and_utc())).ok()?;
            return Some(Self { seconds: at.timestamp(), nanos: at.timestamp_subsec_nanos() });
        }
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = fraction.get(..9).unwrap_or(fraction);
        let nanos = if digits.is_empty() { 0 } else { format!("{digits:0<9}").parse().ok()? };
        Some(Self { seconds: seconds.parse().ok()?, nanos })
    }

    /// Returns the moment one nanosecond earlier, or `None` before 1970.
    fn before(self) -> Option<Self> {
        match (self.seconds, self.nanos) {
            (..0, _) | (0, 0) => None,
            (seconds, 0) => Some(Self { seconds: seconds - 1, nanos: 999_999_999 }),
            (seconds, nanos) => Some(Self { seconds, nanos: nanos - 1 }),
        }
    }

    fn utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.seconds, self.nanos)
    }
}

/// The metadata of one entry at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryMetadata {
    pub(crate) kind: ChildKind,
    pub(crate) size: u64,
    pub(crate) links: u64,
    device: u64,
    inode: u64,
    modified: UnixTime,
    changed: UnixTime,
    hash: Option<Box<str>>,
}

impl EntryMetadata {
    /// Parses a field of metadata. If `is_named` is set, a name follows the metadata and is returned unchanged.
    pub(crate) fn parse(field: &[u8], is_named: bool) -> Option<(Self, &[u8])> {
        let mut parts = field.splitn(if is_named { 4 } else { usize::MAX }, |byte| *byte == b'|');
        let mut text = || std::str::from_utf8(parts.next()?).ok().map(str::trim_end);
        let (ownership, content, changed) = (text()?, text()?, text()?);
        let (mut ownership, mut content) = (ownership.split(' '), content.splitn(4, ' '));
        let kind = kind(ownership.next()?)?;
        let links = ownership.nth(3)?.parse().ok()?;
        let mut number = || content.next()?.parse::<u64>().ok();
        let (device, inode, size) = (number()?, number()?, number()?);
        let (modified, changed) = (UnixTime::parse(content.next()?)?, UnixTime::parse(changed)?);
        let rest = parts.next().unwrap_or_default();
        let hash = (!is_named && !rest.is_empty()).then(|| String::from_utf8_lossy(rest).trim().into());
        let name = if is_named { rest } else { &[] };
        Some((Self { kind, size, links, device, inode, modified, changed, hash }, name))
    }

    /// Sets the hash of the content.
    pub(crate) fn with_hash(mut self, hash: Option<&[u8]>) -> Self {
        self.hash = hash.map(|hash| String::from_utf8_lossy(hash).split_whitespace().next().unwrap_or_default().into());
        self
    }

    /// Returns the version of the content, which consists of inode, size, times, and, if times are coarse, the hash.
    pub(crate) fn version(&self) -> Version {
        let mut text = format!("{:x}.{:x}.{:x}", self.device, self.inode, self.size);
        for at in [self.modified, self.changed] {
            _ = write!(text, ".{:x}.{:x}", at.seconds, at.nanos);
        }
        if let Some(hash) = &self.hash {
            _ = write!(text, ".{hash}");
        }
        Version::new(text)
    }

    /// Returns the metadata as that of the entry at `path`. An entry that is neither a file nor a directory is an
    /// error.
    pub(crate) fn info(&self, path: VfsPath) -> Result<FileInfo> {
        let info = match self.kind {
            ChildKind::Directory => FileInfo::directory(path),
            ChildKind::File => FileInfo::file(path, self.size, self.version()),
            _ => return Err(special_file().with_path(&path)),
        };
        Ok(info.modified_at(self.modified.utc()))
    }
}

/// The metadata in a version.
struct VersionMetadata<'a> {
    device: u64,
    inode: u64,
    size: u64,
    modified: UnixTime,
    changed: UnixTime,
    hash: Option<&'a str>,
}

impl<'a> VersionMetadata<'a> {
    /// Parses `version`, or returns `None` for a version of another backend.
    fn parse(version: &'a Version) -> Option<Self> {
        let mut parts = version.as_str().split('.');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (device, inode, size) = (number()?, number()?, number()?);
        let mut time = || {
            let seconds = number()?.cast_signed();
            let nanos = u32::try_from(number()?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
            Some(UnixTime { seconds, nanos })
        };
        let (modified, changed) = (time()?, time()?);
        Some(Self { device, inode, size, modified, changed, hash: parts.next() })
    }
}

/// Formats `version` as the place's `stat` prints it; a version of another backend gets a text that `stat` never prints.
pub(crate) fn stat_format(version: &Version, flavour: StatFlavour) -> String {
    let Some(VersionMetadata { device, inode, size, modified, changed, hash }) = VersionMetadata::parse(version) else {
        return "none".into();
    };
    let mut text = format!("{device} {inode} {size} {}|{}", flavour.time(modified), flavour.time(changed));
    if let Some(hash) = hash {
        _ = write!(text, "|{hash}");
    }
    text
}

/// Returns the change time of `version` in the format of GNU's `find`, followed by the tests that match this version
/// only, as words of a script. The tests do not include the device: a file on another device does not have the same
/// inode and times.
pub(crate) fn find_tests(version: &Version) -> Option<String> {
    let VersionMetadata { inode, size, modified, changed, hash: None, .. } = VersionMetadata::parse(version)? else {
        return None;
    };
    let (modified_before, changed_before) = (modified.before()?, changed.before()?);
    let [modified, changed, modified_before, changed_before] =
        [modified, changed, modified_before, changed_before].map(|at| StatFlavour::Gnu.time(at));
    Some(format!(
        "{changed} -inum {inode} -size {size}c -newermt @{modified_before} '!' -newermt @{modified} \
         -newerct @{changed_before} '!' -newerct @{changed}"
    ))
}

/// Returns the error for an entry that is neither a file nor a directory, which no operation opens.
pub(crate) fn special_file() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "the path is a FIFO, socket or device, not a file; only regular files are read and written",
    )
}

/// Returns the kind of entry from its mode: a letter of `find`, a hexadecimal number, or six octal digits.
fn kind(mode: &str) -> Option<ChildKind> {
    if let Some(letter) = mode.strip_prefix('-') {
        return Some(match letter {
            "f" => ChildKind::File,
            "d" => ChildKind::Directory,
            "l" => ChildKind::Link,
            _ => ChildKind::Other,
        });
    }
    let mode = match mode.len() {
        ..5 => u32::from_str_radix(mode, 16).ok()?,
        _ => u32::from_str_radix(mode, 8).ok()?,
    };
    Some(match mode & 0o170_000 {
        0o100_000 => ChildKind::File,
        0o040_000 => ChildKind::Directory,
        0o120_000 => ChildKind::Link,
        _ => ChildKind::Other,
    })
}

/// Returns whether a time that `stat` printed has a fraction of a second.
pub(crate) fn is_fine(text: &str) -> bool {
    UnixTime::parse(text.trim()).is_some_and(|at| at.nanos != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GNU: &str = "81a4 644 0 0 1|65024 10035205 3 1795355639.117172915|1795355639.118000001";
    const BUSYBOX: &str =
        "81a4 644 0 0 1|65024 10035205 3 2026-11-22 13:53:59.117172915 +0000|2026-11-22 13:53:59.118000001 +0000";
    const NO_ZONE: &str = "81a4 644 0 0 1|65024 10035205 3 2026-11-22 13:53:59.117172915|2026-11-22 13:53:59.118000001";
    const BSD: &str = "100644 644 0 0 1|65024 10035205 3 1795355639.117172915|1795355639.118000001";
    const FOUND: &str = "-f 644 0 0 1|65024 10035205 3 1795355639.1171729150|1795355639.1180000010";

    #[test]
    fn every_format_is_parsed_to_the_same_metadata() {
        let facts = |text: &str| EntryMetadata::parse(text.as_bytes(), false).expect("facts").0;
        let expected = facts(GNU);
        assert_eq!((expected.kind, expected.size, expected.links), (ChildKind::File, 3, 1));
        for text in [BUSYBOX, NO_ZONE, BSD, FOUND, &format!("{GNU}\n")] {
            assert_eq!(facts(text), expected, "{text}");
        }
    }

    #[test]
    fn a_version_is_formatted_as_it_was_printed() {
        let formats = [
            (StatFlavour::Gnu, GNU),
            (StatFlavour::Busybox, BUSYBOX),
            (StatFlavour::Zoneless, NO_ZONE),
            (StatFlavour::Bsd, BSD),
        ];
        for (flavour, text) in formats {
            let content = text.split_once('|').expect("it has parts").1;
            let version = EntryMetadata::parse(text.as_bytes(), false).expect("facts").0.version();
            assert_eq!(stat_format(&version, flavour), content);
            let hashed = EntryMetadata::parse(format!("{text}|abc").as_bytes(), false).expect("facts").0.version();
            assert_eq!(stat_format(&hashed, flavour), format!("{content}|abc"));
            assert_ne!(hashed, version);
        }
        for made_up in ["", "made up", "1.2.3", "1.2.3.4.5.6.fffffffffffff"] {
            assert_eq!(stat_format(&Version::from(made_up), StatFlavour::Gnu), "none", "{made_up}");
        }
    }

    #[test]
    fn a_version_has_tests_that_match_it_alone() {
        let version = |text: &str| EntryMetadata::parse(text.as_bytes(), false).expect("facts").0.version();
        assert_eq!(
            find_tests(&version("81a4 644 0 0 1|65024 10 3 1795355639.117172915|1795355640.000000000")).as_deref(),
            Some(
                "1795355640.000000000 -inum 10 -size 3c -newermt @1795355639.117172914 '!' -newermt @1795355639.117172915 \
                 -newerct @1795355639.999999999 '!' -newerct @1795355640.000000000"
            )
        );
        assert_eq!(find_tests(&version(&format!("{GNU}|abc"))), None, "no test compares hashes");
        assert_eq!(find_tests(&version("81a4 644 0 0 1|65024 10 3 0.000000000|1.000000000")), None);
        assert_eq!(find_tests(&Version::from("made up")), None);
    }

    #[test]
    fn kinds_are_parsed_and_names_unchanged() {
        for (mode, expected) in [
            ("41ed", ChildKind::Directory),
            ("a1ff", ChildKind::Link),
            ("11a4", ChildKind::Other),
            ("40755", ChildKind::Directory),
            ("120777", ChildKind::Link),
            ("-p", ChildKind::Other),
            ("-d", ChildKind::Directory),
        ] {
            assert_eq!(kind(mode), Some(expected), "{mode}");
        }
        let named = format!("{GNU}|./a|b\n\n");
        assert_eq!(EntryMetadata::parse(named.as_bytes(), true).expect("facts").1, b"./a|b\n\n");
        for broken in ["", "81a4", "81a4 644 0 0 1|1 2", "x 644 0 0 1|1 2 3 4|5", "81a4 644 0 0 1|1 2 -3 4|5"] {
            assert_eq!(EntryMetadata::parse(broken.as_bytes(), false), None, "{broken}");
        }
    }
}
