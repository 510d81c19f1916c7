//! File writes: create, overwrite, append.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use uuid::Uuid;
use vfs_core::{Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest, WriteResult};

use crate::exec::Execute;
use crate::operations::stat::{facts, refuse_reserved, unreadable};
use crate::place::{Answer, Place, SCRIPT_ROOM};
use crate::script::facts::{Facts, spelled};
use crate::script::functions;
use crate::script::probe::Abilities;
use crate::script::reply::Reply;
use crate::script::{Script, Walk, printable, quoted};

/// Contents up to this size stand in the script itself, which saves a process.
const INLINE: usize = 32 << 10;

pub(crate) async fn write<E: Execute>(
    place: &Arc<Place<E>>,
    cx: &OpContext,
    request: WriteRequest,
) -> Result<WriteResult> {
    request.refuse_modified_at()?;
    let WriteRequest { path, content, mode, .. } = request;
    refuse_reserved(&path)?;
    let max = place.config.max_file_size;
    if content.len() as u64 > max {
        return Err(too_large(max).with_path(&path));
    }
    if path.is_root() {
        return Err(Error::at(ErrorKind::IsADirectory, &path));
    }
    let _turn = place.turns.of(cx, &path).await?;
    let (created, facts) = put(place, cx, &path, &content, &mode).await?;
    Ok(WriteResult::new(path, created, facts.version(), facts.size))
}

/// Puts `content` at `path`, and says whether it is new, and what is there now.
pub(crate) async fn put<E: Execute>(
    place: &Arc<Place<E>>,
    cx: &OpContext,
    path: &VfsPath,
    content: &Bytes,
    mode: &WriteMode,
) -> Result<(bool, Facts)> {
    let abilities = place.abilities().await?;
    let (walk, how) = match mode {
        WriteMode::CreateNew => (Walk::MakingEntry, "new".to_owned()),
        WriteMode::Overwrite => {
            let likely = place.recent.get(path).and_then(|seen| abilities.find_tests(&seen.version));
            (Walk::MakingFollowed, likely.map_or_else(|| "over".to_owned(), |tests| format!("over '' {tests}")))
        }
        WriteMode::Append => {
            (Walk::MakingFollowed, format!("add {}", place.config.max_file_size - content.len() as u64))
        }
        WriteMode::IfVersion(version) => {
            let tests = abilities.find_tests(version).unwrap_or_default();
            (Walk::Followed, format!("if {} {tests}", quoted(&spelled(version, abilities.flavour))))
        }
        _ => return Err(Error::new(ErrorKind::Unsupported, "this write mode is not known here").with_path(path)),
    };
    let upload = Upload::of(place, content);
    let answer = place
        .settle(cx, path, || async {
            let mut script = place.changing(cx, path, functions::PUT).await?;
            let arrives = place.deliver(cx, path, &mut script, &upload, content).await?;
            script.walk(walk, path).push(&arrives).push(&format!("put {how}"));
            Ok(script)
        })
        .await?;
    let reply = put_done(answer, path, mode)?;
    let created = reply.get(b'k').is_some_and(|told| told[..] == *b"1");
    let facts = facts(&reply, path)?;
    // Where others may have written to it since, it may be another content that has this version.
    let is_ours = reply.get(b'w').is_some() && facts.size == content.len() as u64;
    place.recent.keep(path, facts.version(), is_ours.then_some(&content[..]));
    Ok((created, facts))
}

fn put_done(answer: Answer, path: &VfsPath, mode: &WriteMode) -> Result<Reply> {
    match (answer.reply.failure(), mode) {
        (Some(b"conflict"), _) => Err(Error::conflict(path, Some(actual(&answer.reply, path)?))),
        (Some(b"gone" | b"missing"), WriteMode::IfVersion(_)) => Err(Error::conflict(path, None)),
        _ => answer.done(path),
    }
}

/// The version that a script found instead of the one that was expected.
pub(crate) fn actual(reply: &Reply, path: &VfsPath) -> Result<Version> {
    let found = reply.get(b'v').and_then(|field| Facts::parse(field, false));
    found.map(|(facts, _)| facts.version()).ok_or_else(|| unreadable(path))
}

pub(crate) fn too_large(max: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the file would be over the limit of {max} bytes"))
}

/// How a content goes into the place.
enum Upload {
    /// In the script, as a word for `printf`.
    Inline(String),
    /// All of it as standard input.
    Input,
    /// In parts of at most so many bytes of standard input.
    Inputs(usize),
    /// In parts, in scripts.
    Scripts,
}

impl Upload {
    fn of<E: Execute>(place: &Place<E>, content: &Bytes) -> Self {
        let transport = place.execute.transport();
        if content.len() <= INLINE {
            let word = printable(content);
            if word.len() + SCRIPT_ROOM <= transport.max_script_bytes {
                return Self::Inline(word);
            }
        }
        match usize::try_from(transport.max_stdin_bytes).unwrap_or(usize::MAX) {
            0 => Self::Scripts,
            most if content.len() <= most => Self::Input,
            most => Self::Inputs(most),
        }
    }
}

/// Where a content waits that comes in parts: in the root, as its own directory may not be there yet.
const WAITING: &str = r#"if [ -w "$r/" ]; then x=$r/$x; else x=${TMPDIR:-/tmp}/$x; fi"#;

/// Adds what `more` prints to a content that has `is` bytes then.
const MORE: &str = r#"fail() { rm -f "$x"; die "$1"; }
more >>"$x" || fail os
c=$(wc -c <"$x") && [ "$((c))" -eq "$is" ] || fail cut"#;

/// Takes over a content that waited.
const TAKE: &str = r#"u=.vfs-tmp-u-$ID
mv "$x" "./$u" || die os
h="#;

impl<E: Execute> Place<E> {
    /// A script that can change an entry, by these functions.
    pub(crate) async fn changing(&self, cx: &OpContext, path: &VfsPath, functions: &str) -> Result<Script> {
        // A held entry is looked at again fifty times a second.
        let attempts = self.config.lock_timeout.as_secs().max(1) * 50;
        self.script_with(cx, path, |abilities| abilities.changing(attempts, functions)).await
    }

    /// Lets `script` have `content`, in parts that go before it where they must. Returns what it does with it in the file's
    /// directory.
    async fn deliver(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        script: &mut Script,
        upload: &Upload,
        content: &Bytes,
    ) -> Result<String> {
        let waiting = match upload {
            Upload::Inline(word) => {
                script.push(&format!("body() {{ printf {word}; }}"));
                return Ok(String::new());
            }
            Upload::Input => {
                script.stdin(content.clone());
                return Ok(format!("upload {}", content.len()));
            }
            Upload::Inputs(most) => self.bring_by_input(cx, path, content, *most).await?,
            Upload::Scripts => self.bring_by_script(cx, path, content).await?,
        };
        script.push(&waiting).push("h=$x");
        Ok(TAKE.to_owned())
    }

    async fn bring_by_input(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        content: &Bytes,
        most: usize,
    ) -> Result<String> {
        let parts = (0..content.len()).step_by(most).map(|at| {
            let part = content.slice(at..content.len().min(at + most));
            ("cat".to_owned(), part.len(), part)
        });
        self.bring(cx, path, parts.collect()).await
    }

    /// Brings `content` into a file that waits in the place, by scripts alone. Returns what sets `x` to that file's path.
    pub(crate) async fn bring_by_script(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        content: &Bytes,
    ) -> Result<String> {
        let parts = self.script_parts(self.abilities().await?, content);
        self.bring(cx, path, parts).await
    }

    /// The commands that print the parts of `content`.
    fn script_parts(&self, abilities: &Abilities, content: &Bytes) -> Vec<(String, usize, Bytes)> {
        let room = self.execute.transport().max_script_bytes.saturating_sub(SCRIPT_ROOM).max(1024);
        // Three bytes are four letters; in octal one is four.
        let step = if abilities.base64 { room / 4 * 3 } else { room / 4 };
        let command = |part: &[u8]| {
            if abilities.base64 {
                format!("printf %s {} | base64 -d", quoted(&STANDARD.encode(part)))
            } else {
                format!("printf {}", printable(part))
            }
        };
        content.chunks(step).map(|part| (command(part), part.len(), Bytes::new())).collect()
    }

    /// Brings the parts of a content, each a command that prints it, its length and what the command reads.
    async fn bring(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        parts: Vec<(String, usize, Bytes)>,
    ) -> Result<String> {
        let waiting = format!("x=.vfs-tmp-u-{}\n{WAITING}", Uuid::new_v4().simple());
        let mut size = 0;
        for (command, length, stdin) in parts {
            size += length;
            let mut part = self.script(cx, path).await?;
            part.stdin(stdin).push(&waiting).push(&format!("is={size}\nmore() {{ {command}; }}")).push(MORE);
            let brought = self.change(cx, path, part).await.and_then(|answer| answer.done(path));
            if let Err(error) = brought {
                let mut remove = self.script(&OpContext::new(), path).await?;
                remove.push(&waiting).push("rm -f \"$x\"");
                // The first error is the one to tell.
                _ = self.change(&OpContext::new(), path, remove).await;
                return Err(error);
            }
        }
        Ok(waiting)
    }
}
