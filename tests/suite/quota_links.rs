//! Quotas over disks with links: no sequence of changes lowers the usage below what is stored.

use std::sync::Arc;

use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, Layer, OpContext, OperationId, RenameRequest, Result,
};
use vfs_layers::{Idempotency, Quota, QuotaLimits, QuotaUsageReader};

use super::links::{disk, path};

/// Contexts without an operation id, and with one for each step.
fn contexts() -> [fn(u64) -> OpContext; 2] {
    let with_id = |step| {
        let id = OperationId::parse(&format!("step-{step}")).expect("a valid id");
        OpContext::new().with_operation_id(id)
    };
    [|_| OpContext::new(), with_id]
}

fn metered(files: Arc<dyn Backend>) -> (Arc<dyn Backend>, QuotaUsageReader) {
    Quota::new(QuotaLimits::new().max_bytes(1000)).metered(Idempotency::new().layer(files))
}

/// Checks that the usage is that of a fresh count.
async fn assert_exact(meter: &QuotaUsageReader, what: &str) -> Result<()> {
    let cx = OpContext::new();
    let tracked = meter.usage(&cx).await?;
    assert_eq!(tracked, meter.recount(&cx).await?, "{what}");
    Ok(())
}

#[tokio::test]
async fn a_link_to_a_directory_that_is_deleted_or_replaced_frees_nothing() -> Result<()> {
    for context in contexts() {
        let (_root, disk) = disk(&[("d/f", &"x".repeat(800)), ("new", "")], &[("l", "d"), ("m", "d")]);
        let (files, meter) = metered(disk);
        files.delete(&context(0), DeleteRequest::new(path("/l")).recursive()).await?;
        assert_exact(&meter, "deleted").await?;
        files.rename(&context(1), RenameRequest::new(path("/new"), path("/m")).overwrite()).await?;
        assert_exact(&meter, "replaced").await?;
        let error = files.create_text("/b", &"x".repeat(300)).await.expect_err("1,100 bytes in all");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert_eq!(meter.of_actor(None).bytes, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_link_to_a_file_that_is_deleted_or_replaced_frees_nothing() -> Result<()> {
    for context in contexts() {
        for change in ["delete", "recursive delete", "rename"] {
            let (_root, disk) = disk(&[("f", ""), ("new", "")], &[("l", "f")]);
            let (files, meter) = metered(disk);
            files.write_text("/f", &"x".repeat(800)).await?;
            let delete = DeleteRequest::new(path("/l"));
            match change {
                "delete" => drop(files.delete(&context(0), delete).await?),
                "recursive delete" => drop(files.delete(&context(0), delete.recursive()).await?),
                _ => {
                    let rename = RenameRequest::new(path("/new"), path("/l"));
                    files.rename(&context(0), rename.overwrite()).await?;
                }
            }
            assert_exact(&meter, change).await?;
            assert_eq!(meter.of_actor(None).bytes, 800, "{change}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_second_name_of_a_file_that_is_deleted_or_replaced_frees_nothing() -> Result<()> {
    for context in contexts() {
        for change in ["delete", "rename"] {
            let (root, disk) = disk(&[("f", &"x".repeat(400)), ("new", "")], &[]);
            std::fs::hard_link(root.path().join("f"), root.path().join("h")).expect("the files are ours");
            let (files, meter) = metered(disk);
            assert_eq!(meter.usage(&OpContext::new()).await?.bytes, 800);
            match change {
                "delete" => drop(files.delete(&context(0), DeleteRequest::new(path("/h"))).await?),
                _ => {
                    let rename = RenameRequest::new(path("/new"), path("/h"));
                    files.rename(&context(0), rename.overwrite()).await?;
                }
            }
            assert_exact(&meter, change).await?;
            assert_eq!(meter.of_actor(None).bytes, 0, "{change}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_tree_with_links_that_is_copied_and_deleted_makes_no_room() -> Result<()> {
    for context in contexts() {
        let (_root, disk) = disk(&[("d/f", &"x".repeat(100))], &[("d/l", "f"), ("d/m", "f")]);
        let (files, meter) = metered(disk);
        for step in 0..4 {
            files.copy(&context(2 * step), CopyRequest::new(path("/d"), path("/e"))).await?;
            assert_exact(&meter, "copied").await?;
            files.delete(&context(2 * step + 1), DeleteRequest::new(path("/e")).recursive()).await?;
            assert_exact(&meter, "deleted").await?;
        }
        files.write_text("/d/f", &"x".repeat(400)).await?;
        files.delete(&context(100), DeleteRequest::new(path("/d")).recursive()).await?;
        assert_exact(&meter, "a file that grew behind its links").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_copy_of_a_tree_with_links_is_charged_to_the_actor() -> Result<()> {
    for context in contexts() {
        let (_root, disk) = disk(&[("d/f", &"x".repeat(100)), ("other/g", "")], &[("d/l", "../other")]);
        let per_actor = Quota::new(QuotaLimits::new()).per_actor(QuotaLimits::new().max_bytes(250));
        let (files, meter) = per_actor.metered(Idempotency::new().layer(disk));
        for step in 0..2 {
            files.copy(&context(step), CopyRequest::new(path("/d"), path(&format!("/copy-{step}")))).await?;
        }
        assert_eq!(meter.of_actor(None).bytes, 200);
        let third = files.copy(&context(2), CopyRequest::new(path("/d"), path("/copy-2"))).await;
        assert_eq!(third.expect_err("300 bytes of one actor").kind(), ErrorKind::QuotaExceeded);
    }
    Ok(())
}

#[tokio::test]
async fn a_link_that_cannot_be_followed_is_deleted() -> Result<()> {
    for context in contexts() {
        let (_root, disk) = disk(&[], &[("loop", "loop"), ("out", "/etc/passwd"), ("dangling", "missing")]);
        let (files, meter) = metered(disk);
        for (step, at) in ["/loop", "/out", "/dangling"].into_iter().enumerate() {
            files.delete(&context(step as u64), DeleteRequest::new(path(at))).await?;
        }
        assert_exact(&meter, "deleted").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_copy_over_a_link_is_counted_where_the_link_leads() -> Result<()> {
    for context in contexts() {
        for target in ["/link", "/dangling"] {
            let (_root, disk) =
                disk(&[("f", ""), ("big", &"x".repeat(400))], &[("link", "f"), ("dangling", "missing")]);
            let (files, meter) = metered(disk);
            files.copy(&context(0), CopyRequest::new(path("/big"), path(target)).overwrite()).await?;
            assert_eq!((meter.usage(&context(1)).await?.bytes, meter.of_actor(None).bytes), (800, 400), "{target}");
            let error = files.create_text("/b", &"x".repeat(300)).await.expect_err("1,100 bytes in all");
            assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{target}");
        }
    }
    Ok(())
}
