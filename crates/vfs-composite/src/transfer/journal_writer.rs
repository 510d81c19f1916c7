//! Record of a rename in the journal.

use std::collections::{BTreeSet, HashMap};

use vfs_core::transfer::TransferTargetMode;
use vfs_core::{Backend as _, Error, ErrorKind, OpContext, Result, StatRequest, VfsPath};

use super::{CopiedFile, TransferFile, TransferPlan, TransferProgress};
use crate::backend::{CompositeBackend, is_overwrite};
use crate::journal::{MoveRecord, OngoingMove, RecordFormat, RecordedFile, RecordedMount, digest};
use crate::mount_identity::MountIdentity;
use crate::mount_table::MountTable;

impl CompositeBackend {
    /// Records the rename in the journal, if there is one.
    pub(super) async fn record(
        &self,
        cx: &OpContext,
        table: &MountTable,
        from: &VfsPath,
        to: &VfsPath,
        plan: &TransferPlan,
        mode: TransferTargetMode,
    ) -> Result<Option<OngoingMove>> {
        // Changes that are only returned leave nothing to recover.
        let Some(journal) = self.journal.as_ref().filter(|_| !self.only_returns_changes(from)) else { return Ok(None) };
        // Files in memory are lost in a crash, so a recovery could not settle the rename.
        let is_in_memory = |end| table.route(end).identity.as_ref().is_some_and(MountIdentity::is_in_memory);
        if is_in_memory(from) || is_in_memory(to) {
            return Ok(None);
        }
        let mut files = Vec::new();
        for TransferFile { from: source, to: target, kind } in &plan.files {
            let missing = || Error::at(ErrorKind::IsADirectory, source);
            let version = self.stat(cx, StatRequest::new(source.clone())).await?.version.ok_or_else(missing)?;
            let replaces = match self.stat(cx, StatRequest::new(target.clone())).await {
                Ok(existing) if is_overwrite(mode) => existing.version,
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
            replaced: plan.replaces_target,
            has_arrived: false,
            not_arrived: 0,
            missing: None,
            is_rolling_back: false,
            pinned: Vec::new(),
            problems: BTreeSet::new(),
            files,
            empty: plan.empty_dirs.iter().map(|directory| directory.to.clone()).collect(),
        };
        let recorded = journal.begin(cx, record).await;
        recorded.map(Some).map_err(|error| {
            error.with_consequence("nothing was moved, as the journal of moves cannot be written").with_path(from)
        })
    }

    /// Marks the record of a rename as being rolled back, with digests of the files that are restored at the target.
    pub(super) async fn record_rollback(
        &self,
        cx: &OpContext,
        recorded: &mut OngoingMove,
        progress: &TransferProgress,
    ) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let replaced =
            progress.copied.iter().filter_map(|file| Some((&file.to, digest(&file.before.as_ref()?.content))));
        let mut replaced: HashMap<_, _> = replaced.collect();
        for file in &mut recorded.record.files {
            file.replaced_digest = replaced.remove(&file.to);
        }
        recorded.record.is_rolling_back = true;
        journal.update(cx, recorded).await
    }

    /// Reduces the record of a rolled back rename to the files of `unrestored`, by their sources, which could not be
    /// restored.
    pub(super) async fn record_unrestored(
        &self,
        cx: &OpContext,
        recorded: &mut OngoingMove,
        mut unrestored: HashMap<VfsPath, CopiedFile>,
    ) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let record = &mut recorded.record;
        let recorded_files = record.files.len();
        record.files.retain_mut(|file| {
            let unrestored = unrestored.remove(&file.from);
            unrestored
                .map(|unrestored| (file.version, file.is_restored) = (unrestored.source, unrestored.is_restored))
                .is_some()
        });
        if record.files.len() < recorded_files {
            record.empty.clear();
        }
        (record.has_arrived, record.is_rolling_back) = (true, false);
        journal.update(cx, recorded).await
    }
}
