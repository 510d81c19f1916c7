//! Commands and operations on the same files.

use vfs_core::{EditRequest, ErrorKind, GlobRequest, GrepRequest, LsRequest, RenameRequest, WriteMode, WriteRequest};

use super::ShellTarget;
use super::directory::{BROKEN, NAMES};
use super::law_helpers::{assert_success, lines};
use crate::laws::LawResult;

shell_laws! { "files":
    "XF1" has() a_command_reads_a_file_that_was_written in Smoke,
    "XF2" has() a_file_that_a_command_writes_is_read in Wrapper,
    "XF3" has() a_file_of_any_name_is_the_same_for_both,
    "XF4" has() any_bytes_are_the_same_for_both,
    "XF5" has() a_change_by_a_command_is_another_version in Wrapper,
    "XF6" has() a_file_that_either_removes_is_removed_for_both,
    "XF7" has() files_that_a_command_made_are_listed_and_found in Wrapper,
    "XF8" has() a_command_sees_renames_and_edits,
    "XF9" has(Processes) a_script_that_was_written_can_be_run,
    "XF10" has() files_are_read_and_written_while_a_command_runs,
    "XF11" has() a_file_with_line_breaks_in_its_name_is_the_same_for_both,
}

async fn a_command_reads_a_file_that_was_written(t: &ShellTarget) -> LawResult {
    t.files.put("/deep/er/file", "first\n").await?;
    assert_eq!(t.printed("cat deep/er/file").await?, "first\n");
    t.files.put("/deep/er/file", "second, and longer\n").await?;
    assert_eq!(t.printed("cat deep/er/file").await?, "second, and longer\n");
    let append = WriteRequest::new(t.files.path("/deep/er/file"), "third\n").mode(WriteMode::Append);
    t.files.write(append).await?;
    assert_eq!(t.printed("tail -n 1 deep/er/file").await?, "third\n");
    Ok(())
}

async fn a_file_that_a_command_writes_is_read(t: &ShellTarget) -> LawResult {
    assert_success(&t.run("mkdir -p deep/er; echo first >deep/er/file").await?);
    assert_eq!(t.files.text("/deep/er/file").await?, "first\n");
    assert_success(&t.run("echo second >>deep/er/file").await?);
    assert_eq!(t.files.text("/deep/er/file").await?, "first\nsecond\n");
    assert_success(&t.run("echo x >deep/er/file; : >empty").await?);
    assert_eq!(t.files.text("/deep/er/file").await?, "x\n");
    assert_eq!(t.files.stat("/empty").await?.size, 0);
    Ok(())
}

async fn a_file_of_any_name_is_the_same_for_both(t: &ShellTarget) -> LawResult {
    is_the_same_for_both(t, &NAMES).await
}

async fn a_file_with_line_breaks_in_its_name_is_the_same_for_both(t: &ShellTarget) -> LawResult {
    is_the_same_for_both(t, &BROKEN).await
}

async fn is_the_same_for_both(t: &ShellTarget, names: &[&str]) -> LawResult {
    for name in names {
        t.files.put(&format!("/{name}"), format!("written {name}")).await?;
        let request = t.command("cat \"./$NAME\"; printf '%s' \"made $NAME\" >\"./$NAME.made\"").env("NAME", *name);
        let ended = t.execute(request).await?;
        assert_success(&ended);
        assert_eq!(ended.stdout, format!("written {name}"));
        assert_eq!(t.files.text(&format!("/{name}.made")).await?, format!("made {name}"));
    }
    assert!(!t.files.has("/ran").await?, "a name is not a command");
    Ok(())
}

async fn any_bytes_are_the_same_for_both(t: &ShellTarget) -> LawResult {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend_from_slice(b"\0\r\n\xff\xfe\x1b[0m\n\n");
    for content in [bytes.clone(), bytes.repeat(2_000), lines(20_000).into_bytes(), Vec::new()] {
        t.files.put("/from", content.clone()).await?;
        assert_success(&t.run("cat from >to").await?);
        assert!(t.files.bytes("/to").await? == content, "{} bytes came as others", content.len());
    }
    Ok(())
}

async fn a_change_by_a_command_is_another_version(t: &ShellTarget) -> LawResult {
    let before = t.files.put("/file", "first\n").await?;
    assert_success(&t.run("echo other >file").await?);
    assert_ne!(t.files.stat("/file").await?.version, Some(before.clone()));
    let request = WriteRequest::new(t.files.path("/file"), "lost").mode(WriteMode::IfVersion(before));
    t.files.refused(t.files.write(request).await, ErrorKind::Conflict);
    assert_eq!(t.files.text("/file").await?, "other\n");
    Ok(())
}

async fn a_file_that_either_removes_is_removed_for_both(t: &ShellTarget) -> LawResult {
    t.files.put_each(&["/a", "/b", "/d/c"]).await?;
    assert_success(&t.run("rm a; rm -r d").await?);
    assert!(!t.files.has("/a").await? && !t.files.has("/d/c").await?);
    t.files.delete(vfs_core::DeleteRequest::new(t.files.path("/b"))).await?;
    assert_eq!(t.printed("test -e b || echo gone").await?, "gone\n");
    Ok(())
}

async fn files_that_a_command_made_are_listed_and_found(t: &ShellTarget) -> LawResult {
    assert_success(&t.run("mkdir -p src/deep; echo 'a needle' >src/deep/one.rs; echo hay >src/two.rs").await?);
    let listed = t.files.ls(LsRequest::new(t.files.path("/src"))).await?;
    assert_eq!(t.files.names(&listed.entries), ["/src/deep", "/src/two.rs"]);
    let found = t.files.glob(GlobRequest::new("*.rs")).await?;
    assert_eq!(t.files.names(&found.entries), ["/src/deep/one.rs", "/src/two.rs"]);
    assert_eq!(t.files.hits(GrepRequest::literal("needle")).await?, ["/src/deep/one.rs:1:a needle"]);
    Ok(())
}

async fn a_command_sees_renames_and_edits(t: &ShellTarget) -> LawResult {
    t.files.put("/old", "one\n").await?;
    t.files.rename(RenameRequest::new(t.files.path("/old"), t.files.path("/d/new"))).await?;
    t.files.edit(EditRequest::new(t.files.path("/d/new"), "one", "two")).await?;
    assert_eq!(t.printed("cat d/new; test -e old || echo gone").await?, "two\ngone\n");
    assert_success(&t.run("mv d/new d/newer").await?);
    assert_eq!(t.files.text("/d/newer").await?, "two\n");
    assert!(!t.files.has("/d/new").await?);
    Ok(())
}

async fn a_script_that_was_written_can_be_run(t: &ShellTarget) -> LawResult {
    t.files.put("/script", "#!/bin/sh\necho \"ran with $1\"\nexit 5\n").await?;
    let ended = t.run("chmod +x script; ./script argument").await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(5), "ran with argument\n"), "{}", ended.stderr);
    assert_eq!(t.run("sh script other").await?.stdout, "ran with other\n");
    Ok(())
}

async fn files_are_read_and_written_while_a_command_runs(t: &ShellTarget) -> LawResult {
    t.files.put("/question", "?\n").await?;
    let command = format!("echo request >request; {}; cat answer", super::law_helpers::WAIT);
    let call = t.begin(super::law_helpers::cx(), t.command(command));
    t.appears("/request").await?;
    assert_eq!(t.files.text("/question").await?, "?\n");
    t.files.put("/answer", "42\n").await?;
    t.go().await?;
    let ended = super::law_helpers::patiently("the command", call).await.expect("no panic")?;
    assert_eq!(ended.stdout, "42\n");
    Ok(())
}
