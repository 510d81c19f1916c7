//! A page of the results of a search.

use std::collections::BTreeMap;

use vfs_core::search::{GrepMatch, GrepSummary, LineKind};
use vfs_core::{Problem, VfsPath};

use super::enclosing_lines::EnclosingDefinitions;
use super::page::in_one_line;
use super::symbol_definitions::has_definitions;

/// Room in bytes for what is around the text of a line.
const LINE_ROOM: usize = 24;

/// Room in bytes for where the match of a cut line is.
const CUT_ROOM: usize = 36;

/// A part of the results, in the order of a search.
#[derive(Default)]
pub(super) struct SearchPage {
    pub(super) items: Vec<SearchPageItem>,
    /// Size in bytes of the items as they are shown.
    size: usize,
    /// Maximum size in bytes of the page.
    max_bytes: usize,
    shows_definitions: bool,
    /// Whether one of the items may be in a definition.
    may_have_definitions: bool,
    /// Number of results that were passed or shown, which is the `skip` of the next page.
    pub(super) next: u64,
    pub(super) has_more: bool,
    pub(super) summary: GrepSummary,
    pub(super) problems: Vec<Problem>,
}

pub(super) enum SearchPageItem {
    Line(GrepMatch),
    File(String),
}

impl SearchPage {
    /// Creates a page of at most `max_bytes`. If definitions are shown, and a match may be in one, a quarter is kept for them.
    pub(super) fn new(max_bytes: usize, shows_definitions: bool) -> Self {
        Self { max_bytes, shows_definitions, ..Self::default() }
    }

    /// Returns the maximum size in bytes of the items.
    fn max_item_bytes(&self) -> usize {
        if self.may_have_definitions { self.max_bytes - self.max_bytes / 4 } else { self.max_bytes }
    }

    /// Appends the lines before a match, and the match; or only the match, if it is the first and the lines take too much. Returns whether
    /// it fits.
    pub(super) fn push_match(&mut self, context: &mut Vec<GrepMatch>, found: GrepMatch) -> bool {
        let size = self.size_of(context.iter().chain([&found]));
        self.may_have_definitions |= self.shows_definitions && has_definitions(found.path.name().unwrap_or_default());
        if self.size + size > self.max_item_bytes() {
            if !self.items.is_empty() {
                return false;
            }
            context.clear();
        }
        self.size += self.size_of(context.iter().chain([&found]));
        self.items.extend(context.drain(..).chain([found]).map(SearchPageItem::Line));
        true
    }

    /// Appends the lines after the last match that fit.
    pub(super) fn push_context(&mut self, context: Vec<GrepMatch>) {
        for line in context {
            let size = self.size_of([&line]);
            if self.size + size > self.max_item_bytes() {
                break;
            }
            self.size += size;
            self.items.push(SearchPageItem::Line(line));
        }
    }

    /// Appends the line of a file, and returns whether it fits. The first is always taken.
    pub(super) fn push_file(&mut self, line: String) -> bool {
        if !self.items.is_empty() && self.size + line.len() > self.max_item_bytes() {
            return false;
        }
        self.size += line.len() + 1;
        self.items.push(SearchPageItem::File(line));
        true
    }

    fn size_of<'a>(&self, lines: impl IntoIterator<Item = &'a GrepMatch>) -> usize {
        let mut path = match self.items.last() {
            Some(SearchPageItem::Line(last)) => Some(&last.path),
            _ => None,
        };
        let sizes = lines.into_iter().map(|line| {
            let path = if path.replace(&line.path) == Some(&line.path) { 0 } else { line.path.as_str().len() };
            path + line.text.len() + LINE_ROOM + if line.cut { CUT_ROOM } else { 0 }
        });
        sizes.sum()
    }

    /// Returns whether the rest of a line is left out.
    pub(super) fn has_cut_line(&self) -> bool {
        self.items.iter().any(|item| matches!(item, SearchPageItem::Line(line) if line.cut))
    }

    /// Returns the lines of the matches by file, for the definitions around them.
    pub(super) fn lines(&self) -> BTreeMap<VfsPath, Vec<u64>> {
        let mut lines: BTreeMap<VfsPath, Vec<u64>> = BTreeMap::new();
        for item in &self.items {
            if let SearchPageItem::Line(found) = item {
                lines.entry(found.path.clone()).or_default().push(found.line);
            }
        }
        lines
    }

    /// Appends the page to `text`: a path before the lines of its file, and a definition before the first match in it. Returns the number
    /// of definitions for which there is no room.
    pub(super) fn render(&self, text: &mut String, around: &EnclosingDefinitions) -> u64 {
        let mut room = self.max_bytes.saturating_sub(self.size);
        let mut left_out = 0;
        let (mut path, mut last_line, mut definition) = (None, 0, None);
        for item in &self.items {
            let found = match item {
                SearchPageItem::Line(found) => found,
                SearchPageItem::File(line) => {
                    text.push_str(line);
                    text.push('\n');
                    continue;
                }
            };
            if path != Some(&found.path) {
                text.push_str(&in_one_line(found.path.as_str()));
                text.push('\n');
                (path, last_line, definition) = (Some(&found.path), 0, None);
            } else if found.kind == LineKind::Context && found.line > last_line + 1 {
                text.push_str("--\n");
            }
            let around = around.get(&found.path).and_then(|lines| lines.get(&found.line));
            let begins = around.map(|(line, _)| *line);
            // What follows a match that begins a definition is in it anyway.
            if begins != definition && begins != Some(last_line) {
                let line = around.map(|(line, shown)| format!("{line}= {shown}\n"));
                left_out += u64::from(line.as_ref().is_some_and(|line| line.len() > room));
                let line = line.filter(|line| line.len() <= room).unwrap_or_else(|| "--\n".to_owned());
                room = room.saturating_sub(line.len());
                text.push_str(&line);
            }
            (definition, last_line) = (begins, found.line);
            let mark = if found.kind == LineKind::Match { ':' } else { '-' };
            let cut = cut_mark(found);
            text.push_str(&format!("{}{mark} {}{cut}\n", found.line, found.text.trim_end_matches(['\n', '\r'])));
        }
        left_out
    }
}

/// Returns the mark of a cut line, with the byte of its first match.
fn cut_mark(line: &GrepMatch) -> String {
    match line.column.checked_sub(1) {
        _ if !line.cut => String::new(),
        // A line of context has no match.
        None => " [line cut]".to_owned(),
        Some(before) => format!(" [line cut; match at bytes=\"{}-\"]", line.byte_offset + before),
    }
}
