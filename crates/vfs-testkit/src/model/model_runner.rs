//! Runner of random steps on a backend and the reference.

use std::fmt::Debug;

use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileInfo, GlobRequest, GrepRequest, LsRequest, OpContext,
    ReadRequest, RenameRequest, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};

use super::model_step::{ExistingTargetMode, ModelStep};
use super::reference_model::{EmptyDirectories, PermittedErrors, ReferenceModel, edit};
use crate::law_runner::run;
use crate::target::Target;

/// Runs `steps` on `target` and on the reference, and compares each result, and at the end all files.
///
/// # Panics
///
/// Panics if the two differ; and in a tokio runtime.
pub fn check(target: &Target, steps: &[ModelStep]) {
    run(async {
        let capabilities = target.backend.capabilities(&target.base);
        let empty = if capabilities.empty_directories { EmptyDirectories::Stay } else { EmptyDirectories::Go };
        let below = |path: &VfsPath| path.strip_prefix(&target.base).map(|name| format!("/{name}"));
        let fixed: Vec<_> = target.mounts.iter().filter_map(below).collect();
        let mut runner = ModelRunner { target, reference: ReferenceModel::new(empty, &fixed), cx: OpContext::new() };
        for (number, step) in steps.iter().enumerate() {
            runner.take(step, &format!("step {number}, {step:?}")).await;
        }
        runner.compare_all().await;
    });
}

/// A target and the reference model, to which the same steps are applied.
struct ModelRunner<'a> {
    target: &'a Target,
    reference: ReferenceModel,
    cx: OpContext,
}

/// Compares the result of a step with the expected one. `seen` extracts the compared part of the result.
fn compare<T: Debug, E: PartialEq + Debug>(
    what: &str,
    actual: Result<T>,
    expected: Result<E, PermittedErrors>,
    seen: impl FnOnce(T) -> E,
) {
    match (actual, expected) {
        (Ok(actual), Ok(expected)) => assert_eq!(seen(actual), expected, "{what}"),
        (Err(error), Err(faults)) => assert!(faults.contains(&error.kind()), "{what}: {error:?}, not {faults:?}"),
        (actual, expected) => panic!("{what}: {actual:?}, but the reference has {expected:?}"),
    }
}

impl ModelRunner<'_> {
    fn path(&self, path: &str) -> VfsPath {
        self.target.path(path)
    }

    fn names(&self, entries: &[FileInfo]) -> Vec<String> {
        let below = |entry: &FileInfo| entry.path.strip_prefix(&self.target.base).map(|name| format!("/{name}"));
        entries.iter().map(|entry| below(entry).expect("entries are below the base")).collect()
    }

    async fn take(&mut self, step: &ModelStep, what: &str) {
        match step {
            ModelStep::Write { path, content, mode } => self.write(what, path, content, *mode).await,
            ModelStep::Edit { path, old, new, all } => self.edit(what, path, old, new, *all).await,
            ModelStep::Read { path, offset, limit } => self.read(what, path, *offset, *limit).await,
            ModelStep::Delete { path, recursive } => {
                let mut request = DeleteRequest::new(self.path(path));
                request.recursive = *recursive;
                let actual = self.target.backend.delete(&self.cx, request).await;
                compare(what, actual, self.reference.delete(path, *recursive), |result| result.files);
            }
            ModelStep::DeleteEmpty { path } => {
                let request = DeleteRequest::new(self.path(path)).only_empty();
                let actual = self.target.backend.delete(&self.cx, request).await;
                compare(what, actual, self.reference.delete_empty(path), |result| result.files);
            }
            ModelStep::Rename { from, to, mode } => {
                let (overwrite, request) = (overwrites(*mode), RenameRequest::new(self.path(from), self.path(to)));
                let request = if overwrite { request.overwrite() } else { request };
                let actual = self.target.backend.rename(&self.cx, request).await;
                compare(what, actual, self.reference.rename(from, to, overwrite), drop);
            }
            ModelStep::Copy { from, to, mode } => {
                let (overwrite, request) = (overwrites(*mode), CopyRequest::new(self.path(from), self.path(to)));
                let request = if overwrite { request.overwrite() } else { request };
                let actual = self.target.backend.copy(&self.cx, request).await;
                compare(what, actual, self.reference.copy(from, to, overwrite), |result| result.files);
            }
            ModelStep::Ls { path, recursive } => {
                let mut request = LsRequest::new(self.path(path));
                request.recursive = *recursive;
                let actual = self.target.backend.ls(&self.cx, request).await;
                compare(what, actual, self.reference.ls(path, *recursive), |result| self.names(&result.entries));
            }
            ModelStep::Glob { name } => self.glob(what, name).await,
            ModelStep::Grep { literal } => self.grep(what, literal).await,
        }
    }

    async fn version(&self, path: &str) -> Option<Version> {
        self.target.backend.stat(&self.cx, StatRequest::new(self.path(path))).await.ok().and_then(|info| info.version)
    }

    async fn write(&mut self, what: &str, path: &str, content: &str, mode: ExistingTargetMode) {
        let there = self.reference.files.get(path).cloned();
        let current = self.version(path).await;
        assert_eq!(current.is_some(), there.is_some(), "{what}: a file has a version");
        let stale = Version::new("a version that never was");
        let (write_mode, refused) = match (mode, &there) {
            (ExistingTargetMode::CreateNew, Some(_)) => (WriteMode::CreateNew, Some(ErrorKind::AlreadyExists)),
            (ExistingTargetMode::CreateNew, None) => (WriteMode::CreateNew, None),
            (ExistingTargetMode::Overwrite, _) => (WriteMode::Overwrite, None),
            (ExistingTargetMode::Append, _) => (WriteMode::Append, None),
            (ExistingTargetMode::IfCurrent, Some(_)) => {
                (WriteMode::IfVersion(current.unwrap_or_else(|| stale.clone())), None)
            }
            (ExistingTargetMode::IfCurrent, None) | (ExistingTargetMode::IfStale, _) => {
                (WriteMode::IfVersion(stale.clone()), Some(ErrorKind::Conflict))
            }
        };
        let mut faults = self.reference.not_writable(path);
        faults.extend(refused);
        let expected = if faults.is_empty() {
            let mut bytes =
                if mode == ExistingTargetMode::Append { there.clone().unwrap_or_default() } else { Vec::new() };
            bytes.extend_from_slice(content.as_bytes());
            let size = bytes.len() as u64;
            self.reference.put(path, bytes);
            Ok((there.is_none(), size))
        } else {
            Err(faults)
        };
        let request = WriteRequest::new(self.path(path), content.to_owned()).mode(write_mode);
        let actual = self.target.backend.write(&self.cx, request).await;
        compare(what, actual, expected, |result| (result.created, result.size));
    }

    async fn edit(&mut self, what: &str, path: &str, old: &str, new: &str, all: bool) {
        let expected = match self.reference.file(path).cloned() {
            Ok(content) => edit(&String::from_utf8_lossy(&content), old, new, all),
            Err(mut faults) => {
                faults.extend((old == new).then_some(ErrorKind::InvalidArgument));
                Err(faults)
            }
        };
        if let Ok((content, _)) = &expected {
            self.reference.put(path, content.clone().into_bytes());
        }
        let request = EditRequest::new(self.path(path), old, new);
        let request = if all { request.replace_all() } else { request };
        let actual = self.target.backend.edit(&self.cx, request).await;
        compare(what, actual, expected.map(|(_, count)| count), |result| result.occurrences);
    }

    async fn read(&mut self, what: &str, path: &str, offset: u64, limit: u64) {
        let actual = self.target.backend.read(&self.cx, ReadRequest::new(self.path(path)).lines(offset, limit)).await;
        let expected = self.reference.file(path).and_then(|content| {
            let text = String::from_utf8_lossy(content);
            let lines: Vec<_> = text.split_inclusive('\n').collect();
            let skip = usize::try_from(offset).expect("steps have small numbers");
            if skip > 0 && skip >= lines.len() {
                return Err(vec![ErrorKind::InvalidArgument]);
            }
            let take = usize::try_from(limit).expect("steps have small numbers").min(lines.len() - skip);
            Ok(lines[skip..skip + take].concat())
        });
        compare(what, actual, expected, |result| String::from_utf8_lossy(result.content.as_bytes()).into_owned());
    }

    async fn glob(&mut self, what: &str, name: &str) {
        let request = GlobRequest::new(name).path(self.target.base.clone());
        let actual = self.target.backend.glob(&self.cx, request).await.map_err(|error| panic!("{what}: {error:?}"));
        let matches = |file: &str| match name {
            "*" => true,
            "?" => file.chars().count() == 1,
            "a*" => file.starts_with('a'),
            "[ab]" => file == "a" || file == "b",
            literal => file == literal,
        };
        let last = |path: &str| path.rsplit('/').next().expect("a path has a name").to_owned();
        let expected = self.reference.files.keys().filter(|path| matches(&last(path))).cloned().collect();
        compare(what, actual, Ok::<Vec<_>, _>(expected), |result| self.names(&result.entries));
    }

    async fn grep(&mut self, what: &str, literal: &str) {
        let request = GrepRequest::literal(literal).path(self.target.base.clone());
        let actual = self.target.backend.grep(&self.cx, request).await;
        let mut expected = Vec::new();
        for (path, content) in &self.reference.files {
            let text = String::from_utf8_lossy(content);
            let lines = text.split_inclusive('\n').zip(1_u64..).filter(|(line, _)| line.contains(literal));
            expected.extend(lines.map(|(line, number)| (self.path(path), number, shown(line).to_owned())));
        }
        compare(what, actual, Ok(expected), |result| {
            result.matches.into_iter().map(|hit| (hit.path, hit.line, hit.text.to_string())).collect::<Vec<_>>()
        });
    }

    async fn compare_all(&self) {
        let listing = self.target.backend.ls(&self.cx, LsRequest::new(self.target.base.clone()).recursive()).await;
        // A base that exists only through its files no longer exists without files.
        let names = listing.map(|listing| self.names(&listing.entries)).unwrap_or_default();
        assert_eq!(names, self.reference.tree(), "everything, at the end");
        let paths: Vec<_> = self.reference.files.keys().map(|path| self.path(path)).collect();
        let answers = self.target.backend.download_files(&self.cx, paths).await;
        for (answer, (path, content)) in answers.iter().zip(&self.reference.files) {
            assert_eq!(answer.content.as_deref(), Some(content.as_slice()), "{path}, at the end");
        }
    }
}

fn overwrites(mode: ExistingTargetMode) -> bool {
    matches!(mode, ExistingTargetMode::Overwrite | ExistingTargetMode::Append)
}

/// Returns a line without its ending.
fn shown(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
