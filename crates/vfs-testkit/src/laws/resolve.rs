//! Resolution of paths.

use vfs_core::{DeleteRequest, ErrorKind, ResolveRequest, ResolveResult, Result};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "resolve" in Storage:
    "A1" Nothing a_path_without_links_resolves_to_itself in Smoke,
    "A1" Nothing a_missing_path_resolves_to_itself,
    "A1" Nothing a_path_below_a_file_resolves_to_itself,
    "A2" Links a_path_through_links_resolves_to_the_real_path in Wrapper,
    "A3" Links a_dangling_link_resolves_to_its_target,
    "A3" Links a_link_into_a_missing_directory_resolves_to_its_target,
    "A3" Links a_link_to_a_path_below_a_file_resolves_to_its_target in Wrapper,
    "A3" Links a_dangling_link_with_parent_components_resolves_to_a_path_without_links in Wrapper,
    "A4" Links a_link_that_leads_out_is_an_escape,
    "A4" Links a_link_that_leads_out_into_a_missing_directory_is_an_escape,
    "A6" Links an_absolute_link_is_an_escape_with_advice_to_make_it_relative,
    "A5" Links a_link_is_not_another_name_of_a_file,
}

async fn resolve(t: &Target, path: &str) -> Result<ResolveResult> {
    t.backend.resolve(&cx(), ResolveRequest::new(t.path(path))).await
}

async fn is_at(t: &Target, path: &str, real: &str) -> LawResult {
    let resolved = resolve(t, path).await?;
    assert_eq!((resolved.path, resolved.names), (t.path(real), 1), "{path}");
    let again = t.backend.resolve(&cx(), ResolveRequest::new(t.path(real))).await?;
    assert_eq!((again.path, again.leads_nowhere), (t.path(real), false), "{path}: it has links in it");
    Ok(())
}

fn link(t: &Target, at: &str, to: &str) {
    let maker = t.links.as_deref().expect("the law needs links");
    maker.link(&t.path(at), to).expect("the link can be made");
}

async fn a_path_without_links_resolves_to_itself(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/e/f"]).await?;
    for path in ["/", "/a", "/d", "/d/e", "/d/e/f"] {
        is_at(t, path, path).await?;
    }
    Ok(())
}

async fn a_missing_path_resolves_to_itself(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    for path in ["/missing", "/missing/deep/er", "/d/missing", "/d/missing/er"] {
        is_at(t, path, path).await?;
    }
    t.delete(DeleteRequest::new(t.path("/d/x"))).await?;
    is_at(t, "/d/x", "/d/x").await?;
    assert!(!t.has("/missing").await?, "resolving makes nothing");
    Ok(())
}

async fn a_path_below_a_file_resolves_to_itself(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    for path in ["/d/x/below", "/d/x/be/low"] {
        is_at(t, path, path).await?;
    }
    Ok(())
}

async fn a_path_through_links_resolves_to_the_real_path(t: &Target) -> LawResult {
    t.put_each(&["/d/e/f"]).await?;
    link(t, "/to-file", "d/e/f");
    link(t, "/to-dir", "d/e");
    link(t, "/d/up", "../to-dir");
    for (path, real) in [
        ("/to-file", "/d/e/f"),
        ("/to-dir", "/d/e"),
        ("/to-dir/f", "/d/e/f"),
        ("/d/up", "/d/e"),
        ("/d/up/f", "/d/e/f"),
        ("/to-dir/missing", "/d/e/missing"),
        ("/d/up/missing/deep/er", "/d/e/missing/deep/er"),
    ] {
        is_at(t, path, real).await?;
    }
    t.put("/to-dir/made", "x").await?;
    assert_eq!(t.text("/d/e/made").await?, "x", "it is what a write makes");
    Ok(())
}

async fn a_dangling_link_resolves_to_its_target(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    link(t, "/dangling", "missing");
    link(t, "/d/dangling", "../new");
    link(t, "/chain", "d/dangling");
    is_at(t, "/dangling", "/missing").await?;
    is_at(t, "/dangling/below", "/missing/below").await?;
    is_at(t, "/d/dangling", "/new").await?;
    is_at(t, "/chain", "/new").await
}

async fn a_link_into_a_missing_directory_resolves_to_its_target(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    link(t, "/d/dangling", "../new/deep/er");
    link(t, "/chain", "d/dangling");
    is_at(t, "/d/dangling", "/new/deep/er").await?;
    is_at(t, "/d/dangling/below", "/new/deep/er/below").await?;
    is_at(t, "/chain", "/new/deep/er").await
}

async fn a_link_to_a_path_below_a_file_resolves_to_its_target(t: &Target) -> LawResult {
    t.put_each(&["/d/x", "/e"]).await?;
    link(t, "/file", "d/x");
    link(t, "/d/below", "x/be/low");
    link(t, "/chain", "d/below");
    link(t, "/beside", "d/x/../../e/below");
    is_at(t, "/file/below", "/d/x/below").await?;
    is_at(t, "/d/below", "/d/x/be/low").await?;
    is_at(t, "/chain/er", "/d/x/be/low/er").await?;
    is_at(t, "/beside", "/e/below").await
}

async fn a_dangling_link_with_parent_components_resolves_to_a_path_without_links(t: &Target) -> LawResult {
    t.put_each(&["/d/x", "/s/f"]).await?;
    link(t, "/d/side", "../s");
    link(t, "/d/back", "x/no/../../side");
    let targets = ["x/..", "x/no/../..", "no/..", "no/deep/../..", "no/../deep/.."];
    for (i, up) in targets.into_iter().enumerate() {
        for (to, real) in
            [("side/f", "/s/f"), ("side/no", "/s/no"), ("back/f", "/s/f"), ("x", "/d/x"), ("side/..", "/")]
        {
            let path = format!("/d/link-{i}-{}", to.replace(['/', '.'], "-"));
            link(t, &path, &format!("{up}/{to}"));
            is_at(t, &path, real).await?;
            assert!(resolve(t, &path).await?.leads_nowhere, "{path}");
            for error in [t.text(&path).await.err(), t.put(&path, "x").await.err()] {
                let kind = error.map(|error| error.kind());
                assert!(matches!(kind, Some(ErrorKind::NotFound | ErrorKind::NotADirectory)), "{path}: {kind:?}");
            }
        }
        link(t, &format!("/d/circle-{i}"), &format!("{up}/circle-{i}/f"));
        let circle = resolve(t, &format!("/d/circle-{i}")).await.expect_err("a link in a circle leads nowhere");
        assert_eq!(circle.kind(), ErrorKind::InvalidPath, "{circle:?}");
    }
    Ok(())
}

/// Asserts that `path` leads out.
async fn is_escape(t: &Target, path: &str) {
    match resolve(t, path).await {
        Err(error) => assert_eq!(error.kind(), ErrorKind::PathEscape, "{error:?}"),
        // Above the root of the host is the root of the host: nothing leads out of it.
        Ok(resolved) => {
            assert!(!t.base.is_root(), "{path} leads out, not to {resolved:?}");
            assert!(resolved.path.as_str().starts_with("/vfs-laws-outside"), "{path}: {resolved:?}");
        }
    }
}

async fn an_absolute_link_is_an_escape_with_advice_to_make_it_relative(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    // If the base is the root of the backend, the absolute target is a path inside it.
    link(t, "/absolute", if t.base.is_root() { "/d/x" } else { "/vfs-laws-outside/x" });
    link(t, "/chain", "d/../absolute");
    for path in ["/absolute", "/chain"] {
        is_escape(t, path).await;
        if let Err(error) = resolve(t, path).await {
            assert!(error.for_model().contains("make the link relative"), "{}", error.for_model());
        }
    }
    Ok(())
}

/// Returns as many `../` as lead from the base out of the root.
fn up(t: &Target) -> String {
    "../".repeat(t.base.components().count() + 1)
}

async fn a_link_that_leads_out_is_an_escape(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    link(t, "/out", &format!("{}vfs-laws-outside", up(t)));
    link(t, "/d/out", &format!("../{}vfs-laws-outside", up(t)));
    link(t, "/chain", "d/out");
    for path in ["/out", "/d/out", "/chain", "/out/below"] {
        is_escape(t, path).await;
    }
    Ok(())
}

async fn a_link_that_leads_out_into_a_missing_directory_is_an_escape(t: &Target) -> LawResult {
    t.put_each(&["/d/x"]).await?;
    link(t, "/out", &format!("{}vfs-laws-outside/deep/er", up(t)));
    link(t, "/chain", "out");
    for path in ["/out", "/chain", "/out/below"] {
        is_escape(t, path).await;
    }
    Ok(())
}

async fn a_link_is_not_another_name_of_a_file(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    link(t, "/one", "a");
    link(t, "/two", "one");
    for path in ["/a", "/one", "/two"] {
        is_at(t, path, "/a").await?;
    }
    Ok(())
}
