//! Verification of all objects of a bucket, also of those that no namespace lists.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use vfs_core::{Error, ErrorKind, Problem, Result};

use super::BucketStore;
use super::key_layout::{KeyLayout, ParsedKey, foreign_object_problem};
use super::list::ObjectScan;
use super::list_xml::ListedObject;
use crate::admin::operator_problem::operator_problem;
use crate::admin::stats::count_values;
use crate::store::{CheckReport, Inspect, Key, StoreStats};

/// Upper bound on the number of files that are read concurrently.
const MAX_CONCURRENT_READS: usize = 4;

#[async_trait]
impl Inspect for BucketStore {
    /// Reads every file. A problem is an object that cannot be read, whose content does not have the size that the
    /// service reports or the hash in its metadata, whose key no file can have, or that is below a file, which hides
    /// it. The report may or may not include files that are put or removed in the meantime.
    async fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut scan = ObjectScan::new(self);
        let mut files = EnclosingFiles::default();
        while let Some(objects) = scan.next().await? {
            report.problems.extend(objects.iter().filter_map(|object| files.enter(&self.inner.layout, &object.key)));
            let mut results =
                stream::iter(objects).map(|object| self.verify_object(object)).buffered(MAX_CONCURRENT_READS);
            while let Some(result) = results.next().await {
                match result {
                    Ok(None) => {}
                    Ok(Some(bytes)) => {
                        report.files += 1;
                        report.bytes += bytes;
                    }
                    Err(VerifyFailure::Problem(problem)) => report.problems.push(problem),
                    Err(VerifyFailure::Unanswered(error)) => return Err(error),
                }
            }
        }
        Ok(report)
    }

    async fn stats(&self) -> Result<StoreStats> {
        count_values(self).await
    }
}

/// Reason why a file was not verified.
enum VerifyFailure {
    /// The file is damaged, or its key is invalid.
    Problem(Problem),
    /// The service does not respond, so that the verification of other files would fail, too.
    Unanswered(Error),
}

/// Files whose keys are prefixes of the current key.
#[derive(Default)]
struct EnclosingFiles(Vec<String>);

impl EnclosingFiles {
    /// Moves on to the next key, and returns a problem if it is below a file.
    ///
    /// Services list keys in the order of their bytes, so the keys that begin with the key of a file follow it
    /// directly.
    fn enter(&mut self, layout: &KeyLayout, key: &str) -> Option<Problem> {
        while self.0.pop_if(|file| !key.starts_with(file.as_str())).is_some() {}
        if !matches!(layout.parse_key(key), ParsedKey::File(..)) {
            return None;
        }
        let file = self.0.iter().find(|file| key[file.len()..].starts_with('/'));
        let problem = file.map(|file| {
            let reason = format!("the object cannot be reached, because '{file}' is a file; move one of the two");
            operator_problem(key, &Error::new(ErrorKind::NotADirectory, reason))
        });
        self.0.push(key.to_owned());
        problem
    }
}

impl BucketStore {
    /// Verifies an object and returns the size of its file in bytes, or `None` if it is not a file or no longer exists.
    async fn verify_object(&self, object: ListedObject) -> Result<Option<u64>, VerifyFailure> {
        let location = match self.inner.layout.parse_key(&object.key) {
            ParsedKey::Folder => return Ok(None),
            ParsedKey::Foreign => return Err(VerifyFailure::Problem(foreign_object_problem(&object.key))),
            ParsedKey::File(namespace, path) => self.inner.layout.key(&Key::new(namespace, path)),
        };
        let problem = |error: Error| VerifyFailure::Problem(operator_problem(&object.key, &error));
        let digest = self.inner.service.digest(&location.map_err(problem)?).await;
        let digest = digest.map_err(|fault| match self.error(&fault) {
            error if fault.is_unanswered() => VerifyFailure::Unanswered(error),
            error => problem(error),
        })?;
        let Some(digest) = digest else { return Ok(None) };
        let (bytes, size) = (digest.bytes, digest.found.stored.size);
        let reason = if bytes != size {
            format!("the content has {bytes} bytes, but the service reports {size}; write the file again")
        } else if !digest.matches_hash() {
            "the content does not have the hash in its metadata, so it is damaged or another program has replaced it; write the file again".to_owned()
        } else {
            return Ok(Some(bytes));
        };
        Err(problem(Error::new(ErrorKind::Unavailable, reason)))
    }
}
