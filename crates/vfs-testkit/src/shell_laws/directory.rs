//! Working directories of commands.

use vfs_core::{ErrorKind, ExecuteRequest, VfsPath};

use super::ShellTarget;
use super::law_helpers::assert_success;
use crate::laws::LawResult;

shell_laws! { "directory":
    "XD1" has() a_command_runs_in_its_directory in Smoke,
    "XD2" has() the_default_directory_is_the_root in Wrapper,
    "XD3" has() a_directory_may_have_any_name in Wrapper,
    "XD4" has() a_missing_directory_is_not_found in Wrapper,
    "XD5" has() a_file_is_not_a_directory,
    "XD6" has(Links) a_link_that_leads_out_is_refused,
    "XD7" has(Links) a_link_that_stays_inside_is_followed,
    "XD8" has() changes_to_the_shell_end_with_the_command,
    "XD9" has(SamePaths) a_command_knows_its_directory_by_the_backends_path in Wrapper,
    "XD10" has() a_directory_may_have_line_breaks_in_its_name,
}

async fn a_command_runs_in_its_directory(t: &ShellTarget) -> LawResult {
    t.files.put("/deep/er/here", "here\n").await?;
    let ended = t.execute(t.command("cat here; echo made >made").cwd(t.files.path("/deep/er"))).await?;
    assert_success(&ended);
    assert_eq!(ended.stdout, "here\n");
    assert_eq!(t.files.text("/deep/er/made").await?, "made\n");
    let ended = t.execute(t.command("cat er/here; cat ../deep/er/here").cwd(t.files.path("/deep"))).await?;
    assert_success(&ended);
    assert_eq!(ended.stdout, "here\nhere\n");
    Ok(())
}

/// The default is the root of the shell. If the shell belongs to a mount, the root of the namespace stands for it.
async fn the_default_directory_is_the_root(t: &ShellTarget) -> LawResult {
    t.files.put("/here", "here\n").await?;
    let default = t.execute(ExecuteRequest::new("pwd; cat here 2>/dev/null; true")).await?;
    let root = t.execute(ExecuteRequest::new("pwd; cat here 2>/dev/null; true").cwd(VfsPath::root())).await?;
    assert_success(&default);
    assert_eq!(default.stdout, root.stdout);
    if t.files.base.is_root() {
        assert!(default.stdout.ends_with("here\n"), "{default:?}");
    }
    Ok(())
}

/// Names that a shell would read as something else, and that would do something else then.
pub(super) const NAMES: [&str; 14] = [
    "two words",
    " around ",
    "it's",
    "\"quoted\"",
    "-n",
    "$HOME",
    "$(touch ran)",
    "`touch ran`",
    "a;touch ran;b",
    "a & b | c > d",
    "*",
    "[ab]?{c}",
    "back\\slash",
    "na\u{ef}ve \u{4e2d}\u{1f600}",
];

/// Names with control characters.
pub(super) const BROKEN: [&str; 4] = ["line\nbreak", "\n", "tab\there", "bell\u{7}\u{1b}[0m"];

async fn a_directory_may_have_any_name(t: &ShellTarget) -> LawResult {
    may_have_any_of(t, &NAMES).await
}

async fn a_directory_may_have_line_breaks_in_its_name(t: &ShellTarget) -> LawResult {
    may_have_any_of(t, &BROKEN).await
}

async fn may_have_any_of(t: &ShellTarget, names: &[&str]) -> LawResult {
    for name in names {
        t.files.put(&format!("/in/{name}/here"), (*name).to_owned()).await?;
        let ended = t.execute(t.command("cat here; echo made >made").cwd(t.files.path(&format!("/in/{name}")))).await?;
        assert_success(&ended);
        assert_eq!(ended.stdout, *name);
        assert_eq!(t.files.text(&format!("/in/{name}/made")).await?, "made\n");
    }
    assert!(!t.files.has("/ran").await? && !t.files.has("/in/ran").await?, "a name is not a command");
    Ok(())
}

async fn a_missing_directory_is_not_found(t: &ShellTarget) -> LawResult {
    t.files.put("/here/file", "x").await?;
    for missing in ["/missing", "/here/missing", "/here/missing/er"] {
        let request = t.command("touch ran").cwd(t.files.path(missing));
        let error = t.assert_refused(request, ErrorKind::NotFound).await;
        assert_eq!(error.path(), Some(t.files.path(missing).as_str()));
    }
    assert_eq!(t.files.tree().await?, ["/here", "/here/file"]);
    Ok(())
}

async fn a_file_is_not_a_directory(t: &ShellTarget) -> LawResult {
    t.files.put("/here/file", "x").await?;
    for file in ["/here/file", "/here/file/below"] {
        let request = t.command("touch ran").cwd(t.files.path(file));
        let error = t.assert_refused(request, ErrorKind::NotADirectory).await;
        assert_eq!(error.path(), Some(t.files.path(file).as_str()));
    }
    assert_eq!(t.files.tree().await?, ["/here", "/here/file"]);
    Ok(())
}

async fn a_link_that_leads_out_is_refused(t: &ShellTarget) -> LawResult {
    assert_success(&t.run("mkdir in; ln -s / out; ln -s .. in/up; ln -s up/.. in/far; ln -s /usr/.. in/round").await?);
    for link in ["/out", "/out/usr", "/in/far", "/in/round"] {
        let request = t.command("pwd -P; ls").cwd(t.files.path(link));
        let answer = super::law_helpers::patiently(link, t.shell().execute(&super::law_helpers::cx(), request)).await;
        let kinds = [ErrorKind::PathEscape, ErrorKind::PermissionDenied, ErrorKind::NotFound];
        t.files.refused_as(answer, &kinds);
    }
    Ok(())
}

async fn a_link_that_stays_inside_is_followed(t: &ShellTarget) -> LawResult {
    t.files.put("/in/deep/here", "here\n").await?;
    assert_success(&t.run("ln -s in/deep link; ln -s ../../link in/deep/round").await?);
    for link in ["/link", "/in/deep/round"] {
        let ended = t.execute(t.command("cat here").cwd(t.files.path(link))).await?;
        assert_success(&ended);
        assert_eq!(ended.stdout, "here\n", "{link}");
    }
    Ok(())
}

async fn changes_to_the_shell_end_with_the_command(t: &ShellTarget) -> LawResult {
    t.files.put("/deep/here", "x").await?;
    let before = t.printed("pwd; umask").await?;
    assert_success(&t.run("cd deep; LEFT=1; export LEFT; umask 077; set -e; f() { :; }").await?);
    assert_eq!(t.printed("pwd; umask").await?, before);
    assert_eq!(t.printed("echo ${LEFT-unset}; false; f 2>/dev/null || echo no f").await?, "unset\nno f\n");
    Ok(())
}

async fn a_command_knows_its_directory_by_the_backends_path(t: &ShellTarget) -> LawResult {
    t.files.put("/deep/er/here", "here\n").await?;
    let ended = t.execute(t.command("pwd").cwd(t.files.path("/deep/er"))).await?;
    assert_eq!(ended.stdout, format!("{}\n", t.files.path("/deep/er")));
    let path = t.files.path("/deep/er/here");
    assert_eq!(t.printed(&format!("cat {path}")).await?, "here\n");
    let ended = t.execute(t.command(format!("cat {path}; echo made >{path}.made")).cwd(t.files.path("/deep"))).await?;
    assert_success(&ended);
    assert_eq!(t.files.text("/deep/er/here.made").await?, "made\n");
    Ok(())
}
