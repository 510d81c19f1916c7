//! The record of a rename that is about to begin.

use vfs_core::{Backend as _, Error, ErrorKind, OpContext, Result, StatRequest, TransferMode, VfsPath};

use super::{Inventory, Item};
use crate::backend::{CompositeBackend, replaces};
use crate::journal::{Note, NotedFile, NotedRename};

impl CompositeBackend {
    /// Records in the journal, if there is one, what is about to be moved.
    pub(super) async fn note(
        &self,
        cx: &OpContext,
        from: &VfsPath,
        to: &VfsPath,
        inventory: &Inventory,
        mode: TransferMode,
        replaced: bool,
    ) -> Result<Option<NotedRename>> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let mut files = Vec::new();
        for Item { from: source, to: target, kind } in &inventory.files {
            let missing = || Error::at(ErrorKind::IsADirectory, source);
            let version = self.stat(cx, StatRequest::new(source.clone())).await?.version.ok_or_else(missing)?;
            let replaces = match self.stat(cx, StatRequest::new(target.clone())).await {
                Ok(there) if replaces(mode) => there.version,
                _ => None,
            };
            files.push(NotedFile { from: source.clone(), to: target.clone(), kind: *kind, version, replaces });
        }
        let note = Note {
            from: from.clone(),
            to: to.clone(),
            actor: cx.actor().map(str::to_owned),
            session: cx.session().map(str::to_owned),
            replaced,
            files,
            empty: inventory.empty.iter().map(|directory| directory.to.clone()).collect(),
        };
        let noted = journal.begin(cx, &note).await;
        noted.map(Some).map_err(|source| {
            let message = format!("nothing was moved, as the journal of moves cannot be written: {}", source.message());
            Error::new(source.kind(), message).with_path(from).with_source(source)
        })
    }
}
