//! Contents that are staged in parts before the change that puts them.

use bytes::Bytes;
use vfs_core::{ErrorKind, Result};
use vfs_store::{
    BatchOutcome, Condition, Key, ListRequest, NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, StagedContent,
    Staging, StagingToken, TimestampSource, ValueContent, Write,
};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{all_done, at, delete, done, home, key, moment, namespace, noise, path};
use crate::target::{STAGED_BYTES, VersionScheme};

store_laws! { "staging":
    "SG1" Staging the_staged_parts_are_the_value,
    "SG2" Staging a_staged_value_replaces_another_and_is_replaced,
    "SG3" Staging nothing_is_there_before_the_put_or_after_discarding,
    "SG4" Staging a_put_that_is_refused_leaves_the_content_staged,
    "SG5" Staging content_that_is_not_staged_is_refused,
    "SG6" BatchAndStaging a_batch_puts_a_staged_value_as_any_other,
}

fn content(seed: u64) -> Bytes {
    noise(STAGED_BYTES, seed)
}

impl StoreTarget {
    fn staging(&self) -> &dyn Staging {
        self.store.as_staging().expect("the law needs it")
    }

    async fn stage(&self, at: &Key, content: &Bytes) -> Result<StagedContent> {
        let token = self.staging().begin(at, moment(0), moment(10)).await?;
        for offset in (0..content.len()).step_by(STAGED_PART_BYTES) {
            let part = content.slice(offset..content.len().min(offset + STAGED_PART_BYTES));
            self.staging().append(&token, offset as u64, part).await?;
        }
        let version = ValueContent::Bytes(content.clone()).version();
        Ok(StagedContent { token, size: content.len() as u64, version })
    }

    async fn put_staged(&self, at: &Key, staged: &StagedContent, expected: &Precondition) -> Result<PutOutcome> {
        self.store.put(at, staged_value(staged), expected).await
    }
}

fn staged_value(staged: &StagedContent) -> NewValue {
    let mut value = NewValue::staged(staged.clone(), moment(10));
    value.created_at = moment(0);
    value
}

async fn the_staged_parts_are_the_value(t: &StoreTarget) -> LawResult {
    let content = content(1);
    let staged = t.stage(&key("/d/a"), &content).await?;
    let stored = done(t.put_staged(&key("/d/a"), &staged, &Precondition::Absent).await?);
    assert_eq!(stored.size, content.len() as u64);
    assert!(t.content("/d/a").await?.as_ref() == Some(&content), "the bytes are those of the parts");
    let border = STAGED_PART_BYTES as u64 - 5;
    let part = t.store.get(&key("/d/a"), Some(border..border + 10)).await?.expect("it is there");
    assert_eq!(part.content, content.slice(border as usize..border as usize + 10));
    t.assert_same(&part.stored, &stored, "of a part");
    t.assert_same(&t.head("/d/a").await?.expect("it is there"), &stored, "of the head");
    let page = t.store.list(&home(), &ListRequest::all(path("/"))).await?;
    t.assert_same(&page.entries[0].stored, &stored, "of a listing");
    // Object storage computes another version for a content that was sent in parts.
    if t.store.capabilities().timestamps == TimestampSource::Caller && t.versions == VersionScheme::OfContent {
        assert_eq!(t.put("/d/a", content).await?.version, stored.version);
    }
    Ok(())
}

async fn a_staged_value_replaces_another_and_is_replaced(t: &StoreTarget) -> LawResult {
    let first = t.put("/a", "first").await?;
    let (one, two) = (content(1), content(2));
    let staged = t.stage(&key("/a"), &one).await?;
    let second = done(t.put_staged(&key("/a"), &staged, &Precondition::Version(first.version.clone())).await?);
    assert_ne!(second.version, first.version);
    let staged = t.stage(&key("/a"), &two).await?;
    let third = done(t.put_staged(&key("/a"), &staged, &Precondition::Any).await?);
    assert_ne!(third.version, second.version);
    assert!(t.content("/a").await?.as_ref() == Some(&two), "the bytes are those that were put last");
    t.put("/a", "small").await?;
    assert_eq!(t.texts().await?, [("/a".to_owned(), "small".to_owned())]);
    done(t.store.delete(&key("/a"), &Precondition::Any).await?);
    assert!(t.texts().await?.is_empty());
    t.assert_sound().await
}

async fn nothing_is_there_before_the_put_or_after_discarding(t: &StoreTarget) -> LawResult {
    t.put("/b", "here").await?;
    let before = t.texts().await?;
    let staged = t.stage(&key("/a"), &content(1)).await?;
    assert_eq!(t.texts().await?, before);
    t.assert_sound().await?;
    t.staging().discard(&staged.token).await?;
    t.staging().discard(&staged.token).await?;
    assert_refused(t.put_staged(&key("/a"), &staged, &Precondition::Any).await);
    assert_refused(t.staging().append(&staged.token, STAGED_PART_BYTES as u64, Bytes::from_static(b"x")).await);
    assert_eq!(t.texts().await?, before);
    t.assert_sound().await
}

async fn a_put_that_is_refused_leaves_the_content_staged(t: &StoreTarget) -> LawResult {
    let first = t.put("/a", "first").await?;
    let content = content(1);
    let staged = t.stage(&key("/a"), &content).await?;
    let outcome = t.put_staged(&key("/a"), &staged, &Precondition::Absent).await?;
    let PutOutcome::PreconditionFailed(Some(found)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(found.version, first.version);
    done(t.put_staged(&key("/a"), &staged, &Precondition::Version(first.version)).await?);
    assert!(t.content("/a").await?.as_ref() == Some(&content), "the bytes are those of the parts");
    assert_refused(t.put_staged(&key("/a"), &staged, &Precondition::Any).await);
    assert!(t.content("/a").await?.as_ref() == Some(&content), "a content is put once");
    Ok(())
}

async fn content_that_is_not_staged_is_refused(t: &StoreTarget) -> LawResult {
    t.put("/a", "first").await?;
    let staged = t.stage(&key("/a"), &content(1)).await?;
    let elsewhere = Key::new(namespace("laws/elsewhere"), path("/a"));
    let longer = StagedContent { size: staged.size + 1, ..staged.clone() };
    let unknown = StagedContent { token: StagingToken::new("none"), ..staged.clone() };
    assert_refused(t.put_staged(&elsewhere, &staged, &Precondition::Any).await);
    assert_refused(t.put_staged(&key("/a"), &longer, &Precondition::Any).await);
    assert_refused(t.put_staged(&key("/a"), &unknown, &Precondition::Any).await);
    assert_eq!(t.store.get(&elsewhere, None).await?, None);
    assert_eq!(t.texts().await?, [("/a".to_owned(), "first".to_owned())]);
    done(t.put_staged(&key("/a"), &staged, &Precondition::Any).await?);
    Ok(())
}

async fn a_batch_puts_a_staged_value_as_any_other(t: &StoreTarget) -> LawResult {
    t.put("/old", "old").await?;
    let content = content(1);
    let staged = t.stage(&key("/a"), &content).await?;
    let writes = vec![Write::Put(path("/a"), staged_value(&staged)), delete("/old")];
    let conditions = [Condition::NothingBelow(path("/a")), at("/missing", Precondition::Absent)];
    let refused = t.batch(&[at("/old", Precondition::Absent)], writes.clone()).await?;
    assert!(matches!(refused, BatchOutcome::PreconditionFailed(..)), "{refused:?}");
    all_done(t.batch(&conditions, writes).await?);
    assert!(t.content("/a").await?.as_ref() == Some(&content), "the bytes are those of the parts");
    assert_eq!(t.head("/old").await?, None);
    let moved = vec![Write::Move { from: path("/a"), to: path("/b") }];
    all_done(t.batch(&[], moved).await?);
    assert!(t.content("/b").await?.as_ref() == Some(&content), "the bytes are those of the parts");
    t.assert_sound().await
}

impl StoreTarget {
    /// Asserts that the verification of the store itself finds no problems.
    async fn assert_sound(&self) -> LawResult {
        if let Some(inspect) = self.store.as_inspect() {
            let report = inspect.check().await?;
            assert!(report.problems.is_empty(), "{:?}", report.problems);
        }
        Ok(())
    }
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.map_err(|error| error.kind()).expect_err("it is refused"), ErrorKind::InvalidArgument);
}
