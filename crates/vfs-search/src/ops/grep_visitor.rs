//! What a grep does with the entries of a walk.

use vfs_core::tree::{ChildKind, Tree};
use vfs_core::{Error, ErrorKind, GrepRequest, LinkMode, Result, VfsPath};

use crate::engine::visitor::{Named, Quest};
use crate::glob::Shown;
use crate::item::Outlet;
use crate::query::compiled::Plan;
use crate::searcher::file_searcher::FileSearcher;
use crate::walk::dir_entries::{Entry, Judgement};
use crate::walk::options::{Directories, WalkOptions};
use crate::walk::visibility::Visibility;

impl Quest for Plan {
    type Request = GrepRequest;
    type Tools = FileSearcher;

    fn new(req: &GrepRequest) -> Result<Self> {
        Plan::new(req)
    }

    fn path(req: &GrepRequest) -> &VfsPath {
        &req.path
    }

    fn wants_nothing(&self) -> bool {
        self.limit == Some(0) || self.limit_per_file == Some(0)
    }

    fn options(&self) -> WalkOptions {
        let visibility = Visibility { hidden: self.hidden, no_ignore: self.no_ignore };
        WalkOptions { visibility, links: self.links, max_depth: None, directories: Directories::OnlyEntered }
    }

    fn enters(&self, relative: &str, name: &str) -> bool {
        self.filter.enters(relative, name)
    }

    fn names(&self, relative: &str) -> Option<Vec<String>> {
        self.filter.names_in(relative)
    }

    fn asks_dotted(&self, relative: &str, name: &str) -> Shown {
        self.filter.shows_dotted(relative, name)
    }

    fn judge<T: Tree>(&self, tree: &T, entry: Entry<'_, T::Dir>) -> Result<Judgement> {
        let is_wanted = self.filter.opens(entry.place().relative(), entry.name());
        let is_link = entry.kind() == ChildKind::Link;
        let is_left_out = is_link && self.links == LinkMode::Skip;
        // It may be a directory that is gone down.
        let leads_on = is_link && !is_left_out && self.filter.enters(entry.place().relative(), entry.name());
        if !is_wanted && !is_left_out && !leads_on {
            return Ok(Judgement::Pass);
        }
        let kind = match entry.kind() {
            ChildKind::Link => match tree.follow(&entry.place().dir, entry.name()) {
                Ok(kind) => kind,
                // It was followed only to see whether it leads to a directory, and it leads to none.
                Err(error) if !is_wanted && (is_left_out || error.kind() == ErrorKind::NotFound) => {
                    return Ok(Judgement::Pass);
                }
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        match kind {
            ChildKind::File if is_wanted => Ok(if is_left_out { Judgement::SkipLink } else { Judgement::Take }),
            ChildKind::Directory if is_left_out => Ok(Judgement::SkipLink),
            ChildKind::Other if is_wanted => {
                Err(Error::new(ErrorKind::Unsupported, "it is a FIFO, socket or device, not a file"))
            }
            _ => Ok(Judgement::Pass),
        }
    }

    fn tools(&self) -> FileSearcher {
        FileSearcher::new(self)
    }

    fn visit<T: Tree>(
        &self,
        searcher: &mut FileSearcher,
        tree: &T,
        entry: Entry<'_, T::Dir>,
        outlet: &mut dyn Outlet,
        interrupted: &dyn Fn() -> bool,
    ) {
        searcher.visit(self, tree, entry, outlet, interrupted);
    }

    fn visit_named<T: Tree>(
        &self,
        searcher: &mut FileSearcher,
        tree: &T,
        file: &Named<T::Dir>,
        outlet: &mut dyn Outlet,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let opened = tree.open(&file.dir, &file.name, ChildKind::File);
        searcher.search(self, opened, &|| Ok(file.path.clone()), outlet, interrupted);
        Ok(())
    }
}
