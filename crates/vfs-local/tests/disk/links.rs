//! Tests of symbolic and hard links.

use futures::executor::block_on;
use vfs_core::search::LinkMode;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest,
    GrepRequest, LsRequest, OpContext, ReadRequest, RenameRequest, StatRequest, WriteMode, WriteRequest,
};
use vfs_local::{HardLinks, PathResolutionMode};

use crate::{Disk, SECRET, assert_fails, path};

/// Creates links that lead outside in every possible way, and returns each with a path through it to a file outside.
fn hostile_links(disk: &Disk) -> Vec<(&'static str, String)> {
    let outside = disk.tree.path().join("outside");
    std::fs::create_dir(disk.tree.path().join("root-sibling")).expect("directories are made");
    std::fs::write(disk.tree.path().join("root-sibling/secret"), SECRET).expect("files are written");
    disk.put("sub/x", "x");
    disk.link("../outside/secret", "file");
    disk.link("../outside", "directory");
    disk.link("file", "chain");
    disk.link("./sub/../../outside/secret", "dotted");
    disk.link("../root-sibling", "sibling");
    disk.link(outside.join("secret"), "absolute");
    disk.link("../outside/not-there", "dangling");
    disk.link("/proc/self/environ", "environ");
    disk.link("/proc/self/root", "proc-root");
    disk.link("/proc/self/fd/0", "descriptor");
    disk.link("/dev/zero", "zero");
    disk.link("loop-b", "loop-a");
    disk.link("loop-a", "loop-b");
    vec![
        ("file", "/file".into()),
        ("directory", "/directory/secret".into()),
        ("chain", "/chain".into()),
        ("dotted", "/dotted".into()),
        ("sibling", "/sibling/secret".into()),
        ("absolute", "/absolute".into()),
        ("dangling", "/dangling".into()),
        ("environ", "/environ".into()),
        ("proc-root", "/proc-root/etc/passwd".into()),
        ("descriptor", "/descriptor".into()),
        ("zero", "/zero".into()),
        ("loop", "/loop-a".into()),
    ]
}

fn hostile_links_are_refused(resolution: PathResolutionMode) {
    let disk = Disk::with(|config| config.resolution(resolution));
    let cx = OpContext::new();
    let refusals = &[ErrorKind::PathEscape, ErrorKind::InvalidPath];
    for (name, target) in hostile_links(&disk) {
        let target = path(&target);
        let through = target.components().count() > 1;
        println!("{name}");
        let refusals = if name == "loop" { &[ErrorKind::InvalidPath][..] } else { refusals };
        assert_fails(block_on(disk.files.stat(&cx, StatRequest::new(target.clone()))), refusals);
        assert_fails(block_on(disk.files.read(&cx, ReadRequest::new(target.clone()))), refusals);
        let overwrite = WriteRequest::new(target.clone(), "x").mode(WriteMode::Overwrite);
        assert_fails(block_on(disk.files.write(&cx, overwrite)), refusals);
        let append = WriteRequest::new(target.clone(), "x").mode(WriteMode::Append);
        assert_fails(block_on(disk.files.write(&cx, append)), refusals);
        let create = block_on(disk.files.write(&cx, WriteRequest::new(target.clone(), "x")));
        assert_fails(create, &[ErrorKind::PathEscape, ErrorKind::InvalidPath, ErrorKind::AlreadyExists]);
        assert_fails(block_on(disk.files.edit(&cx, EditRequest::new(target.clone(), "only", "x"))), refusals);
        assert_fails(block_on(disk.files.copy(&cx, CopyRequest::new(target.clone(), path("/copy")))), refusals);
        let uploaded = block_on(disk.files.upload_files(&cx, vec![FileUploadRequest::new(target.clone(), "x")]));
        assert!(uploaded[0].cause.is_some());
        let downloaded = block_on(disk.files.download_files(&cx, vec![target.clone()]));
        assert!(downloaded[0].content.is_none());
        assert_fails(block_on(disk.files.grep(&cx, GrepRequest::literal("only").path(target.clone()))), refusals);
        if through {
            assert_fails(block_on(disk.files.delete(&cx, DeleteRequest::new(target.clone()))), refusals);
            assert_fails(block_on(disk.files.rename(&cx, RenameRequest::new(target.clone(), path("/r")))), refusals);
            assert_fails(block_on(disk.files.ls(&cx, LsRequest::new(target.parent().expect("it has one")))), refusals);
            let into = target.parent().and_then(|above| above.child("new").ok()).expect("it is a valid name");
            assert_fails(block_on(disk.files.rename(&cx, RenameRequest::new(path("/sub/x"), into.clone()))), refusals);
            assert_fails(block_on(disk.files.copy(&cx, CopyRequest::new(path("/sub/x"), into))), refusals);
        }
    }
    disk.assert_outside_untouched();
}

#[test]
fn links_that_lead_outside_are_refused_by_every_operation() {
    hostile_links_are_refused(PathResolutionMode::Automatic);
}

#[test]
fn links_that_lead_outside_are_refused_portably() {
    hostile_links_are_refused(PathResolutionMode::Portable);
}

#[test]
fn listings_and_searches_report_links_that_lead_outside_and_show_the_rest() {
    let disk = Disk::new();
    let hostile = hostile_links(&disk);
    disk.put("good", "only inside");
    let cx = OpContext::new();
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")))).expect("it lists");
    let names: Vec<_> = listing.entries.iter().filter_map(|entry| entry.path.name()).collect();
    assert_eq!(names, ["good", "sub"]);
    assert_eq!(listing.problems.len(), hostile.len() + 1, "one for each link: {:#?}", listing.problems);
    for links in [LinkMode::Skip, LinkMode::Follow] {
        let found = block_on(disk.files.glob(&cx, GlobRequest::new("*").links(links))).expect("it globs");
        let names: Vec<_> = found.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["/good", "/sub/x"]);
        let found = block_on(disk.files.grep(&cx, GrepRequest::literal("only").links(links))).expect("it greps");
        let names: Vec<_> = found.matches.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(names, ["/good"]);
        let text = format!("{found:?}");
        assert!(!text.contains("/proc/") && !text.contains("../") && !text.contains(SECRET), "{text}");
    }
    disk.assert_outside_untouched();
}

#[test]
fn a_link_inside_the_root_is_read_and_changed_through_and_moved_and_deleted_as_a_link() {
    for resolution in [PathResolutionMode::Automatic, PathResolutionMode::Portable] {
        let disk = Disk::with(|config| config.resolution(resolution));
        disk.put("real/file", "one");
        disk.put("real/tree/x", "x");
        std::fs::create_dir(disk.root().join("links")).expect("directories are made");
        disk.link("../real/file", "links/file");
        disk.link("../real/tree", "links/tree");
        disk.link("../real/later", "links/later");
        let is_link = |name: &str| std::fs::symlink_metadata(disk.root().join(name)).is_ok_and(|m| m.is_symlink());

        assert_eq!(block_on(disk.files.read_text("/links/file")).expect("it reads"), "one");
        block_on(disk.files.edit_text("/links/file", "one", "two")).expect("it edits");
        block_on(disk.files.append_text("/links/file", " three")).expect("it appends");
        assert_eq!(disk.get("real/file"), b"two three");
        block_on(disk.files.write_text("/links/file", "over")).expect("it writes");
        assert_eq!(disk.get("real/file"), b"over");
        assert!(is_link("links/file"));
        assert_eq!(block_on(disk.files.read_text("/links/tree/x")).expect("it reads"), "x");
        assert_fails(block_on(disk.files.create_text("/links/file", "x")), &[ErrorKind::AlreadyExists]);
        block_on(disk.files.write_text("/links/later", "made")).expect("a dangling link is written through");
        assert_eq!(disk.get("real/later"), b"made");

        let listed = block_on(disk.files.list_dir("/links")).expect("it lists");
        let listed: Vec<_> = listed.iter().map(|entry| (entry.path.as_str(), entry.is_dir, entry.size)).collect();
        assert_eq!(listed, [("/links/file", false, 4), ("/links/later", false, 4), ("/links/tree", true, 0)]);

        let cx = OpContext::new();
        block_on(disk.files.rename(&cx, RenameRequest::new(path("/links/file"), path("/links/moved"))))
            .expect("it moves");
        assert!(is_link("links/moved") && disk.get("real/file") == b"over");
        block_on(disk.files.delete(&cx, DeleteRequest::new(path("/links/tree")).recursive())).expect("it deletes");
        assert_eq!(disk.get("real/tree/x"), b"x");
        block_on(disk.files.delete_file("/links/moved")).expect("it deletes");
        assert_eq!(disk.get("real/file"), b"over");
    }
}

#[test]
fn an_absolute_link_is_refused_even_if_it_points_back_inside() {
    let disk = Disk::new();
    disk.put("file", "x");
    disk.link(disk.root().join("file"), "absolute");
    let error = block_on(disk.files.read_text("/absolute")).expect_err("an absolute link");
    assert_eq!(error.kind(), ErrorKind::PathEscape);
    assert!(error.for_model().contains("make the link relative"), "{}", error.for_model());
}

#[test]
fn a_chain_of_45_links_is_refused_and_its_siblings_are_listed_once() {
    let disk = Disk::new();
    disk.put("end", "x");
    disk.link("end", "0");
    for link in 1..45 {
        disk.link((link - 1).to_string(), &link.to_string());
    }
    assert_fails(block_on(disk.files.read_text("/44")), &[ErrorKind::InvalidPath]);
    assert_eq!(block_on(disk.files.read_text("/30")).expect("forty links are followed"), "x");
    let listing = block_on(disk.files.ls(&OpContext::new(), LsRequest::new(path("/")))).expect("it lists");
    assert_eq!(listing.entries.len() + listing.problems.len(), 46);
    assert!(listing.problems.len() < 10);
}

#[test]
fn a_cycle_of_directories_is_walked_once() {
    let disk = Disk::new();
    disk.put("a/file", "needle");
    disk.link("..", "a/up");
    disk.link(".", "a/self");
    let request = GrepRequest::literal("needle").links(LinkMode::Follow);
    let found = block_on(disk.files.grep(&OpContext::new(), request)).expect("it greps");
    assert_eq!(found.matches.len(), 1);
    assert_eq!(found.problems, []);
}

#[test]
fn writing_a_hard_link_never_changes_the_other_name_and_reading_it_can_be_refused() {
    let disk = Disk::new();
    let other = disk.tree.path().join("outside/secret");
    std::fs::hard_link(&other, disk.root().join("hard")).expect("hard links are made");
    assert_eq!(block_on(disk.files.read_text("/hard")).expect("it reads"), SECRET);
    block_on(disk.files.edit_text("/hard", "only", "no longer only")).expect("it edits");
    block_on(disk.files.append_text("/hard", "x")).expect("it appends");
    disk.assert_outside_untouched();

    let strict = Disk::with(|config| config.hard_links(HardLinks::Refuse));
    strict.put("two", "names");
    std::fs::hard_link(strict.root().join("two"), strict.root().join("names")).expect("hard links are made");
    assert_fails(block_on(strict.files.read_text("/two")), &[ErrorKind::PermissionDenied]);
    let found = block_on(strict.files.grep(&OpContext::new(), GrepRequest::literal("names"))).expect("it greps");
    assert_eq!((found.matches.len(), found.problems.len()), (0, 2));
    // No change reveals any of the content.
    assert_fails(block_on(strict.files.append_text("/two", "")), &[ErrorKind::PermissionDenied]);
    let dry_run = EditRequest::new(path("/two"), "names", "x").dry_run();
    assert_fails(block_on(strict.files.edit(&OpContext::new(), dry_run)), &[ErrorKind::PermissionDenied]);
    let copied = block_on(strict.files.copy(&OpContext::new(), CopyRequest::new(path("/two"), path("/copy"))));
    assert_fails(copied, &[ErrorKind::PermissionDenied]);
    block_on(strict.files.write_text("/two", "own")).expect("replacing it reveals no content");
    assert_eq!(strict.get("names"), b"names");
}

#[test]
fn two_spellings_of_one_entry_are_neither_renamed_nor_copied_onto_each_other() {
    let disk = Disk::new();
    disk.put("a/x", "text");
    disk.link("a", "l");
    let cx = OpContext::new();
    let rename = RenameRequest::new(path("/a/x"), path("/l/x")).overwrite();
    assert_fails(block_on(disk.files.rename(&cx, rename)), &[ErrorKind::InvalidArgument]);
    let copy = CopyRequest::new(path("/a/x"), path("/l/x")).overwrite();
    assert_fails(block_on(disk.files.copy(&cx, copy)), &[ErrorKind::InvalidArgument]);
    assert_eq!(disk.get("a/x"), b"text");
}

#[test]
fn two_names_of_one_file_become_one_by_an_overwriting_rename() {
    let disk = Disk::new();
    disk.put("a", "text");
    std::fs::hard_link(disk.root().join("a"), disk.root().join("b")).expect("hard links are made");
    let rename = RenameRequest::new(path("/a"), path("/b")).overwrite();
    block_on(disk.files.rename(&OpContext::new(), rename)).expect("it moves");
    assert_eq!(disk.get("b"), b"text");
    assert!(!disk.root().join("a").exists());
}

#[test]
fn an_overwriting_copy_writes_through_a_link_inside_the_root_and_is_refused_at_one_that_leads_outside() {
    let disk = Disk::new();
    disk.put("from", "new");
    disk.put("target", "old");
    disk.link("target", "inside");
    disk.link("../outside/secret", "leaves");
    let cx = OpContext::new();
    block_on(disk.files.copy(&cx, CopyRequest::new(path("/from"), path("/inside")).overwrite())).expect("it copies");
    assert_eq!(disk.get("target"), b"new");
    let leaves = CopyRequest::new(path("/from"), path("/leaves")).overwrite();
    assert_fails(block_on(disk.files.copy(&cx, leaves)), &[ErrorKind::PathEscape]);
    disk.assert_outside_untouched();
}

#[test]
fn a_link_that_ends_in_a_slash_or_a_dot_leads_to_its_directory() {
    for resolution in [PathResolutionMode::Automatic, PathResolutionMode::Portable] {
        let disk = Disk::with(|config| config.resolution(resolution));
        disk.put("d/x", "x");
        disk.link("d/", "slash");
        disk.link("d/.", "dot");
        disk.link("../d", "d/up");
        for name in ["/slash", "/dot", "/d/up"] {
            assert_eq!(block_on(disk.files.list_dir(name)).expect(name).len(), 2, "{name}");
            assert!(block_on(disk.files.stat_path(name)).expect(name).is_dir, "{name}");
        }
    }
}
