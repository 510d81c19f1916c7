//! Multipart uploads whose completion can be attempted again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartId, MultipartUpload, PutMultipartOptions, PutPayload, PutResult, UploadPart};

/// Factory of [`RepeatableUpload`]s.
#[derive(Clone)]
pub(super) struct RepeatableUploadFactory(Arc<dyn MultipartStore>);

impl RepeatableUploadFactory {
    /// Creates a factory of uploads to `service`, which must accept another completion of an upload after a failed one.
    pub(super) fn new(service: impl MultipartStore) -> Self {
        Self(Arc::new(service))
    }

    /// Begins an upload.
    pub(super) async fn begin(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        let id = self.0.create_multipart_opts(location, options).await?;
        let (service, location) = (Arc::clone(&self.0), location.clone());
        Ok(Box::new(RepeatableUpload { service, location, id, next_part: 0, parts: Arc::default() }))
    }
}

impl fmt::Debug for RepeatableUploadFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepeatableUploadFactory")
    }
}

/// Multipart upload that retains the list of its parts. The uploads of `object_store` drop the list with the first attempt to
/// complete them, so that a second attempt fails.
struct RepeatableUpload {
    service: Arc<dyn MultipartStore>,
    location: Path,
    id: MultipartId,
    next_part: usize,
    /// Uploaded parts by their index.
    parts: Arc<Mutex<BTreeMap<usize, PartId>>>,
}

#[async_trait]
impl MultipartUpload for RepeatableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let index = self.next_part;
        self.next_part += 1;
        let (service, location, id) = (Arc::clone(&self.service), self.location.clone(), self.id.clone());
        let parts = Arc::clone(&self.parts);
        Box::pin(async move {
            let part = service.put_part(&location, &id, index, data).await?;
            parts.lock().unwrap_or_else(PoisonError::into_inner).insert(index, part);
            Ok(())
        })
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let parts: Vec<PartId> = self.parts.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        if parts.len() != self.next_part {
            let source = "a part of the upload is missing".into();
            return Err(object_store::Error::Generic { store: "parts", source });
        }
        self.service.complete_multipart(&self.location, &self.id, parts).await
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.service.abort_multipart(&self.location, &self.id).await
    }
}

impl fmt::Debug for RepeatableUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepeatableUpload").field("location", &self.location).finish_non_exhaustive()
    }
}
