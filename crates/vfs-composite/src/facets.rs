//! What the mounts can do beside the operations, and many files at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::future::{join_all, ready};
use futures::stream::{self, BoxStream, SelectAll};
use vfs_core::change_log::ChangeLog;
use vfs_core::tree::SharedTree;
use vfs_core::{
    Change, Cursor, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileUpload,
    FileUploadResponse, GrepEvent, GrepRequest, Job, JobOutput, JobOutputRequest, JobsRequest, MapPaths as _,
    MultiModalContent, MultiModalReadRequest, MultiModalReader, OpContext, OpenTreeRequest, Request as _, Result,
    Shell, StopJobRequest, StreamingShell, TreeProvider, UnaryRequest as _, VfsPath, Watch, WatchEvent, WatchRequest,
};

use crate::backend::CompositeBackend;
use crate::mount::Mount;
use crate::shadow::LinkAtEnd;
use crate::table::MountTable;

impl Mount {
    /// A search of this mount alone, by itself.
    pub(crate) fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let rebase = self.rebase.clone();
        match req.map_paths(&mut |path| rebase.to_inner(path)) {
            Err(error) => error.into_stream(),
            Ok(inner) => self
                .backend
                .grep_stream(cx, inner)
                .map(move |event| event.map_err(|error| rebase.error(error))?.map_paths(&rebase))
                .boxed(),
        }
    }
}

fn no_executor() -> Error {
    Error::new(ErrorKind::Unsupported, "no mount runs commands here").with_path(&VfsPath::root())
}

/// How many paths of a transfer are resolved at a time.
const MAX_CONCURRENT_CHECKS: usize = 32;

/// What is to be done in one mount, and where in the request each part of it stood.
struct Group<T> {
    mount: Arc<Mount>,
    places: Vec<usize>,
    items: Vec<T>,
}

/// Sorts `items` by their mounts, in order; what belongs to none, or is a directory whatever the mounts hold, is refused.
async fn grouped<T>(
    files: &CompositeBackend,
    cx: &OpContext,
    mut items: Vec<T>,
    path: impl Fn(&mut T) -> &mut VfsPath,
) -> (Vec<Group<T>>, Vec<(usize, Error)>) {
    let table = files.table();
    let paths: Vec<_> = items.iter_mut().map(|item| path(item).clone()).collect();
    let checks: Vec<_> = paths.iter().map(|at| inner_file(&table, cx, at)).collect();
    let inner: Vec<_> = stream::iter(checks).buffered(MAX_CONCURRENT_CHECKS).collect().await;
    let mut groups: BTreeMap<VfsPath, Group<T>> = BTreeMap::new();
    let mut refused = Vec::new();
    for (place, (mut item, inner)) in items.into_iter().zip(inner).enumerate() {
        match inner {
            Ok(inner) => *path(&mut item) = inner,
            Err(error) => {
                refused.push((place, error));
                continue;
            }
        }
        let mount = table.route(&paths[place]);
        let group = groups.entry(mount.at().clone()).or_insert_with(|| Group {
            mount: Arc::clone(mount),
            places: Vec::new(),
            items: Vec::new(),
        });
        group.places.push(place);
        group.items.push(item);
    }
    (groups.into_values().collect(), refused)
}

/// The path of the file at `at` in its mount.
async fn inner_file(table: &MountTable, cx: &OpContext, at: &VfsPath) -> Result<VfsPath> {
    if table.holds(&table.real_path(cx, at, LinkAtEnd::Followed).await?) {
        return Err(Error::at(ErrorKind::IsADirectory, at));
    }
    table.route(at).rebase.to_inner(at)
}

fn unanswered() -> Error {
    Error::new(ErrorKind::Internal, "the backend gave no answer for this file")
}

impl CompositeBackend {
    pub(crate) async fn upload_grouped(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let (groups, refused) = grouped(self, cx, files, |file| &mut file.path).await;
        let failed = |place: usize, error| FileUploadResponse::failed(VfsPath::clone(&paths[place]), error);
        let mut answers: Vec<_> = (0..paths.len()).map(|place| failed(place, unanswered())).collect();
        for (place, error) in refused {
            answers[place] = failed(place, error);
        }
        let uploads = groups.into_iter().map(|Group { mount, places, items }| async move {
            let uploaded = mount.backend.upload_files(cx, items).await;
            let moved = uploaded.into_iter().map(move |answer| answer.map_paths(&mount.rebase));
            places.into_iter().zip(moved).collect::<Vec<_>>()
        });
        for (place, answer) in join_all(uploads).await.into_iter().flatten() {
            answers[place] = answer.unwrap_or_else(|error| failed(place, error));
        }
        answers
    }

    pub(crate) async fn download_grouped(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let asked = paths.clone();
        let (groups, refused) = grouped(self, cx, paths, |path| path).await;
        let failed = |place: usize, error| FileDownloadResponse::failed(VfsPath::clone(&asked[place]), error);
        let mut answers: Vec<_> = (0..asked.len()).map(|place| failed(place, unanswered())).collect();
        for (place, error) in refused {
            answers[place] = failed(place, error);
        }
        let downloads = groups.into_iter().map(|Group { mount, places, items }| async move {
            let downloaded = mount.backend.download_files(cx, items).await;
            let moved = downloaded.into_iter().map(move |answer| answer.map_paths(&mount.rebase));
            places.into_iter().zip(moved).collect::<Vec<_>>()
        });
        for (place, answer) in join_all(downloads).await.into_iter().flatten() {
            answers[place] = answer.unwrap_or_else(|error| failed(place, error));
        }
        answers
    }

    fn executor(&self) -> Result<Arc<Mount>> {
        self.table().executor().cloned().ok_or_else(no_executor)
    }

    /// The mount that runs commands, and its directory that one with the directory `cwd` runs in. The root is the mount's.
    fn executor_at(&self, cwd: &VfsPath) -> Result<(Arc<Mount>, VfsPath)> {
        let table = self.table();
        let mount = table.executor().ok_or_else(no_executor)?;
        if cwd.is_root() {
            return Ok((Arc::clone(mount), VfsPath::root()));
        }
        // A directory of another mount may lie below this one's, where commands would see what that hides.
        if !Arc::ptr_eq(table.route(cwd), mount) {
            let message = format!("commands run in '{}' only; name a directory of that mount", mount.at());
            return Err(Error::new(ErrorKind::CrossBackend, message).with_path(cwd));
        }
        Ok((Arc::clone(mount), mount.rebase.to_inner(cwd)?))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for CompositeBackend {
    async fn execute(&self, cx: &OpContext, mut req: ExecuteRequest) -> Result<ExecuteResponse> {
        let (mount, cwd) = self.executor_at(&req.cwd)?;
        req.cwd = cwd;
        let ended = req.send(&*mount.backend, cx).await.map_err(|error| mount.rebase.error(error))?;
        ended.map_paths(&mount.rebase)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<Job>> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.rebase.error(error))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.rebase.error(error))
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        let mount = self.executor()?;
        req.send(&*mount.backend, cx).await.map_err(|error| mount.rebase.error(error))
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
            let rebase = mount.rebase.clone();
            let events = shell.execute_stream(cx, req);
            Ok(events
                .map(move |event| match event {
                    Ok(event) => event.map_paths(&rebase),
                    Err(error) => Err(rebase.error(error)),
                })
                .boxed())
        };
        begin().unwrap_or_else(|error: Error| error.or_path(&VfsPath::root()).into_stream())
    }
}

#[async_trait]
impl MultiModalReader for CompositeBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent> {
        let table = self.table();
        table.real_path(cx, &req.read.path, LinkAtEnd::Followed).await?;
        let mount = table.route(&req.read.path);
        if table.holds(&req.read.path) || mount.backend.as_multi_modal().is_none() {
            return vfs_core::read_multi_modal(self, cx, req).await;
        }
        mount.send(cx, req).await
    }
}

#[async_trait]
impl TreeProvider for CompositeBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        self.whole_tree(cx, req).await
    }
}

/// The feeds of all mounts at or below a path, as one.
///
/// The events of one mount come in its order, those of different mounts as they arrive. A cursor is the last cursor of
/// each mount, as a JSON object by mount point. If the mount that the path belongs to has no feed, the only item is
/// `unsupported`; mounts below the path that have none are left out, after one [`Change::Overflow`].
impl Watch for CompositeBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let mut cursors: BTreeMap<VfsPath, Cursor> = match req.since.as_ref().map(parse_cursor).transpose() {
            Ok(cursors) => cursors.unwrap_or_default(),
            Err(error) => return error.with_path(&req.path).into_stream(),
        };
        let is_resumed = req.since.is_some();
        let table = self.table();
        let holder = table.route(&req.path);
        if holder.backend.as_watch().is_none() {
            let message =
                format!("the mount at '{}' has no change feed; watch another mount, or list again", holder.at());
            return Error::new(ErrorKind::Unsupported, message).with_path(&req.path).into_stream();
        }
        let (checked, cx_of_check, watched) = (Arc::clone(&table), cx.clone(), req.path.clone());
        let check = async move { checked.real_path(&cx_of_check, &watched, LinkAtEnd::Followed).await };
        let refusal = stream::once(check).filter_map(|real| ready(real.err().map(Err)));
        // No event comes from this one: it ends when the context does, with an error at the path of the request.
        let end = ChangeLog::new().subscribe(cx.clone(), WatchRequest::new(req.path.clone()));
        let end = end.filter_map(|event| ready(event.err().map(Err)));
        let mounts: Vec<_> = [table.route(&req.path)].into_iter().chain(table.below(&req.path)).cloned().collect();
        let mut feeds = SelectAll::new();
        let mut missed = Vec::new();
        for mount in mounts {
            match mount.feed(&cx, &req.path, cursors.get(mount.at()).cloned()) {
                Some(feed) => {
                    // A mount that the cursor does not know was not watched then.
                    if is_resumed && !cursors.contains_key(mount.at()) {
                        missed.push(mount.at().clone());
                    }
                    feeds.push(feed);
                }
                None => missed.push(mount.at().clone()),
            }
        }
        // What cannot be watched is said as lost events are: list again to see it.
        let overflow = (!missed.is_empty()).then(|| Ok(WatchEvent::new(spell_cursor(&cursors), Change::Overflow)));
        let events = feeds.filter_map(move |(at, event)| {
            let event = event.map(|WatchEvent { cursor, change, .. }| {
                let change = visible_change(change, &table, &at);
                cursors.insert(at.clone(), cursor);
                change.map(|change| WatchEvent::new(spell_cursor(&cursors), change))
            });
            ready(event.transpose())
        });
        // The feeds are subscribed to before the check, so that nothing is missed meanwhile.
        let events = refusal.chain(stream::iter(overflow)).chain(stream::select(events, end));
        // Each mount says why it ends; the first of them ends the whole, and lets go of the others at once.
        let until_error = stream::unfold(Some(events.boxed()), |events| async move {
            let mut events = events?;
            let event = events.next().await?;
            let rest = event.is_ok().then_some(events);
            Some((event, rest))
        });
        until_error.fuse().boxed()
    }
}

/// Returns `change` of the mount at `at` as far as other mounts do not shadow it; `None` if they shadow all of it.
fn visible_change(change: Change, table: &MountTable, at: &VfsPath) -> Option<Change> {
    let is_visible = |path: &VfsPath| table.route(path).at() == at;
    match change {
        Change::Created { ref path, .. } | Change::Changed { ref path, .. } | Change::Removed { ref path } => {
            is_visible(path).then_some(change)
        }
        // Mounts below do not move with the directory, so that part of what it holds appears, and part disappears.
        Change::Renamed { ref from, ref to, .. } if table.holds_below(from) || table.holds_below(to) => {
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

fn parse_cursor(cursor: &Cursor) -> Result<BTreeMap<VfsPath, Cursor>> {
    serde_json::from_str(cursor.as_str())
        .map_err(|_| Error::invalid_argument("this cursor is not one of a namespace; use that of the last event"))
}

fn spell_cursor(cursors: &BTreeMap<VfsPath, Cursor>) -> Cursor {
    // A map of strings is always spelled.
    Cursor::new(serde_json::to_string(cursors).unwrap_or_default())
}

type MountFeed = BoxStream<'static, (VfsPath, Result<WatchEvent>)>;

impl Mount {
    /// The changes of this mount that concern `path`, in the caller's namespace; `None` where it has no feed.
    fn feed(&self, cx: &OpContext, path: &VfsPath, since: Option<Cursor>) -> Option<MountFeed> {
        let watch = self.backend.as_watch()?;
        let inner = self.rebase.to_inner(path).unwrap_or_default();
        let mut request = WatchRequest::new(inner);
        request.since = since;
        let (at, rebase) = (self.at().clone(), self.rebase.clone());
        let events = watch.watch(cx.clone(), request).map(move |event| {
            let event = event.map_err(|error| rebase.error(error)).and_then(|event| event.map_paths(&rebase));
            (at.clone(), event)
        });
        Some(events.boxed())
    }
}
