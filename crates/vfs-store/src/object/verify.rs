//! Verification of all objects of a bucket, also of those that no listing of a namespace shows.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use vfs_core::{Error, ErrorKind, Problem, Result};

use super::BucketStore;
use super::list::ObjectScan;
use super::list_xml::ListedObject;
use super::names::{KeyLayout, KeyName, odd};
use crate::admin::problem::operator_problem;
use crate::admin::stats::count_values;
use crate::store::{CheckReport, Inspect, Key, StoreStats};

/// Upper bound on the number of files that are read concurrently.
const MAX_CONCURRENT_READS: usize = 4;

#[async_trait]
impl Inspect for BucketStore {
    /// Reads every file. A problem is an object that cannot be read, has another size than the service reports, has other content
    /// than was put with its metadata, has a key that no file can have, or is below a file, which hides it. What is put or removed
    /// meanwhile may be in the report or not.
    async fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut sweep = ObjectScan::new(self);
        let mut files = EnclosingFiles::default();
        while let Some(objects) = sweep.next().await? {
            report.problems.extend(objects.iter().filter_map(|object| files.next(&self.inner.layout, &object.key)));
            let mut looks = stream::iter(objects).map(|object| self.read(object)).buffered(MAX_CONCURRENT_READS);
            while let Some(look) = looks.next().await {
                match look {
                    Ok(None) => {}
                    Ok(Some(bytes)) => {
                        report.files += 1;
                        report.bytes += bytes;
                    }
                    Err(ReadFailure::Problem(problem)) => report.problems.push(problem),
                    Err(ReadFailure::Unanswered(error)) => return Err(error),
                }
            }
        }
        Ok(report)
    }

    async fn stats(&self) -> Result<StoreStats> {
        count_values(self).await
    }
}

/// Why a file was not read.
enum ReadFailure {
    /// It is damaged, or its name is none.
    Problem(Problem),
    /// The service is gone, and so would the other files be.
    Unanswered(Error),
}

/// The files that a sweep is within: those whose keys the current key begins with.
#[derive(Default)]
struct EnclosingFiles(Vec<String>);

impl EnclosingFiles {
    /// Takes the next key, and reports it where it is below a file.
    ///
    /// Services list keys in the order of their bytes, in which those that begin with the key of a file follow it directly.
    fn next(&mut self, layout: &KeyLayout, key: &str) -> Option<Problem> {
        while self.0.pop_if(|file| !key.starts_with(file.as_str())).is_some() {}
        if !matches!(layout.name(key), KeyName::File(..)) {
            return None;
        }
        let file = self.0.iter().find(|file| key[file.len()..].starts_with('/'));
        let problem = file.map(|file| {
            let reason = format!("it cannot be reached, as '{file}' is a file; move one of the two");
            operator_problem(key, &Error::new(ErrorKind::NotADirectory, reason))
        });
        self.0.push(key.to_owned());
        problem
    }
}

impl BucketStore {
    /// How many bytes the file of an object has; `None` where it is no file, or gone.
    async fn read(&self, object: ListedObject) -> Result<Option<u64>, ReadFailure> {
        let location = match self.inner.layout.name(&object.key) {
            KeyName::Folder => return Ok(None),
            KeyName::Odd => return Err(ReadFailure::Problem(odd(&object.key))),
            KeyName::File(namespace, path) => self.inner.layout.key(&Key::new(namespace, path)),
        };
        let problem = |error: Error| ReadFailure::Problem(operator_problem(&object.key, &error));
        let digest = self.inner.service.digest(&location.map_err(problem)?).await;
        let digest = digest.map_err(|fault| match self.error(&fault) {
            error if fault.is_unanswered() => ReadFailure::Unanswered(error),
            error => problem(error),
        })?;
        let Some(digest) = digest else { return Ok(None) };
        let (bytes, size) = (digest.bytes, digest.found.stored.size);
        let reason = if bytes != size {
            format!("{bytes} bytes came where the service reports {size}; write the file again")
        } else if !digest.is_as_written() {
            "its content is not what was put with its metadata, so it is damaged or another program has replaced it; write the file again".to_owned()
        } else {
            return Ok(Some(bytes));
        };
        Err(problem(Error::new(ErrorKind::Unavailable, reason)))
    }
}
