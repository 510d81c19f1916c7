//! The files of a store.

use std::time::Instant;

use chrono::{DateTime, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use vfs_core::{Backend, DeleteRequest, FileUploadRequest, OpContext, Result, VfsPath};
use vfs_store::{BatchOutcome, Key, Namespace, NewValue, Precondition, PutOutcome, Store, Write};

/// What one file holds and no other.
pub(crate) const NEEDLE: &str = "needle_in_a_haystack";

/// What every third file holds.
pub(crate) const PHRASE: &str = "the same phrase in every third file";

/// How many files are written at once.
pub(crate) const AT_ONCE: usize = 500;

/// Where file `number` is: ten in each directory, a thousand below each directory of the root.
pub(crate) fn path(number: usize) -> VfsPath {
    let text = format!("/d{}/s{}/f{number}.md", number / 1000, number / 10 % 100);
    VfsPath::parse(&text).expect("letters, digits and slashes are a path")
}

/// The file that holds the needle.
pub(crate) fn middle(files: usize) -> usize {
    files / 2
}

/// About 1.2 KB of text.
pub(crate) fn content(number: usize, files: usize) -> String {
    let mut text = String::new();
    for line in 0..20 {
        text += &format!("line {line} of file {number}: nothing of note is said here\n");
    }
    if number.is_multiple_of(3) {
        text += PHRASE;
        text.push('\n');
    }
    if number == middle(files) {
        text += NEEDLE;
        text.push('\n');
    }
    text
}

/// Fills `namespace` unless it is; how many files a second were written.
pub(crate) async fn fill(store: &dyn Store, namespace: &Namespace, files: usize) -> Result<Option<f64>> {
    let last = Key::new(namespace.clone(), path(files - 1));
    if store.head(&last).await?.is_some() {
        return Ok(None);
    }
    let (start_time, now) = (Instant::now(), Utc::now());
    for start in (0..files).step_by(AT_ONCE) {
        let numbers = start..files.min(start + AT_ONCE);
        match store.as_batch() {
            Some(batch) => {
                let writes = numbers.map(|number| Write::Put(path(number), value(number, files, now))).collect();
                assert!(matches!(batch.batch(namespace, &[], writes).await?, BatchOutcome::Applied(_)));
            }
            None => {
                let put = |number| async move {
                    let key = Key::new(namespace.clone(), path(number));
                    let outcome = store.put(&key, value(number, files, now), &Precondition::Any).await?;
                    assert!(matches!(outcome, PutOutcome::Applied(_)));
                    Ok::<_, vfs_core::Error>(())
                };
                stream::iter(numbers.map(put)).buffer_unordered(16).try_collect::<()>().await?;
            }
        }
    }
    Ok(Some(files as f64 / start_time.elapsed().as_secs_f64()))
}

fn value(number: usize, files: usize, now: DateTime<Utc>) -> NewValue {
    NewValue::new(content(number, files).into(), now)
}

/// Uploads up to 10,000 files to a namespace of their own, a thousand in each request; how many files a second were written.
pub(crate) async fn upload(backend: &impl Backend, files: usize) -> anyhow::Result<f64> {
    let (files, cx) = (files.min(10_000), OpContext::new());
    let start_time = Instant::now();
    for start in (0..files).step_by(1000) {
        let upload =
            (start..files.min(start + 1000)).map(|n| FileUploadRequest::new(path(n), content(n, files))).collect();
        for answer in backend.upload_files(&cx, upload).await {
            if let Some(error) = answer.cause {
                return Err(error.into());
            }
        }
    }
    let rate = files as f64 / start_time.elapsed().as_secs_f64();
    for top in 0..files.div_ceil(1000) {
        backend.delete(&cx, DeleteRequest::new(VfsPath::parse(&format!("/d{top}"))?).recursive()).await?;
    }
    Ok(rate)
}
