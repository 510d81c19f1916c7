//! The record of a rename that is about to begin.

use std::collections::{BTreeSet, HashMap};

use vfs_core::{Backend as _, Error, ErrorKind, OpContext, Result, StatRequest, TransferMode, VfsPath};

use super::{Inventory, Item, Placed, Progress};
use crate::backend::{CompositeBackend, replaces};
use crate::identity::MountIdentity;
use crate::journal::{MoveRecord, RecordFormat, RecordedFile, RecordedMount, RecordedMove, digest};
use crate::table::MountTable;

impl CompositeBackend {
    /// Records in the journal, if there is one, what is about to be moved.
    pub(super) async fn record(
        &self,
        cx: &OpContext,
        table: &MountTable,
        from: &VfsPath,
        to: &VfsPath,
        inventory: &Inventory,
        mode: TransferMode,
    ) -> Result<Option<RecordedMove>> {
        // Of changes that are only returned, nothing is there to be recovered.
        let Some(journal) = self.journal.as_ref().filter(|_| !self.returns(from)) else { return Ok(None) };
        // Of an end in memory nothing is left after a crash, so that a recovery could not settle the rename.
        let is_in_memory = |end| table.route(end).identity.as_ref().is_some_and(MountIdentity::is_in_memory);
        if is_in_memory(from) || is_in_memory(to) {
            return Ok(None);
        }
        let mut files = Vec::new();
        for Item { from: source, to: target, kind } in &inventory.files {
            let missing = || Error::at(ErrorKind::IsADirectory, source);
            let version = self.stat(cx, StatRequest::new(source.clone())).await?.version.ok_or_else(missing)?;
            let replaces = match self.stat(cx, StatRequest::new(target.clone())).await {
                Ok(there) if replaces(mode) => there.version,
                _ => None,
            };
            let (from, to) = (source.clone(), target.clone());
            files.push(RecordedFile {
                from,
                to,
                kind: *kind,
                version,
                replaces,
                replaced_digest: None,
                is_placed: false,
                is_restored: false,
            });
        }
        let mount = |end| {
            let mount = table.route(end);
            RecordedMount { path: mount.at().clone(), identity: mount.identity.clone() }
        };
        let record = MoveRecord {
            format: RecordFormat::default(),
            from: from.clone(),
            to: to.clone(),
            source: mount(from),
            target: mount(to),
            actor: cx.actor().map(str::to_owned),
            session: cx.session().map(str::to_owned),
            replaced: inventory.replaced,
            has_arrived: false,
            not_arrived: 0,
            missing: None,
            is_rolling_back: false,
            kept: Vec::new(),
            problems: BTreeSet::new(),
            files,
            empty: inventory.empty.iter().map(|directory| directory.to.clone()).collect(),
        };
        let recorded = journal.begin(cx, record).await;
        recorded.map(Some).map_err(|error| {
            error.with_consequence("nothing was moved, as the journal of moves cannot be written").with_path(from)
        })
    }

    /// Marks the record of a rename as being rolled back, with digests of what is put back at the target.
    pub(super) async fn record_rollback(
        &self,
        cx: &OpContext,
        recorded: &mut RecordedMove,
        progress: &Progress,
    ) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let replaced =
            progress.placed.iter().filter_map(|file| Some((&file.to, digest(&file.before.as_ref()?.content))));
        let mut replaced: HashMap<_, _> = replaced.collect();
        for file in &mut recorded.record.files {
            file.replaced_digest = replaced.remove(&file.to);
        }
        recorded.record.is_rolling_back = true;
        journal.update(cx, recorded).await
    }

    /// Reduces the record of a rename that was rolled back to the files that could not be: `left`, each by its source.
    pub(super) async fn record_left(
        &self,
        cx: &OpContext,
        recorded: &mut RecordedMove,
        mut left: HashMap<VfsPath, Placed>,
    ) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let record = &mut recorded.record;
        let recorded_files = record.files.len();
        record.files.retain_mut(|file| {
            let left = left.remove(&file.from);
            left.map(|left| (file.version, file.is_restored) = (left.source, left.is_restored)).is_some()
        });
        if record.files.len() < recorded_files {
            record.empty.clear();
        }
        (record.has_arrived, record.is_rolling_back) = (true, false);
        journal.update(cx, recorded).await
    }
}
