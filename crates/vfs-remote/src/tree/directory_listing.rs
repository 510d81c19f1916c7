//! Directory listings, many levels in one script.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, Listing};
use vfs_core::{Error, ErrorKind, OpContext, Problem, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::stat::{RESERVED, unreadable};
use crate::remote_place_client::RemotePlaceClient;
use crate::script::entry_metadata::EntryMetadata;
use crate::script::error::only_gaps;
use crate::script::{PathResolutionMode, Script, quoted};

/// The entries of one directory, with the problems of their listing.
#[derive(Debug, Default)]
pub(crate) struct DirectoryListing {
    pub(crate) entries: BTreeMap<String, EntryMetadata>,
    problems: Vec<Problem>,
    /// Targets of the links in the directory, once they were read.
    pub(crate) links: OnceLock<HashMap<String, Result<EntryMetadata>>>,
}

impl DirectoryListing {
    pub(crate) fn listing(&self) -> Listing {
        let mut listing = Listing::with_capacity(self.entries.len());
        for (name, facts) in &self.entries {
            listing.push(name, facts.kind);
        }
        listing.problems = self.problems.clone();
        listing
    }

    /// Returns the entries whose names are in `names`.
    pub(crate) fn only(&self, names: &[String]) -> Listing {
        let mut listing = Listing::default();
        for name in names {
            if let Some(facts) = self.entries.get(name) {
                listing.push(name, facts.kind);
            }
        }
        listing
    }

    /// Returns the names of the links in the directory.
    pub(crate) fn link_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, facts)| facts.kind == ChildKind::Link).map(|(name, _)| name.as_str())
    }
}

/// The directories that one script listed, by path.
pub(crate) type ListingsByPath = HashMap<VfsPath, Arc<DirectoryListing>>;

/// The depth to which a directory is listed at once. Deeper directories are listed when the search enters them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListingDepth {
    /// The entries of the directory.
    Level,
    /// This number of levels.
    Levels(u32),
    /// All levels.
    All(HeavyDirectoryHandling),
}

/// Whether a listing enters directories that most searches leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeavyDirectoryHandling {
    /// Each directory is entered.
    Entered,
    /// Directories that are usually large are listed and not entered.
    Skipped,
}

/// Names of directories that are usually large, and excluded by ignore files.
const HEAVY: [&str; 4] = ["node_modules", "target", "__pycache__", ".*"];

/// Maximum depth that is expressed as levels.
const MAX_LEVELS: u32 = 64;

impl ListingDepth {
    /// Returns the predicates of `find` for this depth.
    fn predicates(self) -> String {
        match self {
            ListingDepth::Level => "! -name . -prune".to_owned(),
            ListingDepth::Levels(levels) if levels <= MAX_LEVELS => {
                let pattern = format!(".{}", "/*".repeat(levels.max(1) as usize));
                format!("! -name . \\( -path {} -prune -o ! -name . \\)", quoted(&pattern))
            }
            ListingDepth::Levels(_) | ListingDepth::All(HeavyDirectoryHandling::Entered) => "! -name .".to_owned(),
            ListingDepth::All(HeavyDirectoryHandling::Skipped) => {
                let names: Vec<_> = HEAVY.iter().map(|name| format!("-name {}", quoted(name))).collect();
                format!("! -name . \\( -type d \\( {} \\) -prune -o ! -name . \\)", names.join(" -o "))
            }
        }
    }

    /// Returns whether the listing enters the directory `name` at `depth` levels below the start.
    fn enters(self, name: &str, depth: usize) -> bool {
        match self {
            ListingDepth::Level => false,
            ListingDepth::Levels(levels) => levels > MAX_LEVELS || depth < levels as usize,
            ListingDepth::All(HeavyDirectoryHandling::Entered) => true,
            ListingDepth::All(HeavyDirectoryHandling::Skipped) => !name.starts_with('.') && !HEAVY.contains(&name),
        }
    }
}

/// The start of a search.
#[derive(Debug)]
pub(crate) enum SearchRoot {
    /// A directory, with the directories that were listed at and below it.
    Directory(ListingsByPath),
    /// A file.
    File,
}

/// Enters the directory at the end of a walk, and lists the entries below it.
const LIST: &str = r#"look
case $k in
d)
  facts
  cd -P "./$n" 2>/dev/null || { [ -d "./$n" ] || die missing; die denied; }
  [ -r . ] || die denied
  list
  c=$?
  say x
  printf '%s' "$c" ;;
f) facts ;;
'') die missing ;;
l) die raced ;;
*) die special ;;
esac"#;

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Lists the entries at and below `path`.
    pub(crate) async fn list(&self, cx: &OpContext, path: &VfsPath, max_depth: ListingDepth) -> Result<SearchRoot> {
        let mut script: Script = self.script(cx, path).await?;
        script.push(&format!("list() {{ below . {}; }}", max_depth.predicates()));
        script.walk(PathResolutionMode::Followed, path).push(LIST);
        // If one directory is too large for a response, a part of it is shown. If a tree is too large, its directories
        // are listed one by one.
        script.counts_in_part = max_depth == ListingDepth::Level;
        let answer = self.query(cx, path, script).await?;
        let (stderr, is_cut) = (answer.stderr.clone(), answer.is_cut);
        let reply = answer.done(path)?;
        let has_gaps = match reply.get(b'x') {
            Some(code) => code[..] != *b"0",
            None if is_cut => false,
            None => return Ok(SearchRoot::File),
        };
        if has_gaps && !only_gaps(&stderr) {
            // A path that is too long from the start may be short enough from its own directory.
            let kind = if max_depth == ListingDepth::Level { ErrorKind::Unavailable } else { ErrorKind::TooLarge };
            let message = "the directory could not be listed completely in the sandbox";
            return Err(Error::new(kind, message).with_path(path));
        }
        let mut found = ListingBuilder { start: path, max_depth, directories: HashMap::new() };
        let start = found.directories.entry(path.clone()).or_default();
        if is_cut {
            let message =
                "the directory has more entries than fit into a response of the sandbox; some of them are left out";
            let reason = Error::new(ErrorKind::TooLarge, message).with_path(path);
            start.problems.push(Problem::from(reason));
        }
        let mut hash = None;
        for (tag, field) in reply.fields() {
            match tag {
                b'H' => hash = Some(field),
                b'r' => found.add(field, hash.take()).ok_or_else(|| unreadable(path))?,
                _ => {}
            }
        }
        let mut directories = found.directories;
        if has_gaps {
            // An empty directory may be unreadable, which a later listing of that directory reports.
            directories.retain(|at, directory| at == path || !directory.entries.is_empty());
        }
        Ok(SearchRoot::Directory(directories.into_iter().map(|(at, directory)| (at, Arc::new(directory))).collect()))
    }
}

/// Collects the entries of a response by directory.
struct ListingBuilder<'a> {
    start: &'a VfsPath,
    max_depth: ListingDepth,
    directories: HashMap<VfsPath, DirectoryListing>,
}

impl ListingBuilder<'_> {
    /// Adds one entry. Returns `None` if the entry cannot be parsed.
    fn add(&mut self, field: &[u8], hash: Option<&[u8]>) -> Option<()> {
        let (facts, relative) = EntryMetadata::parse(field, true)?;
        // `stat` ends its lines, and puts the start before its names; `find` does neither.
        let relative = match relative.strip_prefix(b"./") {
            Some(relative) => relative.strip_suffix(b"\n")?,
            None => relative,
        };
        let (above, name) = match memchr::memrchr(b'/', relative) {
            Some(at) => (&relative[..at], &relative[at + 1..]),
            None => (&b""[..], relative),
        };
        if name.starts_with(RESERVED.as_bytes()) {
            return Some(());
        }
        // Entries below a name without a path, or a reserved one, are not reached.
        let Ok(above) = std::str::from_utf8(above) else { return Some(()) };
        if above.split('/').any(|name| name.starts_with(RESERVED)) {
            return Some(());
        }
        let Ok(at) = below(self.start, above) else { return Some(()) };
        let Ok(name) = std::str::from_utf8(name) else {
            let path_text = format!("{}/{}", at.as_str().trim_end_matches('/'), String::from_utf8_lossy(name));
            let reason = Error::new(ErrorKind::InvalidPath, "the name is not UTF-8; rename it to reach it")
                .with_path_text(&path_text);
            self.directories.entry(at).or_default().problems.push(Problem::new(path_text, &reason));
            return Some(());
        };
        let depth = if above.is_empty() { 1 } else { above.split('/').count() + 1 };
        if facts.kind == ChildKind::Directory
            && self.max_depth.enters(name, depth)
            && let Ok(path) = at.child(name)
        {
            self.directories.entry(path).or_default();
        }
        let facts = if hash.is_some() { facts.with_hash(hash) } else { facts };
        self.directories.entry(at).or_default().entries.insert(name.to_owned(), facts);
        Some(())
    }
}

/// Returns the path `relative` below `start`.
fn below(start: &VfsPath, relative: &str) -> Result<VfsPath> {
    if relative.is_empty() { Ok(start.clone()) } else { start.join(relative) }
}
