//! Environment variables of commands.

use std::process::{Command, exit};

use super::ShellTarget;
use super::law_helpers::assert_success;
use crate::laws::LawResult;
use vfs_core::ErrorKind;

shell_laws! { "environment":
    "XV1" has() the_environment_is_not_passed_on_by_default,
    "XV2" has() passed_variables_arrive_byte_for_byte in Wrapper,
    "XV3" has(InheritedEnvironment) the_environment_is_passed_on_by_request,
    "XV4" has(InheritedEnvironment) variables_that_look_like_secrets_are_not_passed_on,
    "XV5" has(InheritedEnvironment) passed_variables_override_inherited_ones,
    "XV6" lacks(InheritedEnvironment) an_environment_that_cannot_be_inherited_is_refused,
    "XV7" has() base_programs_are_found_by_default,
}

/// In the environment of a process that checks laws; every command may see it that inherits.
const PLAIN: (&str, &str) = ("VFS_LAWS_PLAIN", "for all to see");

/// Another variable of the environment, which no command may see.
const SECRET: &str = "not-for-commands-4711";

/// The names of variables that contain it.
const SECRETS: [&str; 8] = [
    "VFS_LAWS_API_KEY",
    "VFS_LAWS_ACCESS_TOKEN",
    "VFS_LAWS_PASSWORD",
    "VFS_LAWS_CLIENT_SECRET",
    "VFS_LAWS_CREDENTIALS",
    "VFS_LAWS_PRIVATE_KEY",
    "vfs_laws_auth_token",
    "AWS_SECRET_ACCESS_KEY",
];

/// Runs this program again with variables that the laws of environments look for, and ends with it; returns where it has
/// them. For the beginning of a `main` which runs [`shell_trials`](super::shell_trials).
///
/// # Panics
///
/// If the program cannot be run again.
pub fn plant_environment() {
    if is_planted() {
        return;
    }
    let program = std::env::current_exe().expect("the path of the running program is available");
    let again = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(PLAIN.0, PLAIN.1)
        .envs(SECRETS.map(|name| (name, SECRET)))
        .status()
        .expect("what ran can be run again");
    exit(again.code().unwrap_or(101));
}

fn is_planted() -> bool {
    std::env::var(PLAIN.0).is_ok_and(|value| value == PLAIN.1)
        && SECRETS.iter().all(|name| std::env::var(name).is_ok_and(|value| value == SECRET))
}

/// Variables that every shell sets itself, or passes to every command.
const USUAL: [&str; 15] = [
    "PATH", "PWD", "OLDPWD", "SHLVL", "_", "HOME", "SHELL", "TERM", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR",
    "TZ", "HOSTNAME",
];

async fn the_environment_is_not_passed_on_by_default(t: &ShellTarget) -> LawResult {
    let printed = t.printed("env").await?;
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let line = format!("{name}={}", value.lines().next().unwrap_or_default());
        assert!(USUAL.contains(&&*name) || printed.lines().all(|seen| seen != line), "{name} leaked into {printed}");
    }
    assert_eq!(t.printed("echo \"${VFS_LAWS_NEVER_SET-unset}\"").await?, "unset\n");
    Ok(())
}

async fn passed_variables_arrive_byte_for_byte(t: &ShellTarget) -> LawResult {
    for value in [
        "plain",
        "",
        " two  words ",
        "a\nb\n",
        "'single' \"double\" `back` $(touch ran) $HOME \\n",
        "-n",
        "A=B",
        "na\u{ef}ve \u{1f600}",
        "*",
        "; touch ran",
    ] {
        let ended = t.execute(t.command("printf '[%s]' \"${GIVEN-unset}\"").env("GIVEN", value)).await?;
        assert_success(&ended);
        assert_eq!(ended.stdout, format!("[{value}]"));
    }
    assert!(!t.files.has("/ran").await?, "a value is not a command");
    let many =
        (0..200).fold(t.command("echo $V7 $V199"), |request, n| request.env(format!("V{n}"), format!("value{n}")));
    assert_eq!(t.execute(many).await?.stdout, "value7 value199\n");
    Ok(())
}

fn assert_planted() {
    assert!(is_planted(), "call `vfs_testkit::plant_environment` at the beginning of `main`");
}

async fn the_environment_is_passed_on_by_request(t: &ShellTarget) -> LawResult {
    assert_planted();
    let command = format!("echo \"${{{}-unset}}\"", PLAIN.0);
    assert_eq!(t.execute(t.command(&*command).inherit_env()).await?.stdout, format!("{}\n", PLAIN.1));
    assert_eq!(t.run(&command).await?.stdout, "unset\n");
    Ok(())
}

async fn variables_that_look_like_secrets_are_not_passed_on(t: &ShellTarget) -> LawResult {
    assert_planted();
    let ended = t.execute(t.command("env; cat /proc/self/environ 2>/dev/null; true").inherit_env()).await?;
    assert_success(&ended);
    assert!(ended.stdout.contains(PLAIN.0), "it is inherited: {}", ended.stdout);
    for line in ended.stdout.split(['\n', '\0']) {
        assert!(!line.contains(SECRET), "passed on: {line}");
    }
    let request = t.command("echo $VFS_LAWS_API_KEY").inherit_env().env("VFS_LAWS_API_KEY", "given");
    assert_eq!(t.execute(request).await?.stdout, "given\n", "a secret that the request sets is passed");
    Ok(())
}

async fn passed_variables_override_inherited_ones(t: &ShellTarget) -> LawResult {
    assert_planted();
    let command = format!("echo \"${{{}-unset}}\"", PLAIN.0);
    for value in ["mine", ""] {
        let ended = t.execute(t.command(&*command).inherit_env().env(PLAIN.0, value)).await?;
        assert_eq!(ended.stdout, format!("{value}\n"));
    }
    Ok(())
}

async fn an_environment_that_cannot_be_inherited_is_refused(t: &ShellTarget) -> LawResult {
    t.assert_refused(t.command("touch ran").inherit_env(), ErrorKind::Unsupported).await;
    assert!(!t.files.has("/ran").await?, "what is refused does not run");
    Ok(())
}

async fn base_programs_are_found_by_default(t: &ShellTarget) -> LawResult {
    t.files.put("/words", "b\na\nb\n").await?;
    assert_eq!(t.printed("sort words | uniq -c | wc -l | tr -d ' '").await?, "2\n");
    assert_eq!(t.printed("head -n 1 words; tail -n 1 words; grep -c b words").await?, "b\nb\n2\n");
    Ok(())
}
