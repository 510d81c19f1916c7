//! What it takes to rename, copy and delete a large directory, and how long others wait meanwhile.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use vfs_core::{
    Backend as _, BackendExt as _, CopyRequest, DeleteRequest, EditRequest, LsRequest, OpContext, RenameRequest,
    VfsPath,
};
use vfs_store::{Namespace, StoreBackend, StoreConfig, StoreUrl, open_store};

use crate::fill;
use crate::timed::{of, shown};

/// The row of a store at `url` in which a quarter of `files` is moved, copied and deleted.
pub(crate) async fn measure(url: &StoreUrl, files: usize) -> anyhow::Result<String> {
    let (store, cx) = (open_store(url).await?, OpContext::new());
    let namespace = Namespace::parse(&format!("bench/directory-{files}"))?;
    fill::fill(&*store, &namespace, files).await?;
    let backend = StoreBackend::with_config(store, StoreConfig::new().namespace(namespace.clone()));
    // The directories at the top have a thousand files each.
    let quarter = VfsPath::parse("/quarter")?;
    for top in 0..files.div_ceil(4000) {
        let (from, to) = (format!("/d{top}"), format!("/quarter/d{top}"));
        backend.rename(&cx, RenameRequest::new(VfsPath::parse(&from)?, VfsPath::parse(&to)?)).await?;
    }
    let (moved, copied) = (VfsPath::parse("/moved")?, VfsPath::parse("/copied")?);
    let rename = beside(url, &namespace, backend.rename(&cx, RenameRequest::new(quarter, moved.clone()))).await?;
    let copy = beside(url, &namespace, backend.copy(&cx, CopyRequest::new(moved.clone(), copied))).await?;
    let delete = beside(url, &namespace, backend.delete(&cx, DeleteRequest::new(moved).recursive())).await?;
    // Another run begins with all files at their places.
    for name in backend.ls(&cx, LsRequest::new(VfsPath::root())).await?.entries {
        backend.delete(&cx, DeleteRequest::new(name.path).recursive()).await?;
    }
    Ok([rename, copy, delete].map(|(took, waited)| format!("{} ({})", shown(took), shown(waited))).join(" | "))
}

/// How long `change` takes, and the longest that another handle waited for an edit of a file in the same namespace meanwhile.
async fn beside<T>(
    url: &StoreUrl,
    namespace: &Namespace,
    change: impl Future<Output = vfs_core::Result<T>>,
) -> anyhow::Result<(Duration, Duration)> {
    let config = StoreConfig::new().namespace(namespace.clone());
    let neighbour = StoreBackend::with_config(open_store(url).await?, config);
    neighbour.write_text("/neighbour", "0").await?;
    let (ended, is_ended) = watch::channel(false);
    let edits = tokio::spawn(async move {
        let (cx, mut longest) = (OpContext::new(), Duration::ZERO);
        for count in 0_u64.. {
            let edit = EditRequest::new(VfsPath::parse("/neighbour")?, count.to_string(), (count + 1).to_string());
            let start_time = Instant::now();
            neighbour.edit(&cx, edit).await?;
            longest = longest.max(start_time.elapsed());
            if *is_ended.borrow() {
                break;
            }
        }
        anyhow::Ok(longest)
    });
    let took = of(change).await?;
    ended.send_replace(true);
    Ok((took, edits.await??))
}
