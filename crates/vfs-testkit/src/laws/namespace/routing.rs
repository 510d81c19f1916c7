//! Routing of paths to backends.

use std::sync::Arc;

use vfs_core::operation::{ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::search::EntryKinds;
use vfs_core::{
    Backend, Capabilities, ErrorKind, GlobRequest, GrepRequest, Interceptor, LsRequest, OpContext, ReadRequest, Result,
};

use super::super::LawResult;
use super::law_helpers::{NamespaceFixture, around, path};
use crate::namespace_factory::NamespaceFactory;

namespace_laws! {
    "NS1" the_longest_prefix_of_whole_segments_decides,
    "NS1" every_spelling_of_a_path_reaches_the_mount,
    "NS2" directories_above_a_mount_exist,
    "NS3" a_mount_shadows_the_files_beneath_it,
    "NS3" a_mount_shadows_the_files_beneath_it_from_searches,
    "NS4" mounts_nest,
    "NS4" a_namespace_is_mounted_in_another,
    "NS5" an_instance_that_is_mounted_twice_shows_each_path_once,
    "NS6" capabilities_are_those_of_the_mount,
}

async fn the_longest_prefix_of_whole_segments_decides(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/memories", "/memories/projects"]);
    for at in ["/memories/projects/a", "/memories/b", "/memories/projectsx/c", "/memoriesx/d", "/e"] {
        files.put(at, at).await?;
        assert_eq!(files.text(at).await?, at);
    }
    assert_eq!(default.tree().await?, ["/e", "/memoriesx", "/memoriesx/d"]);
    assert_eq!(mounts[0].tree().await?, ["/b", "/projectsx", "/projectsx/c"]);
    assert_eq!(mounts[1].tree().await?, ["/a"]);
    Ok(())
}

async fn every_spelling_of_a_path_reaches_the_mount(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, mounts, .. } = n.parts(&["/memories"]);
    mounts[0].put("/x", "mounted\n").await?;
    for spelling in ["//memories/x", "/./memories/x", "memories/x", "/memories/./x/", "/memories//x"] {
        let request = ReadRequest::new(path(spelling));
        let json = serde_json::from_value(serde_json::json!({ "path": spelling })).expect("a request to read");
        assert_eq!(request, json, "{spelling}");
        assert_eq!(files.read(request).await?.content.as_text(), Some("mounted\n"), "{spelling}");
    }
    Ok(())
}

async fn directories_above_a_mount_exist(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/a/b/c"]);
    for at in ["/", "/a", "/a/b", "/a/b/c"] {
        let info = files.stat(at).await?;
        assert_eq!((info.path, info.is_dir, info.size, info.version), (path(at), true, 0, None));
    }
    for (directory, entries) in [("/", &["/a"][..]), ("/a", &["/a/b"]), ("/a/b", &["/a/b/c"]), ("/a/b/c", &[])] {
        assert_eq!(files.level(directory).await?, entries, "{directory}");
    }
    let listed = files.ls(LsRequest::new(path("/")).recursive()).await?;
    assert_eq!(files.names(&listed.entries), ["/a", "/a/b", "/a/b/c"]);
    for entry in &listed.entries {
        assert_eq!(*entry, files.stat(entry.path.as_str()).await?);
    }
    let directories = files.glob(GlobRequest::new("**").kinds(EntryKinds::Directories)).await?;
    assert_eq!(directories.entries, listed.entries);
    files.refused(files.ls(LsRequest::new(path("/a/x"))).await, ErrorKind::NotFound);
    Ok(())
}

/// Files in the default backend, some of them where something is mounted; one is even in the place of a mount.
async fn shadowed(n: &NamespaceFactory) -> Result<NamespaceFixture> {
    let parts = n.parts(&["/m", "/file/m"]);
    parts.default.put_each(&["/m/lost", "/m/d/lost", "/file", "/mx/keep", "/keep"]).await?;
    parts.mounts[0].put_each(&["/d/x", "/y"]).await?;
    parts.mounts[1].put_each(&["/z"]).await?;
    Ok(parts)
}

const SHOWN: [&str; 5] = ["/file/m/z", "/keep", "/m/d/x", "/m/y", "/mx/keep"];

async fn a_mount_shadows_the_files_beneath_it(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, .. } = shadowed(n).await?;
    for at in ["/m/lost", "/m/d/lost"] {
        files.refused(files.stat(at).await, ErrorKind::NotFound);
        files.refused(files.read(ReadRequest::new(path(at))).await, ErrorKind::NotFound);
        assert_eq!(files.download_error(at).await.map(|error| error.kind()), Some(ErrorKind::NotFound));
    }
    assert_eq!(files.level("/").await?, ["/file", "/keep", "/m", "/mx"]);
    assert_eq!(files.level("/m").await?, ["/m/d", "/m/y"]);
    assert_eq!(files.files().await?.into_keys().collect::<Vec<_>>(), SHOWN);
    assert!(files.stat("/file").await?.is_dir, "it is on the way to a mount");
    files.refused(files.read(ReadRequest::new(path("/file"))).await, ErrorKind::IsADirectory);
    assert_eq!(files.level("/file").await?, ["/file/m"]);
    files.put("/m/lost", "mounted\n").await?;
    assert_eq!(default.text("/m/lost").await?, "/m/lost\n", "what is shadowed stays as it is");
    Ok(())
}

async fn a_mount_shadows_the_files_beneath_it_from_searches(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = shadowed(n).await?;
    assert_eq!(files.found("*").await?, SHOWN);
    assert_eq!(files.found("**/m/**").await?, ["/file/m/z", "/m/d/x", "/m/y"]);
    assert_eq!(files.found("m/lost").await?, [""; 0]);
    assert_eq!(files.globbed(GlobRequest::new("*").path(path("/m/d"))).await?, ["/m/d/x"]);
    let grepped = files.grep(GrepRequest::regex("^")).await?;
    let paths: Vec<_> = grepped.matches.iter().map(|hit| hit.path.as_str()).collect();
    assert_eq!((paths, grepped.files_searched), (SHOWN.to_vec(), SHOWN.len() as u64));
    assert_eq!(files.hits(GrepRequest::literal("lost")).await?, [""; 0]);
    assert_eq!(files.events(GrepRequest::regex("^")).await?.len(), SHOWN.len() + 1, "and the end");
    let start = GrepRequest::regex("^").path(path("/m/lost"));
    files.refused(files.grep(start).await, ErrorKind::NotFound);
    Ok(())
}

async fn mounts_nest(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/a", "/a/b", "/a/b/c/d"]);
    mounts[0].put_each(&["/b/lost"]).await?;
    for at in ["/x", "/a/x", "/a/b/x", "/a/b/c/x", "/a/b/c/d/x"] {
        files.put(at, format!("{at}\n")).await?;
    }
    assert_eq!(default.found("*").await?, ["/x"]);
    assert_eq!(mounts[0].found("x").await?, ["/x"]);
    assert_eq!(mounts[1].found("*").await?, ["/c/x", "/x"]);
    assert_eq!(mounts[2].found("*").await?, ["/x"]);
    let all = ["/a/b/c/d/x", "/a/b/c/x", "/a/b/x", "/a/x", "/x"];
    assert_eq!(files.found("*").await?, all);
    assert_eq!(files.globbed(GlobRequest::new("*").path(path("/a/b"))).await?, all[..3]);
    assert_eq!(files.tree().await?, ["/a", "/a/b", "/a/b/c", "/a/b/c/d", all[0], all[1], all[2], all[3], all[4]]);
    assert_eq!(files.hits(GrepRequest::regex("/x$")).await?, all.map(|at| format!("{at}:1:{at}")));
    Ok(())
}

async fn a_namespace_is_mounted_in_another(n: &NamespaceFactory) -> LawResult {
    let inner = n.parts(&["/m"]);
    let default = n.backend();
    let files = n.mount(&default.backend, &[("/in", &inner.files.backend), ("/in/m/deep", &default.backend)]);
    inner.mounts[0].put_each(&["/x", "/deep/lost"]).await?;
    inner.default.put_each(&["/m/lost", "/y"]).await?;
    default.put_each(&["/z"]).await?;
    let all = ["/in/m/deep/z", "/in/m/x", "/in/y", "/z"];
    assert_eq!(files.files().await?.into_keys().collect::<Vec<_>>(), all);
    assert_eq!(files.found("*").await?, all);
    assert_eq!(files.text("/in/m/x").await?, "/x\n");
    let hits = files.hits(GrepRequest::regex("^").path(path("/in/m"))).await?;
    assert_eq!(hits, ["/in/m/deep/z:1:/z", "/in/m/x:1:/x"]);
    Ok(())
}

async fn an_instance_that_is_mounted_twice_shows_each_path_once(n: &NamespaceFactory) -> LawResult {
    let (default, twice) = (n.backend(), n.backend());
    let places = ["/one", "/two", "/one/more"];
    let files = n.mount(&default.backend, &places.map(|at| (at, &twice.backend)));
    files.put("/one/f", "hit\n").await?;
    assert_eq!(files.text("/two/f").await?, "hit\n");
    assert_eq!(files.text("/one/more/f").await?, "hit\n");
    let all = ["/one/f", "/one/more/f", "/two/f"];
    assert_eq!(files.found("*").await?, all);
    assert_eq!(files.tree().await?, ["/one", all[0], "/one/more", all[1], "/two", all[2]]);
    assert_eq!(files.hits(GrepRequest::literal("hit")).await?, all.map(|at| format!("{at}:1:hit")));
    let streamed = files.events(GrepRequest::literal("hit")).await?;
    assert_eq!(streamed.len(), all.len() + 1);
    Ok(())
}

/// Reports a maximum file size in bytes, by which the capabilities of the mounts differ. Enforces nothing.
#[derive(Debug)]
struct ReportedSizeLimit(u64);

impl Interceptor for ReportedSizeLimit {
    fn name(&self) -> &'static str {
        "file-size-limit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }

    fn capabilities(&self, mut inner: Capabilities) -> Capabilities {
        inner.max_file_size = self.0;
        inner
    }
}

async fn capabilities_are_those_of_the_mount(n: &NamespaceFactory) -> LawResult {
    let small = |bytes| around(&n.backend().backend, &Arc::new(ReportedSizeLimit(bytes)));
    let files = n.mount(&small(1), &[("/m", &small(2)), ("/m/deep/er", &small(3))]);
    for (at, bytes) in [
        ("/", 1),
        ("/mx", 1),
        ("/x/m", 1),
        ("/m", 2),
        ("/m/x/y", 2),
        ("/m/deep", 2),
        ("/m/deep/er", 3),
        ("/m/deep/er/x", 3),
    ] {
        assert_eq!(files.backend.capabilities(&path(at)).max_file_size, bytes, "{at}");
    }
    Ok(())
}
