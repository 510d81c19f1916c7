//! Facets of the namespace: commands, watches, trees, multi-modal reads and bulk transfers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::future::{join_all, ready};
use futures::stream::{self, BoxStream, SelectAll};
use vfs_core::change_log::ChangeLog;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::operation::{Request as _, UnaryRequest as _};
use vfs_core::path::MapResultPaths as _;
use vfs_core::shell::{JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{
    Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileUploadRequest,
    FileUploadResponse, GrepEvent, GrepRequest, MultiModalReader, OpContext, Result, Shell, StreamingShell,
    TreeProvider, VfsPath, Watch,
};

use crate::backend::CompositeBackend;
use crate::mount_table::MountTable;
use crate::mounted_backend::MountedBackend;
use crate::shadowed_paths::FinalLink;

impl MountedBackend {
    /// Searches this mount alone.
    pub(crate) fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let mapping = self.mapping.clone();
        match req.map_paths(&mut |path| mapping.to_inner(path)) {
            Err(error) => error.into_stream(),
            Ok(inner) => self
                .backend
                .grep_stream(cx, inner)
                .map(move |event| event.map_err(|error| mapping.error(error))?.map_paths(&mapping))
                .boxed(),
        }
    }
}

fn no_executor() -> Error {
    Error::new(ErrorKind::Unsupported, "no mount of this namespace runs commands").with_path(&VfsPath::root())
}

/// Maximum number of paths of a bulk transfer that are resolved at once.
const MAX_CONCURRENT_CHECKS: usize = 32;

/// The items of one mount, with their places in the request.
struct MountBatch<T> {
    mount: Arc<MountedBackend>,
    indexes: Vec<usize>,
    items: Vec<T>,
}

/// Groups `items` by their mounts, in order. Returns an error for each path that belongs to no file. Items of one path are all in a
/// group, or all have the error.
async fn group_by_mount<T>(
    files: &CompositeBackend,
    cx: &OpContext,
    mut items: Vec<T>,
    path: impl Fn(&mut T) -> &mut VfsPath,
) -> (Vec<MountBatch<T>>, Vec<(usize, Error)>) {
    let table = files.table();
    let paths: Vec<_> = items.iter_mut().map(|item| path(item).clone()).collect();
    let distinct: BTreeSet<_> = paths.iter().collect();
    let checks: Vec<_> = distinct.into_iter().map(async |at| (at, inner_file(&table, cx, at).await)).collect();
    let inner: BTreeMap<_, _> = stream::iter(checks).buffer_unordered(MAX_CONCURRENT_CHECKS).collect().await;
    let mut groups: BTreeMap<VfsPath, MountBatch<T>> = BTreeMap::new();
    let mut failures = Vec::new();
    for (index, mut item) in items.into_iter().enumerate() {
        match &inner[&paths[index]] {
            Ok(inner) => *path(&mut item) = inner.clone(),
            Err(error) => {
                failures.push((index, error.clone()));
                continue;
            }
        }
        let mount = table.route(&paths[index]);
        let group = groups.entry(mount.at().clone()).or_insert_with(|| MountBatch {
            mount: Arc::clone(mount),
            indexes: Vec::new(),
            items: Vec::new(),
        });
        group.indexes.push(index);
        group.items.push(item);
    }
    (groups.into_values().collect(), failures)
}

/// Returns the path of the file at `at` in its mount.
async fn inner_file(table: &MountTable, cx: &OpContext, at: &VfsPath) -> Result<VfsPath> {
    if table.is_mount_or_ancestor(&table.real_path(cx, at, FinalLink::Follow).await?) {
        return Err(Error::at(ErrorKind::IsADirectory, at));
    }
    table.route(at).mapping.to_inner(at)
}

fn missing_response() -> Error {
    Error::new(ErrorKind::Internal, "internal: the backend returned no response for this file")
}

impl CompositeBackend {
    pub(crate) async fn upload_grouped(
        &self,
        cx: &OpContext,
        files: Vec<FileUploadRequest>,
    ) -> Vec<FileUploadResponse> {
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let (groups, failures) = group_by_mount(self, cx, files, |file| &mut file.path).await;
        let failed = |index: usize, error| FileUploadResponse::failed(VfsPath::clone(&paths[index]), error);
        let mut responses: Vec<_> = (0..paths.len()).map(|index| failed(index, missing_response())).collect();
        for (index, error) in failures {
            responses[index] = failed(index, error);
        }
        let uploads = groups.into_iter().map(|MountBatch { mount, indexes, items }| async move {
            let uploaded = mount.backend.upload_files(cx, items).await;
            let mapped = uploaded.into_iter().map(move |response| response.map_paths(&mount.mapping));
            indexes.into_iter().zip(mapped).collect::<Vec<_>>()
        });
        for (index, response) in join_all(uploads).await.into_iter().flatten() {
            responses[index] = response.unwrap_or_else(|error| failed(index, error));
        }
        responses
    }

    pub(crate) async fn download_grouped(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let order = paths.clone();
        let (groups, failures) = group_by_mount(self, cx, paths, |path| path).await;
        let failed = |index: usize, error| FileDownloadResponse::failed(VfsPath::clone(&order[index]), error);
        let mut responses: Vec<_> = (0..order.len()).map(|index| failed(index, missing_response())).collect();
        for (index, error) in failures {
            responses[index] = failed(index, error);
        }
        let downloads = groups.into_iter().map(|MountBatch { mount, indexes, items }| async move {
            let downloaded = mount.backend.download_files(cx, items).await;
            let mapped = downloaded.into_iter().map(move |response| response.map_paths(&mount.mapping));
            indexes.into_iter().zip(mapped).collect::<Vec<_>>()
        });
        for (index, response) in join_all(downloads).await.into_iter().flatten() {
            responses[index] = response.unwrap_or_else(|error| failed(index, error));
        }
        responses
    }

    fn executor(&self) -> Result<Arc<MountedBackend>> {
        self.table().executor().cloned().ok_or_else(no_executor)
    }

    /// Returns the mount that runs commands, and the directory in it for `cwd`. The root of the namespace maps to the
    /// root of the mount.
    fn executor_at(&self, cwd: &VfsPath) -> Result<(Arc<MountedBackend>, VfsPath)> {
        let table = self.table();
        let mount = table.executor().ok_or_else(no_executor)?;
        if cwd.is_root() {
            return Ok((Arc::clone(mount), VfsPath::root()));
        }
        // A directory of another mount may lie below this mount, where commands would see the files that it shadows.
        if !Arc::ptr_eq(table.route(cwd), mount) {
            let message = format!("commands run in '{}' only; name a directory of that mount", mount.at());
            return Err(Error::new(ErrorKind::CrossBackend, message).with_path(cwd));
        }
        Ok((Arc::clone(mount), mount.mapping.to_inner(cwd)?))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for CompositeBackend {
    async fn execute(&self, cx: &OpContext, mut req: ExecuteRequest) -> Result<ExecuteResponse> {
        let (mount, cwd) = self.executor_at(&req.cwd)?;
        req.cwd = cwd;
        let response = req.send(&*mount.backend, cx).await.map_err(|error| mount.mapping.error(error))?;
        response.map_paths(&mount.mapping)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.mapping.error(error))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.mapping.error(error))
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.mapping.error(error))
    }
}

impl StreamingShell for CompositeBackend {
    fn execute_stream(&self, cx: OpContext, mut req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let begin = || {
            let (mount, cwd) = self.executor_at(&req.cwd)?;
            req.cwd = cwd;
            let message = "the executor does not stream its output";
            let shell =
                mount.backend.as_streaming_shell().ok_or_else(|| Error::new(ErrorKind::Unsupported, message))?;
            let mapping = mount.mapping.clone();
            let events = shell.execute_stream(cx, req);
            Ok(events
                .map(move |event| match event {
                    Ok(event) => event.map_paths(&mapping),
                    Err(error) => Err(mapping.error(error)),
                })
                .boxed())
        };
        begin().unwrap_or_else(|error: Error| error.or_path(&VfsPath::root()).into_stream())
    }
}

#[async_trait]
impl MultiModalReader for CompositeBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        let table = self.table();
        table.real_path(cx, &req.read.path, FinalLink::Follow).await?;
        let mount = table.route(&req.read.path);
        if table.is_mount_or_ancestor(&req.read.path) || mount.backend.as_multi_modal().is_none() {
            return vfs_core::multi_modal::read_multi_modal(self, cx, req).await;
        }
        mount.send(cx, req).await
    }
}

#[async_trait]
impl TreeProvider for CompositeBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        self.full_tree(cx, req).await
    }
}

/// The change feeds of all mounts at or below a path as one.
///
/// The events of one mount come in its order, those of different mounts as they arrive. A cursor is the last cursor
/// of each mount, as a JSON object by mount point. If the mount that the path belongs to has no feed, the only item
/// is `unsupported`; mounts below the path without a feed are left out, after one [`Change::Overflow`].
impl Watch for CompositeBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let mut cursors: BTreeMap<VfsPath, WatchCursor> = match req.since.as_ref().map(parse_cursor).transpose() {
            Ok(cursors) => cursors.unwrap_or_default(),
            Err(error) => return error.with_path(&req.path).into_stream(),
        };
        let is_resumed = req.since.is_some();
        let table = self.table();
        let owner = table.route(&req.path);
        if owner.backend.as_watch().is_none() {
            let message =
                format!("the mount at '{}' has no change feed; watch another mount, or list again", owner.at());
            return Error::new(ErrorKind::Unsupported, message).with_path(&req.path).into_stream();
        }
        let (check_table, check_cx, check_path) = (Arc::clone(&table), cx.clone(), req.path.clone());
        let check = async move { check_table.real_path(&check_cx, &check_path, FinalLink::Follow).await };
        let refusal = stream::once(check).filter_map(|real| ready(real.err().map(Err)));
        // This stream has no events: it ends when the context does, with an error at the path of the request.
        let end = ChangeLog::new().subscribe(cx.clone(), WatchRequest::new(req.path.clone()));
        let end = end.filter_map(|event| ready(event.err().map(Err)));
        let mounts: Vec<_> = [table.route(&req.path)].into_iter().chain(table.below(&req.path)).cloned().collect();
        let mut feeds = SelectAll::new();
        let mut unwatched = Vec::new();
        for mount in mounts {
            match mount.feed(&cx, &req.path, cursors.get(mount.at()).cloned()) {
                Some(feed) => {
                    // A mount that is not in the cursor was not watched before.
                    if is_resumed && !cursors.contains_key(mount.at()) {
                        unwatched.push(mount.at().clone());
                    }
                    feeds.push(feed);
                }
                None => unwatched.push(mount.at().clone()),
            }
        }
        // On an overflow the subscriber lists the files again, including those of mounts that cannot be watched.
        let overflow = (!unwatched.is_empty()).then(|| Ok(WatchEvent::new(encode_cursor(&cursors), Change::Overflow)));
        let events = feeds.filter_map(move |(at, event)| {
            let event = event.map(|WatchEvent { cursor, change, .. }| {
                let change = visible_change(change, &table, &at);
                cursors.insert(at.clone(), cursor);
                change.map(|change| WatchEvent::new(encode_cursor(&cursors), change))
            });
            ready(event.transpose())
        });
        // The feeds are subscribed to before the check, so that nothing is missed meanwhile.
        let events = refusal.chain(stream::iter(overflow)).chain(stream::select(events, end));
        // The first error of a mount ends the whole stream and drops the other feeds.
        let until_error = stream::unfold(Some(events.boxed()), |events| async move {
            let mut events = events?;
            let event = events.next().await?;
            let rest = event.is_ok().then_some(events);
            Some((event, rest))
        });
        until_error.fuse().boxed()
    }
}

/// Returns the part of `change` of the mount at `at` that other mounts do not shadow; `None` if they shadow all of
/// it.
fn visible_change(change: Change, table: &MountTable, at: &VfsPath) -> Option<Change> {
    let is_visible = |path: &VfsPath| table.route(path).at() == at;
    match change {
        Change::Created { ref path, .. } | Change::Changed { ref path, .. } | Change::Removed { ref path } => {
            is_visible(path).then_some(change)
        }
        // Mounts below do not move with the directory, so some of its files appear and others disappear.
        Change::Renamed { ref from, ref to, .. } if table.has_mounts_below(from) || table.has_mounts_below(to) => {
            Some(Change::Overflow)
        }
        Change::Renamed { from, to, version } => match (is_visible(&from), is_visible(&to)) {
            (true, true) => Some(Change::Renamed { from, to, version }),
            (true, false) => Some(Change::Removed { path: from }),
            (false, true) => Some(Change::Created { path: to, version }),
            (false, false) => None,
        },
        other => Some(other),
    }
}

fn parse_cursor(cursor: &WatchCursor) -> Result<BTreeMap<VfsPath, WatchCursor>> {
    serde_json::from_str(cursor.as_str())
        .map_err(|_| Error::invalid_argument("the cursor is not from this namespace; use the cursor of the last event"))
}

fn encode_cursor(cursors: &BTreeMap<VfsPath, WatchCursor>) -> WatchCursor {
    // A map of strings always encodes.
    WatchCursor::new(serde_json::to_string(cursors).unwrap_or_default())
}

/// Changes of one mount, each with the mount point.
type MountFeed = BoxStream<'static, (VfsPath, Result<WatchEvent>)>;

impl MountedBackend {
    /// Returns the changes of this mount at `path`, in the caller's namespace; `None` if it has no feed.
    fn feed(&self, cx: &OpContext, path: &VfsPath, since: Option<WatchCursor>) -> Option<MountFeed> {
        let watch = self.backend.as_watch()?;
        let inner = self.mapping.to_inner(path).unwrap_or_default();
        let mut request = WatchRequest::new(inner);
        request.since = since;
        let (at, mapping) = (self.at().clone(), self.mapping.clone());
        let events = watch.watch(cx.clone(), request).map(move |event| {
            let event = event.map_err(|error| mapping.error(error)).and_then(|event| event.map_paths(&mapping));
            (at.clone(), event)
        });
        Some(events.boxed())
    }
}
