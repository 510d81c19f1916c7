//! Staged content: a file in the place that collects new content in parts until one script uses it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::runtime::Handle;
use uuid::Uuid;
use vfs_core::{OpContext, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::remote_place_client::{RemotePlaceClient, SCRIPT_ROOM};
use crate::script::place_features::PlaceFeatures;
use crate::script::{Script, printable, quoted};

/// Maximum size of one part, which is buffered in memory, in bytes.
const MAX_PART_BYTES: usize = 4 << 20;

/// Appends the output of `part` to the staged file. The script fails if the size before is not `before` or the size
/// after is not `after`, so that a part which was lost or sent twice is detected. After an error of
/// the system a part can be repeated if nothing of it was written; the first can always, as its file is removed.
const APPEND: &str = r#"fail() { rm -f "$staged"; die "$1"; }
if [ "$before" = 0 ]; then [ ! -e "$staged" ]; else has_size "$staged" "$before"; fi || fail cut
part >>"$staged" || { [ "$before" != 0 ] && has_size "$staged" "$before" && die os; fail os; }
has_size "$staged" "$after" || fail cut"#;

/// New content of a file, staged in the place. The staged file is removed in the background when this value and all
/// scripts that use the file are dropped, unless a script has [used it up](Self::set_used).
#[derive(Debug)]
pub(crate) struct RemoteStagedContent<E: RemoteExec> {
    file: Arc<StagedFile<E>>,
    size: u64,
}

/// The file in the place, which the first part creates.
struct StagedFile<E: RemoteExec> {
    place: Arc<RemotePlaceClient<E>>,
    path: VfsPath,
    id: Uuid,
    runtime: Option<Handle>,
    /// Whether the file may exist in the place.
    is_present: AtomicBool,
}

impl<E: RemoteExec> RemoteStagedContent<E> {
    /// Creates empty content, without a file in the place yet. Errors name `path`.
    pub(crate) fn new(place: &Arc<RemotePlaceClient<E>>, path: &VfsPath) -> Self {
        let file = StagedFile {
            place: Arc::clone(place),
            path: path.clone(),
            id: Uuid::new_v4(),
            runtime: Handle::try_current().ok(),
            is_present: AtomicBool::new(false),
        };
        Self { file: Arc::new(file), size: 0 }
    }

    /// Stages `content` in as many parts as it needs.
    pub(crate) async fn stage(
        place: &Arc<RemotePlaceClient<E>>,
        cx: &OpContext,
        path: &VfsPath,
        content: &Bytes,
        by: PartUploadMethod,
    ) -> Result<Self> {
        let mut staged = Self::new(place, path);
        for start in (0..content.len()).step_by(by.max_bytes) {
            let end = content.len().min(start + by.max_bytes);
            staged.append(cx, content.slice(start..end), by).await?;
        }
        Ok(staged)
    }

    /// Appends a part, which has at most the size that `by` transfers at once.
    pub(crate) async fn append(&mut self, cx: &OpContext, part: Bytes, by: PartUploadMethod) -> Result<()> {
        let StagedFile { place, path, .. } = &*self.file;
        let (before, after) = (self.size, self.size + part.len() as u64);
        let mut script = place.script_with(cx, path, PlaceFeatures::size_function).await?;
        let command = by.command(&part);
        if by.encoding == PartEncoding::Stdin {
            script.stdin(part);
        }
        self.provide(&mut script);
        script.push(&format!("before={before} after={after}\npart() {{ {command}; }}")).push(APPEND);
        self.file.is_present.store(true, Ordering::Relaxed);
        place.change(cx, path, script).await?.done(path)?;
        self.size = after;
        Ok(())
    }

    /// Sets `staged` to the path of the staged file in `script`, and retains the file until the script has ended.
    pub(crate) fn provide(&self, script: &mut Script) {
        script.push(&self.file.location());
        script.keep_alive = Some(Arc::clone(&self.file) as _);
    }

    /// Returns another handle to the same staged file.
    pub(crate) fn share(&self) -> Self {
        Self { file: Arc::clone(&self.file), size: self.size }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Records that a script has moved or removed the staged file, so that no other script has to.
    pub(crate) fn set_used(&self) {
        self.file.is_present.store(false, Ordering::Relaxed);
    }
}

impl<E: RemoteExec> StagedFile<E> {
    /// Returns the lines that set `staged`: a path in the root, as the directory of the new file need not exist yet.
    fn location(&self) -> String {
        format!(
            "staged=.vfs-tmp-u-{}\nif [ -w \"$r/\" ]; then staged=$r/$staged; else staged=${{TMPDIR:-/tmp}}/$staged; fi",
            self.id.simple()
        )
    }
}

impl<E: RemoteExec> Drop for StagedFile<E> {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take().filter(|_| *self.is_present.get_mut()) else { return };
        let (place, path, location) = (Arc::clone(&self.place), self.path.clone(), self.location());
        runtime.spawn(async move {
            let cx = OpContext::new();
            let Ok(mut script) = place.script(&cx, &path).await else { return };
            script.push(&location).push("rm -f \"$staged\"");
            // If this fails, a later connection removes the file with other leftovers.
            _ = place.query(&cx, &path, script).await;
        });
    }
}

impl<E: RemoteExec> fmt::Debug for StagedFile<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}

/// The way in which parts of content are transferred into the place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartUploadMethod {
    encoding: PartEncoding,
    /// Maximum size of a part in bytes.
    pub(crate) max_bytes: usize,
}

/// The form in which a script receives a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartEncoding {
    /// On standard input.
    Stdin,
    /// In the script, as base64.
    Base64,
    /// In the script, as an argument of `printf`.
    Printf,
}

impl PartUploadMethod {
    /// Returns the transfer that needs the fewest scripts.
    pub(crate) async fn of<E: RemoteExec>(place: &RemotePlaceClient<E>) -> Result<Self> {
        match usize::try_from(place.execute.transport().max_stdin_bytes).unwrap_or(usize::MAX) {
            0 => Self::by_script(place).await,
            max => Ok(Self { encoding: PartEncoding::Stdin, max_bytes: max.min(MAX_PART_BYTES) }),
        }
    }

    /// Returns the transfer within scripts, which leaves standard input free.
    pub(crate) async fn by_script<E: RemoteExec>(place: &RemotePlaceClient<E>) -> Result<Self> {
        let room = place.execute.transport().max_script_bytes.saturating_sub(SCRIPT_ROOM).max(1024);
        // Base64 encodes three bytes as four characters, and `printf` needs four characters for one byte in octal.
        let (encoding, max_bytes) = match place.features().await?.base64 {
            true => (PartEncoding::Base64, room / 4 * 3),
            false => (PartEncoding::Printf, room / 4),
        };
        Ok(Self { encoding, max_bytes: max_bytes.min(MAX_PART_BYTES) })
    }

    /// Returns the command that prints `part`.
    fn command(self, part: &[u8]) -> String {
        match self.encoding {
            PartEncoding::Stdin => "cat".to_owned(),
            PartEncoding::Base64 => format!("printf %s {} | base64 -d", quoted(&STANDARD.encode(part))),
            PartEncoding::Printf => format!("printf {}", printable(part)),
        }
    }
}
