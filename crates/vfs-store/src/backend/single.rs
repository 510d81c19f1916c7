//! Changes of several values, or with conditions on several, in a store that changes one at a time.
//!
//! Each step is atomic, all of them together are not: others can see a rename half done. What fails on the way is taken back,
//! as long as the process lives. Two that make `/a` and `/a/b` at the same moment may both be refused, and both be there only
//! where one of them ends between its steps.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Utc;
use futures::stream::{self, StreamExt as _};
use vfs_core::{Error, Result, VfsPath};

use super::space::{Space, contended};
use super::transfer::{Move, Plan};
use super::waiting::make_way;
use super::write::created_at;
use crate::store::{Expected, NewValue, Outcome, Store, Stored, Value, WriteId};

/// What becomes of the source of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Goes,
    Stays,
}

/// Whether something can be at `path`: no part of it is a file, and nothing is below it.
async fn has_room<S: Store>(space: &Space<S>, path: &VfsPath) -> Result<bool> {
    let (has_below, is_below_file) = futures::join!(space.has_below(path), space.is_below_file(path));
    Ok(!has_below? && !is_below_file?)
}

/// Puts a file where nothing is, and takes it back where it has no room.
pub(super) async fn put_new<S: Store>(space: &Space<S>, path: &VfsPath, value: NewValue) -> Result<Outcome> {
    if !has_room(space, path).await? {
        return Ok(Outcome::Refused(None));
    }
    let stored = match space.put(path, value, &Expected::Nothing).await? {
        Outcome::Done(stored) => stored,
        refused => return Ok(refused),
    };
    // Somebody may have looked before this was here and write now: whoever looks second sees the other.
    let unhurried = space.with_context(space.cx.unhurried());
    match has_room(&unhurried, path).await {
        Ok(true) => Ok(Outcome::Done(stored)),
        outcome => {
            let _taken_back = unhurried.delete(path, &Expected::Version(stored.version)).await?;
            outcome.map(|_| Outcome::Refused(None))
        }
    }
}

/// A file that was put at the target, and what it was before.
struct Made {
    way: Move,
    /// What the source was when it was copied.
    source: Stored,
    target: Stored,
    is_source_gone: bool,
}

/// Copies each file to its new place, then removes the sources as they were copied. What fails is taken back.
pub(super) async fn transfer<S: Store>(space: &Space<S>, plan: &Plan, source: Source) -> Result<Vec<Stored>> {
    let replaced = match &plan.replaced {
        Some(stored) => space.whole(&plan.to, stored.size.max(space.inner.max_file_size())).await?,
        None => None,
    };
    let mut made = Vec::with_capacity(plan.moves.len());
    match make(space, plan, source, replaced.as_ref(), &mut made).await {
        Ok(()) => Ok(made.into_iter().map(|made| made.target).collect()),
        Err(error) => {
            let unhurried = space.with_context(space.cx.unhurried());
            match take_back(&unhurried, made, replaced).await {
                Ok(()) => Err(error),
                Err(second) => Err(Error::new(
                    error.kind(),
                    format!(
                        "{}; and what was done before could not all be taken back: look at source and target",
                        error.message()
                    ),
                )
                .with_path_text(error.path().unwrap_or(plan.to.as_str()))
                .with_source(second)),
            }
        }
    }
}

async fn make<S: Store>(
    space: &Space<S>,
    plan: &Plan,
    source: Source,
    replaced: Option<&Value>,
    made: &mut Vec<Made>,
) -> Result<()> {
    let expected = match replaced {
        Some(value) => Expected::Version(value.stored.version.clone()),
        None => Expected::Nothing,
    };
    // Once one has failed no further is begun; those under way are waited for, so that all that was made is known.
    let has_failed = AtomicBool::new(false);
    let copy = async |way: &Move| {
        if has_failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let copied = copy_one(space, way, source, &expected).await;
        has_failed.fetch_or(copied.is_err(), Ordering::Relaxed);
        copied
    };
    let mut failure = None;
    let copies: Vec<_> = plan.moves.iter().map(copy).collect();
    for copied in stream::iter(copies).buffered(space.fetches()).collect::<Vec<_>>().await {
        match copied {
            Ok(copied) => made.extend(copied),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), Err)?;
    if made.is_empty() {
        return Err(contended(&plan.to));
    }
    let is_below_file = space.is_below_file(&plan.to).await?;
    let is_file = plan.moves.iter().any(|way| way.to == plan.to);
    let has_other = if is_file { space.has_below(&plan.to).await? } else { space.head(&plan.to).await?.is_some() };
    if is_below_file || has_other {
        return Err(contended(&plan.to));
    }
    if source == Source::Goes {
        for one in made.iter_mut() {
            remove_source(space, one).await?;
        }
        made.retain(|one| one.is_source_gone);
    }
    Ok(())
}

/// Copies one file; `None` where it is gone by now.
async fn copy_one<S: Store>(space: &Space<S>, way: &Move, source: Source, expected: &Expected) -> Result<Option<Made>> {
    let Some(value) = space.whole(&way.from, u64::MAX).await? else { return Ok(None) };
    let Value { stored, content, .. } = value;
    let copy = match source {
        Source::Goes => moved(content, &stored),
        Source::Stays => NewValue::new(content, Utc::now()),
    };
    match space.put(&way.to, copy, expected).await? {
        Outcome::Done(target) => Ok(Some(Made { way: way.clone(), source: stored, target, is_source_gone: false })),
        Outcome::Refused(Some(_)) if *expected == Expected::Nothing => Err(Error::already_exists(&way.to)),
        Outcome::Refused(_) => Err(contended(&way.to)),
    }
}

/// A value with all that is known of it.
fn moved(content: bytes::Bytes, stored: &Stored) -> NewValue {
    let modified_at = stored.modified_at;
    NewValue { content, created_at: created_at(stored), modified_at, id: WriteId::random() }
}

/// Removes a source as it was copied. What was written to it since is copied first.
async fn remove_source<S: Store>(space: &Space<S>, made: &mut Made) -> Result<()> {
    for attempt in 0..space.inner.config.edit_attempts {
        let Move { from, to } = &made.way;
        match space.delete(from, &Expected::Version(made.source.version.clone())).await? {
            Outcome::Done(_) => {
                made.is_source_gone = true;
                return Ok(());
            }
            Outcome::Refused(None) => {
                // Somebody removed it before it was moved.
                return match space.delete(to, &Expected::Version(made.target.version.clone())).await? {
                    Outcome::Done(_) | Outcome::Refused(None) => Ok(()),
                    Outcome::Refused(Some(_)) => Err(contended(to)),
                };
            }
            Outcome::Refused(Some(_)) => {
                let expected = Expected::Version(made.target.version.clone());
                if let Some(again) = copy_one(space, &made.way, Source::Goes, &expected).await? {
                    *made = again;
                }
            }
        }
        make_way(&space.cx, &made.way.from, attempt).await?;
    }
    Err(contended(&made.way.from))
}

/// Puts the sources back, then removes what was put at the target, unless somebody changed it since.
async fn take_back<S: Store>(space: &Space<S>, made: Vec<Made>, replaced: Option<Value>) -> Result<()> {
    let mut replaced = replaced;
    let mut failure = None;
    for Made { way, source, target, is_source_gone } in made {
        let back = async {
            if is_source_gone && let Some(value) = space.whole(&way.to, u64::MAX).await? {
                let _there_already = space.put(&way.from, moved(value.content, &source), &Expected::Nothing).await?;
            }
            let expected = Expected::Version(target.version);
            let _changed_since = match replaced.take() {
                Some(old) => space.put(&way.to, moved(old.content, &old.stored), &expected).await?,
                None => space.delete(&way.to, &expected).await?,
            };
            Ok(())
        };
        failure = failure.or(back.await.err());
    }
    failure.map_or(Ok(()), Err)
}
