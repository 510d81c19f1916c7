//! Visitor of a grep: filters entries by name and kind, and searches files.

use vfs_core::search::LinkMode;
use vfs_core::tree::ChildKind;
use vfs_core::{Error, ErrorKind, GrepRequest, Result, VfsPath};

use crate::engine::search_visitor::{RequestedFile, SearchVisitor};
use crate::glob::HiddenEntryVisibility;
use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::search_item::ItemSink;
use crate::searcher::file_searcher::FileSearcher;
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::visibility::VisibilitySettings;
use crate::walk::walk_options::{DirectoryYieldMode, WalkFilter, WalkOptions};

impl SearchVisitor for CompiledGrepRequest {
    type Request = GrepRequest;
    type WorkerState = FileSearcher;

    fn new(req: &GrepRequest) -> Result<Self> {
        CompiledGrepRequest::new(req)
    }

    fn path(req: &GrepRequest) -> &VfsPath {
        &req.path
    }

    fn has_zero_limit(&self) -> bool {
        self.limit == Some(0) || self.limit_per_file == Some(0)
    }

    fn options(&self) -> WalkOptions {
        let visibility = VisibilitySettings { hidden: self.hidden, ignore: self.ignore };
        WalkOptions { visibility, links: self.links, max_depth: None, directories: DirectoryYieldMode::OnlyEntered }
    }

    fn filter_entry(&self, entry: WalkEntry<'_>) -> Result<FilterDecision> {
        let matches = self.filter.matches_file(entry.context().relative(), entry.name());
        let is_link = entry.kind() == ChildKind::Link;
        let is_left_out = is_link && self.links == LinkMode::Skip;
        // The link may lead to a directory that the walk enters.
        let leads_on = is_link && !is_left_out && self.filter.should_enter(entry.context().relative(), entry.name());
        if !matches && !is_left_out && !leads_on {
            return Ok(FilterDecision::Drop);
        }
        let kind = match entry.kind() {
            ChildKind::Link => match entry.dir().follow_link(entry.name()) {
                Ok(kind) => kind,
                // The link was resolved only to determine whether its target is a directory, and it has no target.
                Err(error) if !matches && (is_left_out || error.kind() == ErrorKind::NotFound) => {
                    return Ok(FilterDecision::Drop);
                }
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        match kind {
            ChildKind::File if matches => Ok(if is_left_out { FilterDecision::SkipLink } else { FilterDecision::Keep }),
            ChildKind::Directory if is_left_out => Ok(FilterDecision::SkipLink),
            ChildKind::Other if matches => {
                Err(Error::new(ErrorKind::Unsupported, "not a regular file but a FIFO, socket or device"))
            }
            _ => Ok(FilterDecision::Drop),
        }
    }

    fn new_worker_state(&self) -> FileSearcher {
        FileSearcher::new(self)
    }

    fn visit(
        &self,
        searcher: &mut FileSearcher,
        entry: WalkEntry<'_>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        searcher.visit(self, entry, item_sink, is_interrupted);
    }

    fn visit_named(
        &self,
        searcher: &mut FileSearcher,
        file: &RequestedFile,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let opened = file.dir.open_file(&file.name, ChildKind::File);
        searcher.search(self, opened, &|| Ok(file.path.clone()), item_sink, is_interrupted);
        Ok(())
    }
}

impl WalkFilter for CompiledGrepRequest {
    fn should_enter(&self, relative: &str, name: &str) -> bool {
        self.filter.should_enter(relative, name)
    }

    fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        self.filter.names_in(relative)
    }

    fn hidden_override(&self, relative: &str, name: &str) -> HiddenEntryVisibility {
        self.filter.hidden_override(relative, name)
    }
}
