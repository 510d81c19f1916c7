//! Permission checks of one operation: named paths, real paths, subtrees, approval.

use std::sync::Arc;

use tokio::time::timeout;
use vfs_core::is_link::is_link;
use vfs_core::operation::{Request, RequestRef};
use vfs_core::{
    Backend, Error, ErrorKind, LsRequest, OpContext, ResolveRequest, ResolveResult, Result, StatRequest, VfsPath,
};
use vfs_search::run_until_cancelled;

use crate::approval::Approval;
use crate::policy::{Decision, Permission, Policy, PolicyHook};
use crate::required_permissions::{PermissionScope, required_permissions};
use crate::rule::HardLinks;

/// Checks requests against a policy before they reach a backend.
#[derive(Debug, Clone)]
pub(crate) struct Enforcer {
    pub(crate) inner: Arc<dyn Backend>,
    policy: Policy,
}

/// Question for the approver; `None` if no approval is required.
type ApprovalPrompt = Option<String>;

const HARD_LINK_REASON: &str = "the file has other names too (hard links), under which it may be forbidden";

impl Enforcer {
    pub(crate) fn new(inner: Arc<dyn Backend>, policy: Policy) -> Self {
        Self { inner, policy }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.policy.name
    }

    pub(crate) fn hook(&self) -> &Arc<dyn PolicyHook> {
        &self.policy.hook
    }

    /// Returns `request`, or the request that an approver replaced it with, if it is allowed.
    pub(crate) async fn permit<Q: Request>(&self, cx: &OpContext, request: Q) -> Result<Q> {
        let action = request.as_request_ref();
        let decision = self.hook().check(cx, &action).await;
        if decision == Decision::Allow && self.is_plain_request(cx, action) {
            return Ok(request);
        }
        // Boxed: this future is far larger than the rest, and most requests do not get here.
        Box::pin(self.permit_after(decision, cx, request)).await
    }

    async fn permit_after<Q: Request>(&self, decision: Decision, cx: &OpContext, request: Q) -> Result<Q> {
        match self.check_with(decision, cx, &request).await? {
            None => Ok(request),
            // A namespace resolves a path before it sends an operation on it, and that operation has its own approval.
            Some(_) if matches!(request.as_request_ref(), RequestRef::Resolve(_)) => Ok(request),
            Some(prompt) => self.ask(cx, request, &prompt).await,
        }
    }

    /// Returns whether the named paths of a request are all that it touches: no path can be a link, and no subtree counts.
    fn is_plain_request(&self, cx: &OpContext, action: RequestRef<'_>) -> bool {
        let is_plain = || {
            required_permissions(&action).all(|need| need.scope == PermissionScope::Itself)
                && action.paths().all(|path| !self.inner.capabilities(path).links)
        };
        self.is_uniform(cx) || is_plain()
    }

    fn is_uniform(&self, cx: &OpContext) -> bool {
        let hook = self.hook();
        hook.hard_links() == HardLinks::Allow && !hook.differs_below(cx, &VfsPath::root())
    }

    /// Returns whether everything at and below `path` may be read.
    pub(crate) async fn reads_all(&self, cx: &OpContext, path: &VfsPath) -> bool {
        let hook = self.hook();
        hook.hard_links() == HardLinks::Allow
            && !hook.differs_below(cx, path)
            && hook.check_path(cx, Permission::Read, path).await == Decision::Allow
    }

    /// Returns whether all files may be read, written and deleted, so that a snapshot of all of them may be restored.
    pub(crate) async fn allows_everything(&self, cx: &OpContext) -> bool {
        let (hook, root) = (self.hook(), VfsPath::root());
        for permission in [Permission::Read, Permission::Write, Permission::Delete] {
            if hook.check_path(cx, permission, &root).await != Decision::Allow {
                return false;
            }
        }
        !hook.differs_below(cx, &root)
    }

    pub(crate) async fn check<Q: Request>(&self, cx: &OpContext, request: &Q) -> Result<ApprovalPrompt> {
        let decision = self.hook().check(cx, &request.as_request_ref()).await;
        self.check_with(decision, cx, request).await
    }

    /// Checks `request` in full; `decision` is the answer of the hook for its named paths.
    async fn check_with<Q: Request>(&self, decision: Decision, cx: &OpContext, request: &Q) -> Result<ApprovalPrompt> {
        let action = request.as_request_ref();
        let at = self.error_path(&decision, cx, &action, &action).await;
        let mut prompt = prompt_of(decision, &at)?;
        if self.is_uniform(cx) {
            return Ok(prompt);
        }
        let real = self.real_paths(cx, &action).await?;
        if real.iter().any(|(named, real)| *named != real.path) {
            let lookup =
                |path: &VfsPath| real.iter().find(|(named, _)| named == path).map(|(_, real)| real.path.clone());
            let moved = request.clone().map_paths(&mut |path| Ok(lookup(path).unwrap_or_else(|| path.clone())))?;
            let decision = self.hook().check(cx, &moved.as_request_ref()).await;
            let at = self.error_path(&decision, cx, &moved.as_request_ref(), &action).await;
            prompt = prompt.or(prompt_of(decision, &at)?);
        }
        Ok(prompt.or(self.check_subtree(cx, &action).await?))
    }

    /// Returns the path that an error about `action` names: if it is denied, the first denied path, as written in `named`, the
    /// same operation with the paths of the caller.
    async fn error_path(
        &self,
        decision: &Decision,
        cx: &OpContext,
        action: &RequestRef<'_>,
        named: &RequestRef<'_>,
    ) -> VfsPath {
        if matches!(decision, Decision::Deny { .. }) {
            for (need, named) in required_permissions(action).zip(required_permissions(named)) {
                let decision = self.hook().check_path(cx, need.permission, need.path).await;
                if matches!(decision, Decision::Deny { .. }) {
                    return named.path.clone();
                }
            }
        }
        named.primary_path()
    }

    /// Returns the real paths of `action`, as far as the backend can have links.
    async fn real_paths(&self, cx: &OpContext, action: &RequestRef<'_>) -> Result<Vec<(VfsPath, ResolveResult)>> {
        let mut real = Vec::new();
        for path in action.paths() {
            if !self.inner.capabilities(path).links {
                continue;
            }
            let resolved =
                if moves_links(action) { self.real_entry(cx, path).await } else { self.real(cx, path).await };
            let resolved = resolved?;
            let reads =
                required_permissions(action).any(|need| need.permission == Permission::Read && need.path == path);
            if reads {
                self.check_content(cx, action, path, &resolved).await?;
            }
            real.push((path.clone(), resolved));
        }
        Ok(real)
    }

    /// Refuses a file whose content may be forbidden under another name: the target of a link, or another hard link. The check
    /// includes links that are moved as such, since a moved link may make its target readable at the new place.
    async fn check_content(
        &self,
        cx: &OpContext,
        action: &RequestRef<'_>,
        path: &VfsPath,
        resolved: &ResolveResult,
    ) -> Result<()> {
        let content = match self.real(cx, path).await {
            Ok(content) => content,
            // A link that leads nowhere has no content.
            Err(_) => resolved.clone(),
        };
        if self.is_ambiguous(&content) {
            // If the name or its target is forbidden, the error must not reveal whether the file exists.
            for name in [path, &content.path] {
                prompt_of(self.hook().check_path(cx, Permission::Read, name).await, path)?;
            }
            return Err(denied(HARD_LINK_REASON, path));
        }
        if content.path == resolved.path && (content.path == *path || !describes(action)) {
            return Ok(());
        }
        let decision = self.hook().check_path(cx, Permission::Read, &content.path).await;
        let Err(refusal) = prompt_of(decision, path) else { return Ok(()) };
        // A directory may be described because it leads to readable entries.
        match self.inner.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if info.is_dir && describes(action) => Ok(()),
            _ => Err(refusal),
        }
    }

    /// Returns the real path of `path`.
    async fn real(&self, cx: &OpContext, path: &VfsPath) -> Result<ResolveResult> {
        self.inner.resolve(cx, ResolveRequest::new(path.clone())).await.map_err(|error| error.with_path(path))
    }

    /// Returns the real path of `path`, or `None` if it leads nowhere, which the operation itself reports.
    pub(crate) async fn real_or_none(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<VfsPath>> {
        match self.real(cx, path).await {
            Ok(real) => Ok(Some(real.path)),
            Err(error) if error.is_temporary() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Returns the real path of the entry itself: a link in the last component is not followed.
    async fn real_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<ResolveResult> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => {
                let parent = self.real(cx, &parent).await.map_err(|error| error.with_path(path))?;
                Ok(ResolveResult::at(parent.path.child(name)?))
            }
            _ => Ok(ResolveResult::at(path.clone())),
        }
    }

    fn is_ambiguous(&self, resolved: &ResolveResult) -> bool {
        resolved.names > 1 && self.hook().hard_links() == HardLinks::Deny
    }

    /// Checks every entry below a directory that is moved, copied or deleted.
    async fn check_subtree(&self, cx: &OpContext, action: &RequestRef<'_>) -> Result<ApprovalPrompt> {
        let (mut source, mut target) = (None, None);
        for need in required_permissions(action).filter(|need| need.scope == PermissionScope::Subtree) {
            match need.permission {
                Permission::Write => target = Some(need.path),
                _ => source = Some(need.path),
            }
        }
        let Some(source) = source else { return Ok(None) };
        // A link is moved or removed without the directory that it leads to.
        if moves_links(action) {
            match is_link(&*self.inner, cx, source).await {
                Ok(true) => return Ok(None),
                Err(error) if error.is_temporary() => return Err(error),
                // A path that cannot be resolved is checked as if it were a directory.
                Ok(false) | Err(_) => {}
            }
        }
        let has_links = self.inner.capabilities(source).links;
        let differs = |path: Option<&VfsPath>| path.is_some_and(|path| self.hook().differs_below(cx, path));
        let links_at_target = target.is_some_and(|target| self.inner.capabilities(target).links);
        if !has_links && !links_at_target && !differs(Some(source)) && !differs(target) {
            return Ok(None);
        }
        match self.inner.stat(cx, StatRequest::new(source.clone())).await {
            Ok(info) if info.is_dir => {}
            Ok(_) => return Ok(None),
            // The operation reports the same.
            Err(error) if error.is_absence() => return Ok(None),
            // A link that leads nowhere, or in a circle, is moved or removed as it is.
            Err(error) if matches!(error.kind(), ErrorKind::PathEscape | ErrorKind::InvalidPath) => return Ok(None),
            Err(error) => return Err(error),
        }
        let real_target = match target {
            Some(target) if links_at_target => self.real_or_none(cx, target).await?,
            _ => None,
        };
        let real_target = real_target.filter(|real| Some(real) != target);
        let listed = self.inner.ls(cx, LsRequest::new(source.clone()).recursive()).await?;
        if !listed.problems.is_empty() || listed.truncated.is_some() {
            return Err(denied("not all that is in it can be looked at, so it cannot be allowed", source));
        }
        let permissions: Vec<_> =
            required_permissions(action).filter(|need| need.path == source).map(|need| need.permission).collect();
        let mut prompt = None;
        for entry in listed.entries {
            let real = if has_links { Some(self.real(cx, &entry.path).await?) } else { None };
            if real.as_ref().is_some_and(|real| permissions.contains(&Permission::Read) && self.is_ambiguous(real)) {
                return Err(denied(HARD_LINK_REASON, source));
            }
            let real = real.map(|real| real.path).filter(|real| *real != entry.path);
            for path in [Some(&entry.path), real.as_ref()].into_iter().flatten() {
                for permission in &permissions {
                    let decision = self.hook().check_path(cx, *permission, path).await;
                    prompt = prompt.or(prompt_within(decision, source)?);
                }
            }
            for place in [target, real_target.as_ref()].into_iter().flatten() {
                let path = place.join(entry.path.strip_prefix(source).unwrap_or_default())?;
                let decision = self.hook().check_path(cx, Permission::Write, &path).await;
                prompt = prompt.or(prompt_within(decision, target.unwrap_or(source))?);
            }
        }
        Ok(prompt)
    }

    async fn ask<Q: Request>(&self, cx: &OpContext, request: Q, prompt: &str) -> Result<Q> {
        let at = request.as_request_ref().primary_path();
        let required = |message: String| Error::new(ErrorKind::ApprovalRequired, message).with_path(&at);
        let Some(approver) = &self.policy.approver else {
            return Err(required(format!("an approval is required: {prompt}")));
        };
        let call = request.clone().into_any();
        let answer =
            run_until_cancelled(cx, &at, timeout(self.policy.approval_timeout, approver.approve(cx, &call, prompt)));
        match answer.await? {
            Err(_) => Err(required(format!("no approver answered in time: {prompt}"))),
            Ok(Approval::Approve) => {
                // The policy or the files may have changed meanwhile: an operation that is denied by now stays denied.
                self.check(cx, &request).await?;
                Ok(request)
            }
            Ok(Approval::Deny { reason }) => Err(denied(&reason, &at)),
            Ok(Approval::Edit(call)) => {
                let edited = Q::from_any(*call).ok_or_else(|| {
                    Error::invalid_argument("it was edited into another operation; only its arguments can be")
                        .with_path(&at)
                })?;
                // The edit is the approval of the new request, which stays denied if the policy denies it.
                self.check(cx, &edited).await?;
                Ok(edited)
            }
        }
    }
}

/// Returns whether `action` moves or removes a link in the last component itself, and not its target.
fn moves_links(action: &RequestRef<'_>) -> bool {
    matches!(action, RequestRef::Delete(_) | RequestRef::Rename(_))
}

/// Returns whether `action` describes the entry at a path, and may describe an unreadable directory that leads to readable
/// entries.
fn describes(action: &RequestRef<'_>) -> bool {
    matches!(action, RequestRef::Stat(_) | RequestRef::Resolve(_) | RequestRef::Watch(_))
}

pub(crate) fn denied(reason: &str, path: &VfsPath) -> Error {
    Error::new(ErrorKind::PolicyDenied, format!("a policy forbids this: {reason}; do not try again")).with_path(path)
}

/// Returns the question of `decision` for the approver, if it has one, or the refusal as an error at `at`.
fn prompt_of(decision: Decision, at: &VfsPath) -> Result<ApprovalPrompt> {
    match decision {
        Decision::Allow => Ok(None),
        Decision::Ask { prompt } => Ok(Some(prompt)),
        Decision::Deny { reason } => Err(denied(&reason, at)),
    }
}

/// Returns the question about an entry below `at`, or the refusal, like [`prompt_of`] but without naming the entry.
fn prompt_within(decision: Decision, at: &VfsPath) -> Result<ApprovalPrompt> {
    match decision {
        Decision::Allow => Ok(None),
        Decision::Ask { .. } => Ok(Some(format!("allow this of all that is in {at}?"))),
        Decision::Deny { .. } => Err(denied("something in it may not be touched", at)),
    }
}
