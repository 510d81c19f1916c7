//! The attacks, each a few calls that an agent could make.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use vfs_core::multi_modal::MultiModalReadRequest;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::search::{EntryKinds, LinkMode};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::tree::{OpenTreeRequest, TreeUse};
use vfs_core::watch::WatchRequest;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, ExecuteRequest, FileUploadRequest, GlobRequest, GrepRequest,
    LsRequest, ReadRequest, RenameRequest, ResolveRequest, StatRequest, VfsPath, WriteMode, WriteRequest,
};

use super::lab::{Lab, Outcome, SECRET};

type Attack = for<'a> fn(&'a Lab) -> BoxFuture<'a, Outcome>;

macro_rules! attacks {
    ($($name:ident($lab:ident, $out:ident) $body:block)+) => {
        /// Every attack by its name.
        pub(crate) const ALL: &[(&str, Attack)] = &[$((stringify!($name), |lab| $name(lab).boxed())),+];

        $(async fn $name($lab: &Lab) -> Outcome {
            let mut $out = Outcome::default();
            $body
            $out
        })+
    };
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// Reads `at` in every way that there is.
async fn read_every_way(lab: &Lab, out: &mut Outcome, at: &str) {
    let (files, cx) = (&*lab.files, &lab.cx);
    out.refused(&files.read(cx, ReadRequest::new(path(at))).await);
    out.refused(&files.read(cx, ReadRequest::new(path(at)).bytes(0, Some(8))).await);
    out.refused(&FileDownloadRequest::new(path(at)).send(files, cx).await);
    out.refused(&files.grep(cx, GrepRequest::literal("key").path(path(at))).await);
    let reader = files.as_multi_modal().expect("there is one");
    out.refused(&reader.multi_modal_read(cx, MultiModalReadRequest::new(ReadRequest::new(path(at)))).await);
}

/// Whether a search came by anything that is denied.
fn names_nothing_denied(out: &mut Outcome, found: &str) {
    for denied in ["/secrets", ".env", ".pem", "/public/link", "/public/hard:", "/public/dir", "/public/chain"] {
        if found.contains(denied) {
            out.failures.push(format!("it shows {denied}: {found}"));
        }
    }
}

async fn searched(lab: &Lab, out: &mut Outcome, req: GrepRequest) {
    let answer = lab.files.grep(&lab.cx, req.clone()).await;
    out.sees(&answer);
    let found = answer
        .map(|result| result.matches.iter().map(|hit| format!("{}:{}\n", hit.path, hit.text)).collect::<String>());
    names_nothing_denied(out, &found.unwrap_or_default());
    let streamed: Vec<_> = lab.files.grep_stream(lab.cx.clone(), req).collect().await;
    for event in streamed {
        out.sees(&event);
    }
}

async fn globbed(lab: &Lab, out: &mut Outcome, req: GlobRequest) {
    let answer = lab.files.glob(&lab.cx, req).await;
    out.sees(&answer);
    let found =
        answer.map(|result| result.entries.iter().map(|entry| format!("{}:\n", entry.path)).collect::<String>());
    // A file with several names is listed under the one that is not denied; its content is what must not be shown.
    names_nothing_denied(out, &found.unwrap_or_default().replace("/public/hard:", ""));
}

attacks! {
    a_plain_read(lab, out) { read_every_way(lab, &mut out, "/secrets/key").await; }
    doubled_slashes_and_dots(lab, out) { read_every_way(lab, &mut out, "//secrets///./key/.").await; }
    a_relative_spelling(lab, out) { read_every_way(lab, &mut out, "secrets/key").await; }
    a_dotfile_at_the_root(lab, out) { read_every_way(lab, &mut out, "/.env").await; }
    a_dotfile_at_any_depth(lab, out) { read_every_way(lab, &mut out, "/mixed/sub/.env").await; }
    a_dotfile_below_the_directory(lab, out) { read_every_way(lab, &mut out, "/secrets/deep/.dot").await; }
    an_extension(lab, out) { read_every_way(lab, &mut out, "/public/cert.pem").await; }
    another_case(lab, out) {
        // No such files on this disk; where case is folded they would be the denied ones.
        for at in ["/SECRETS/key", "/Secrets/Key", "/public/.ENV", "/public/cert.PEM"] {
            read_every_way(lab, &mut out, at).await;
            out.refused(&lab.files.write(&lab.cx, WriteRequest::new(path(at), "x")).await);
        }
    }
    a_link_to_the_file(lab, out) { read_every_way(lab, &mut out, "/public/link").await; }
    a_link_to_the_directory(lab, out) { read_every_way(lab, &mut out, "/public/dir/key").await; }
    a_chain_of_links(lab, out) { read_every_way(lab, &mut out, "/public/chain/key").await; }
    a_hard_link(lab, out) { read_every_way(lab, &mut out, "/public/hard").await; }
    a_mount_of_the_same_backend(lab, out) { read_every_way(lab, &mut out, "/alias/secrets/key").await; }
    a_link_in_the_mount(lab, out) { read_every_way(lab, &mut out, "/alias/public/link").await; }
    a_mount_and_a_dotfile(lab, out) { read_every_way(lab, &mut out, "/alias/public/.env").await; }
    looking_without_reading(lab, out) {
        for at in ["/secrets", "/secrets/key", "/.env", "/public/dir", "/alias/secrets/key", "/public/link"] {
            out.refused(&lab.files.stat(&lab.cx, StatRequest::new(path(at))).await);
            out.refused(&lab.files.resolve(&lab.cx, ResolveRequest::new(path(at))).await);
        }
    }
    listing_the_directory(lab, out) {
        for at in ["/secrets", "/secrets/deep", "/public/dir", "/public/chain/deep", "/alias/secrets"] {
            out.refused(&lab.files.ls(&lab.cx, LsRequest::new(path(at))).await);
            out.refused(&lab.files.glob(&lab.cx, GlobRequest::new("**").path(path(at)).hidden()).await);
            out.refused(&lab.files.grep(&lab.cx, GrepRequest::literal("key").path(path(at))).await);
        }
    }
    listing_from_above(lab, out) {
        let listed = lab.files.ls(&lab.cx, LsRequest::new(path("/")).recursive()).await;
        out.sees(&listed);
        let names: String =
            listed.map(|listed| listed.entries.iter().map(|entry| format!("{}:", entry.path)).collect()).unwrap_or_default();
        names_nothing_denied(&mut out, &names.replace("/public/hard:", ""));
    }
    a_glob_with_the_name(lab, out) {
        for glob in ["secrets/*", "/secrets/key", "**/key", "s*/k?y", "{secrets,public}/**", "**/.env", "*.pem", "public/dir/*"] {
            globbed(lab, &mut out, GlobRequest::new(glob).hidden().no_ignore().kinds(EntryKinds::All)).await;
        }
    }
    a_glob_that_follows_links(lab, out) {
        globbed(lab, &mut out, GlobRequest::new("**").hidden().no_ignore().links(LinkMode::Follow)).await;
    }
    a_grep_for_the_secret(lab, out) { searched(lab, &mut out, GrepRequest::literal("hunter2").hidden().no_ignore()).await; }
    a_grep_with_context(lab, out) { searched(lab, &mut out, GrepRequest::regex("key|notes").context(5, 5).hidden()).await; }
    a_grep_that_inverts(lab, out) { searched(lab, &mut out, GrepRequest::literal("zzz").invert().hidden().no_ignore()).await; }
    a_grep_that_follows_links(lab, out) {
        searched(lab, &mut out, GrepRequest::literal("the key").links(LinkMode::Follow).hidden()).await;
        searched(lab, &mut out, GrepRequest::literal("the key").links(LinkMode::Follow).path(path("/public"))).await;
    }
    a_grep_with_globs(lab, out) { searched(lab, &mut out, GrepRequest::literal("key").glob("secrets/**").glob(".env").hidden()).await; }
    a_rename_out(lab, out) {
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/secrets/key"), path("/public/got"))).await);
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/secrets"), path("/public/got"))).await);
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/mixed"), path("/public/got"))).await);
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/alias/secrets"), path("/public/got"))).await);
    }
    a_rename_in(lab, out) {
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/public/notes.txt"), path("/secrets/new"))).await);
        out.refused(
            &lab.files.rename(&lab.cx, RenameRequest::new(path("/public/notes.txt"), path("/secrets/key")).overwrite()).await,
        );
        out.refused(&lab.files.rename(&lab.cx, RenameRequest::new(path("/public/notes.txt"), path("/public/dir/new"))).await);
    }
    a_copy_out(lab, out) {
        for from in ["/secrets/key", "/secrets", "/public/link", "/public/dir", "/public/hard", "/mixed", "/public", "/alias/secrets/key"] {
            out.refused(&lab.files.copy(&lab.cx, CopyRequest::new(path(from), path("/got"))).await);
        }
    }
    a_copy_in(lab, out) {
        for to in ["/secrets/new", "/public/dir/new", "/alias/secrets/new", "/x/.env"] {
            out.refused(&lab.files.copy(&lab.cx, CopyRequest::new(path("/public/notes.txt"), path(to))).await);
        }
    }
    a_write(lab, out) {
        for at in ["/secrets/new", "/public/dir/new", "/public/new", "/alias/secrets/new", "/alias/public/dir/new"] {
            for mode in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append] {
                out.refused(&lab.files.write(&lab.cx, WriteRequest::new(path(at), "x").mode(mode)).await);
            }
        }
        out.refused(&lab.files.write(&lab.cx, WriteRequest::new(path("/public/link"), "x").mode(WriteMode::Append)).await);
    }
    an_upload(lab, out) {
        let targets = ["/secrets/new", "/public/link", "/public/dir/new", "/.env", "/alias/secrets/new"];
        let files = targets.iter().map(|at| FileUploadRequest::new(path(at), "x")).collect();
        for answer in lab.files.upload_files(&lab.cx, files).await {
            out.refused(&answer.cause.map_or(Ok(answer.version), Err));
        }
    }
    a_download_among_others(lab, out) {
        let answers = lab.files.download_files(&lab.cx, vec![path("/public/notes.txt"), path("/secrets/key")]).await;
        if answers[0].content.is_none() {
            out.failures.push("the other file was not downloaded".into());
        }
        out.refused(&answers[1].cause.clone().map_or(Ok(answers[1].content.clone()), Err));
    }
    an_edit(lab, out) {
        for at in ["/secrets/key", "/public/link", "/public/hard", "/.env"] {
            let edit = || EditRequest::new(path(at), "hunter", "fox");
            out.refused(&lab.files.edit(&lab.cx, edit().with_diff()).await);
            out.refused(&lab.files.edit(&lab.cx, edit().dry_run()).await);
            // The nearest lines of one that matches nothing would reveal the content.
            out.refused(&lab.files.edit(&lab.cx, EditRequest::new(path(at), "the key: hunter", "x")).await);
        }
    }
    a_delete(lab, out) {
        out.refused(&lab.files.delete(&lab.cx, DeleteRequest::new(path("/secrets/key"))).await);
        for at in ["/secrets", "/mixed", "/public/dir/deep", "/alias/secrets"] {
            out.refused(&lab.files.delete(&lab.cx, DeleteRequest::new(path(at)).recursive()).await);
        }
    }
    a_command(lab, out) {
        let shell = lab.files.as_shell().expect("there is one");
        for command in ["cat secrets/key", "cat public/link", "grep -r hunter2 .", "cp secrets/key public/got"] {
            out.refused(&shell.execute(&lab.cx, ExecuteRequest::new(command)).await);
        }
    }
    a_tree_of_its_own(lab, out) {
        let searchable = lab.files.as_tree_provider().expect("it lends its tree");
        out.refused(&searchable.open_tree(&lab.cx, OpenTreeRequest::new(path("/secrets"), TreeUse::Grep)).await.map(drop));
        let tree = searchable.open_tree(&lab.cx, OpenTreeRequest::new(path("/"), TreeUse::Grep)).await.expect("it is lent");
        let (cx, pool) = (lab.cx.clone(), vfs_search::Pool::global());
        let req = GrepRequest::literal(SECRET).hidden().no_ignore().links(LinkMode::Follow);
        out.sees(&vfs_search::grep_on(pool, tree, cx, req).await);
    }
    a_change_feed(lab, out) {
        let watch = lab.files.as_watch().expect("there is one");
        let mut feed = watch.watch(lab.cx.clone(), WatchRequest::new(path("/secrets")));
        // A feed that is permitted reports this change. The time bounds a hang, and is no measure.
        let change = lab.files.write(&lab.cx, WriteRequest::new(path("/secrets/news"), "news"));
        match futures::join!(tokio::time::timeout(Duration::from_secs(60), feed.next()), change) {
            (Ok(Some(answer)), _) => out.refused(&answer),
            _ => out.failures.push("the feed ended in silence".into()),
        }
    }
    errors_that_reveal_files(lab, out) {
        // What is there and what is not are refused alike.
        let read = |at: &'static str| lab.files.read(&lab.cx, ReadRequest::new(path(at)));
        let (there, nothing) = (read("/secrets/key").await, read("/secrets/nothing").await);
        out.refused(&there);
        out.refused(&nothing);
        let message = |answer: vfs_core::Result<vfs_core::ReadResult>| answer.err().map(|error| error.message().to_owned());
        if message(there) != message(nothing) {
            out.failures.push("the errors differ".into());
        }
    }
}

/// Distinguishes a refused attack from a mistake in the attack.
#[test]
fn what_is_not_denied_can_be_done() {
    let lab = Lab::new();
    let outcome = lab.run(
        async {
            let mut out = Outcome::default();
            let (files, cx) = (&*lab.files, &lab.cx);
            let read = files.read(cx, ReadRequest::new(path("/public/notes.txt"))).await;
            let written = files.write(cx, WriteRequest::new(path("/public/more.txt"), "x")).await;
            let moved = files.rename(cx, RenameRequest::new(path("/public/more.txt"), path("/moved.txt"))).await;
            let unlinked = files.delete(cx, DeleteRequest::new(path("/public/link"))).await;
            let found = files.grep(cx, GrepRequest::literal("notes")).await.map(|result| result.matches.len());
            for failed in [read.err(), written.err(), moved.err(), unlinked.err()].into_iter().flatten() {
                out.failures.push(format!("{failed:?}"));
            }
            // Once in the directory, and once more where that is mounted.
            if found != Ok(2) {
                out.failures.push(format!("{found:?}"));
            }
            let missing = files.read(cx, ReadRequest::new(path("/public/nothing"))).await;
            if missing.as_ref().err().map(vfs_core::Error::kind) != Some(ErrorKind::NotFound) {
                out.failures.push(format!("{missing:?}"));
            }
            out
        }
        .boxed(),
    );
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}
