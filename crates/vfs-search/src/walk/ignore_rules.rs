//! Ignore rules of `.gitignore`, `.ignore` and `.git/info/exclude`, with ripgrep's semantics.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Tree};
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use crate::glob;
use crate::read_error::read_error;

/// Maximum size of an ignore file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of rules in one ignore file.
const MAX_RULES: usize = 10_000;

/// The ignore rules that apply in one directory: its own, and those of its ancestors.
///
/// Rules of `.ignore` take precedence over `.gitignore`, and these over `.git/info/exclude`. Among files of one kind
/// the deeper one takes precedence, and within a file the later line. Rules of git do not apply across the border of a
/// repository. Outside of every repository a `.gitignore` applies as well, unless it excludes every name: such a file
/// was written for a repository that does not exist here (that of a distribution's packagers, for example), and
/// applying it would hide a whole tree. In and below the directory of such a file, no `.gitignore` applies.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoreRules(Option<Arc<IgnoreRuleNode>>);

/// The rules of one directory, linked to those of its ancestors.
#[derive(Debug)]
struct IgnoreRuleNode {
    above: Option<Arc<IgnoreRuleNode>>,
    /// Offset in a full path of the part relative to this directory.
    start: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
    scope: GitignoreApplicability,
    /// Whether there is any rule, here or in an ancestor.
    has_rules: bool,
}

/// Whether `.gitignore` files apply in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum GitignoreApplicability {
    /// Neither the directory nor an ancestor contains `.git`; `.gitignore` files apply.
    #[default]
    Outside,
    /// The directory or an ancestor contains `.git`; `.gitignore` files apply.
    Repository,
    /// A `.gitignore` outside of every repository excludes every name; `.gitignore` files do not apply.
    Disowned,
}

/// The result of matching an entry against the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreVerdict {
    /// No rule matches.
    NoMatch,
    /// The entry is excluded.
    Ignored,
    /// A `!` rule includes the entry, even if its name starts with a dot.
    Whitelisted,
}

impl IgnoreRules {
    /// Loads the rules of the directories from the root down to the parent of `path`.
    pub(crate) fn load_above(tree: &Arc<dyn Tree>, path: &VfsPath, problems: &mut Vec<Problem>) -> Self {
        let mut rules = Self::default();
        let mut at = VfsPath::root();
        let mut dir = match Arc::clone(tree).lookup(&at) {
            Ok(LookupResult::Directory(dir)) => dir,
            Ok(LookupResult::File { .. }) => return rules,
            Err(error) => {
                problems.push(Problem::new(at.as_str(), &error.with_path(&at)));
                return rules;
            }
        };
        for name in path.components() {
            rules = rules.extended_with(&*dir, &at, DirectoryIgnoreFiles::UNKNOWN, problems);
            let next = at.child(name).and_then(|path| Ok((dir.open_dir(name, &path)?, path)));
            match next {
                Ok(below) => (dir, at) = below,
                Err(error) => {
                    problems.push(Problem::new(at.as_str(), &error.or_path(&at)));
                    break;
                }
            }
        }
        rules
    }

    /// Returns these rules together with those of the directory `dir` at `path`, which contains `files`.
    pub(crate) fn extended_with(
        &self,
        dir: &dyn Directory,
        path: &VfsPath,
        files: DirectoryIgnoreFiles,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut reader = IgnoreRuleReader { dir, path, presence: files.presence, problems };
        let ignore = reader.rules(".ignore", files.ignore);
        let (is_repository, exclude) = reader.repository(files.git);
        let inherited = self.0.as_ref().map_or(GitignoreApplicability::Outside, |above| above.scope);
        let mut scope = if is_repository { GitignoreApplicability::Repository } else { inherited };
        let mut gitignore = Gitignore::empty();
        if scope != GitignoreApplicability::Disowned {
            gitignore = reader.rules(".gitignore", files.gitignore);
        }
        if scope == GitignoreApplicability::Outside && excludes_every_name(&gitignore) {
            (scope, gitignore) = (GitignoreApplicability::Disowned, Gitignore::empty());
        }
        let has_no_rules = ignore.is_empty() && gitignore.is_empty() && exclude.is_empty();
        if has_no_rules && scope == inherited && !is_repository {
            return self.clone();
        }
        let start = if path.is_root() { 1 } else { path.as_str().len() + 1 };
        let above = self.0.clone();
        let has_rules = !has_no_rules || !self.is_empty();
        Self(Some(Arc::new(IgnoreRuleNode {
            above,
            start,
            ignore,
            gitignore,
            exclude,
            is_repository,
            scope,
            has_rules,
        })))
    }

    /// Returns whether there is no rule at all.
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.as_ref().is_some_and(|node| node.has_rules)
    }

    /// Matches the entry at the full path `path` against the rules.
    pub(crate) fn verdict(&self, path: &str, kind: ChildKind) -> IgnoreVerdict {
        let is_dir = kind == ChildKind::Directory;
        let (mut git, mut exclude) = (IgnoreVerdict::NoMatch, IgnoreVerdict::NoMatch);
        let mut same_repository = true;
        let mut next = self.0.as_deref();
        while let Some(node) = next {
            let relative = &path[node.start..];
            let ignore = match_rules(&node.ignore, relative, is_dir);
            if ignore != IgnoreVerdict::NoMatch {
                return ignore;
            }
            if same_repository && git == IgnoreVerdict::NoMatch {
                git = match_rules(&node.gitignore, relative, is_dir);
            }
            if same_repository && exclude == IgnoreVerdict::NoMatch {
                exclude = match_rules(&node.exclude, relative, is_dir);
            }
            same_repository &= !node.is_repository;
            next = node.above.as_deref();
        }
        if git == IgnoreVerdict::NoMatch { exclude } else { git }
    }
}

/// Returns whether the rules exclude every name, judged by a name that no real file has.
fn excludes_every_name(rules: &Gitignore) -> bool {
    const PROBE_NAME: &str = "unheard-of-0b8f1c";
    !rules.is_empty()
        && [false, true].into_iter().all(|is_dir| match_rules(rules, PROBE_NAME, is_dir) == IgnoreVerdict::Ignored)
}

fn match_rules(rules: &Gitignore, relative: &str, is_dir: bool) -> IgnoreVerdict {
    match rules.matched(relative, is_dir) {
        ignore::Match::None => IgnoreVerdict::NoMatch,
        ignore::Match::Ignore(_) => IgnoreVerdict::Ignored,
        ignore::Match::Whitelist(_) => IgnoreVerdict::Whitelisted,
    }
}

/// Whether the names of the ignore files come from a listing, or have to be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IgnoreFileDiscovery {
    Listed,
    Unknown,
}

/// The ignore files of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryIgnoreFiles {
    presence: IgnoreFileDiscovery,
    ignore: Option<ChildKind>,
    gitignore: Option<ChildKind>,
    git: Option<ChildKind>,
}

impl DirectoryIgnoreFiles {
    /// The names of ignore files and of the directory of git.
    pub(crate) const NAMES: [&str; 3] = [".ignore", ".gitignore", ".git"];

    /// Any file may be present; each is opened as a link, since it may be one.
    const UNKNOWN: Self = Self {
        presence: IgnoreFileDiscovery::Unknown,
        ignore: Some(ChildKind::Link),
        gitignore: Some(ChildKind::Link),
        git: Some(ChildKind::Directory),
    };

    /// Returns the ignore files in `listing`.
    pub(crate) fn from_listing(listing: &Listing) -> Self {
        let mut files = Self { presence: IgnoreFileDiscovery::Listed, ignore: None, gitignore: None, git: None };
        for (name, kind) in listing.iter().filter(|(name, _)| name.starts_with('.')) {
            match name {
                ".ignore" => files.ignore = Some(kind),
                ".gitignore" => files.gitignore = Some(kind),
                ".git" => files.git = Some(kind),
                _ => {}
            }
        }
        files
    }
}

/// A reader of the rules of the directory `dir` at `path`.
struct IgnoreRuleReader<'a> {
    dir: &'a dyn Directory,
    path: &'a VfsPath,
    presence: IgnoreFileDiscovery,
    problems: &'a mut Vec<Problem>,
}

impl IgnoreRuleReader<'_> {
    /// Reads the rules of the file `name`. A file that cannot be read or parsed is a problem.
    fn rules(&mut self, name: &str, kind: Option<ChildKind>) -> Gitignore {
        let Some(kind) = kind.filter(|kind| *kind != ChildKind::Directory) else {
            return Gitignore::empty();
        };
        let rules = read(self.dir, name, kind).and_then(|text| parse(&text));
        rules.unwrap_or_else(|error| {
            self.report(self.path, name, error);
            Gitignore::empty()
        })
    }

    /// Returns whether the directory is the root of a repository, and the rules of its `.git/info/exclude`.
    fn repository(&mut self, git: Option<ChildKind>) -> (bool, Gitignore) {
        match git {
            None => return (false, Gitignore::empty()),
            Some(ChildKind::Directory) => {}
            Some(_) => return (true, Gitignore::empty()),
        }
        let entered = self.path.child(".git").and_then(|path| Ok((self.dir.open_dir(".git", &path)?, path)));
        let (git, git_path) = match entered {
            Ok(entered) => entered,
            // In a linked worktree or a submodule, `.git` is a file.
            Err(error) if error.kind() == ErrorKind::NotADirectory => return (true, Gitignore::empty()),
            Err(error) => {
                self.report(self.path, ".git", error);
                return (self.presence == IgnoreFileDiscovery::Listed, Gitignore::empty());
            }
        };
        let exclude = git_path.child("info").and_then(|path| {
            let info = git.open_dir("info", &path)?;
            parse(&read(&*info, "exclude", ChildKind::Link)?)
        });
        let exclude = exclude.unwrap_or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                self.report(&git_path, "info/exclude", error);
            }
            Gitignore::empty()
        });
        (true, exclude)
    }

    fn report(&mut self, path: &VfsPath, name: &str, error: Error) {
        use ErrorKind::{IsADirectory, NotADirectory, NotFound};
        if self.presence == IgnoreFileDiscovery::Unknown
            && matches!(error.kind(), NotFound | IsADirectory | NotADirectory)
        {
            return;
        }
        let path = format!("{}/{name}", path.as_str().trim_end_matches('/'));
        self.problems.push(Problem::new(path.as_str(), &error.with_path_text(&path)));
    }
}

fn read(dir: &dyn Directory, name: &str, kind: ChildKind) -> Result<Bytes> {
    if kind == ChildKind::Other {
        return Err(Error::new(ErrorKind::Unsupported, "the ignore file is a FIFO, socket or device"));
    }
    let text = match dir.open_file(name, kind)? {
        SearchableContent::Bytes { bytes, .. } => bytes,
        SearchableContent::Reader { reader, .. } => {
            let mut text = Vec::new();
            reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(read_error)?;
            text.into()
        }
    };
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::new(ErrorKind::TooLarge, "the ignore file is over 1 MiB and was not applied"));
    }
    Ok(text)
}

fn parse(text: &[u8]) -> Result<Gitignore> {
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new("");
    let mut rules = 0;
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is not a valid glob is not a rule, as in git. Deeply nested braces would overflow the stack of
        // the compiler.
        if line.is_empty()
            || line.starts_with('#')
            || !glob::within_limits(line)
            || builder.add_line(None, line).is_err()
        {
            continue;
        }
        rules += 1;
        if rules > MAX_RULES {
            return Err(Error::new(ErrorKind::TooLarge, "the ignore file has over 10,000 rules and was not applied"));
        }
    }
    builder.build().map_err(|error| {
        Error::new(ErrorKind::InvalidPattern, "the ignore file's rules are too large and were not applied")
            .with_source(error)
    })
}
