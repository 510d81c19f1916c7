//! The command in a container, under the filter that Podman puts on and under one that forbids namespaces, as Docker's does; as
//! root and as another user.
//!
//! Where no container can be started, these trials show as ignored.
#![expect(clippy::disallowed_methods, reason = "the root of a container is made of the host's own files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

type Outcome = Result<(), Failed>;

/// What Docker's default profile denies of namespaces and mounts to processes without `CAP_SYS_ADMIN`, by the numbers that it
/// answers with. 268,435,456 is `CLONE_NEWUSER`.
const WITHOUT_NAMESPACES: &str = r#"{
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {
            "names": ["unshare", "setns", "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "mount_setattr",
                "sethostname", "setdomainname"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 1
        },
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        {
            "names": ["clone"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 1,
            "args": [{"index": 0, "value": 268435456, "valueTwo": 268435456, "op": "SCMP_CMP_MASKED_EQ"}]
        }
    ]
}"#;

/// A filter of system calls that a container is under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    /// That of Podman: namespaces can be made, but no `/proc` and no name for them.
    Podman,
    /// One that forbids namespaces.
    WithoutNamespaces,
    /// One that refuses this system call.
    Without(&'static str),
}

impl Profile {
    /// What is written for an engine; `None` for its own.
    fn text(self) -> Option<String> {
        match self {
            Profile::Podman => None,
            Profile::WithoutNamespaces => Some(WITHOUT_NAMESPACES.to_owned()),
            Profile::Without(call) => Some(format!(
                r#"{{
                    "defaultAction": "SCMP_ACT_ALLOW",
                    "syscalls": [{{"names": ["{call}"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}}]
                }}"#
            )),
        }
    }
}

/// System calls that some filter refuses, and without which files can be stored all the same.
const DISPENSABLE: [&str; 7] = ["statx", "renameat2", "linkat", "flock", "copy_file_range", "openat2", "faccessat2"];

/// Root, and somebody else.
const USERS: [u32; 2] = [0, 1000];

fn main() -> ExitCode {
    let missing = Container::new().and_then(|container| container.run(Profile::Podman, 0, "true")).err();
    let mut trials = Vec::new();
    for (profile, word) in [(Profile::Podman, "podman"), (Profile::WithoutNamespaces, "without-namespaces")] {
        for user in USERS {
            for &(name, run) in TRIALS {
                let trial = Trial::test(format!("{word}::{user}::{name}"), move || run(profile, user));
                trials.push(match &missing {
                    Some(why) => {
                        trial.with_kind(format!("ignored: {}", why.replace('\n', "; "))).with_ignored_flag(true)
                    }
                    None => trial,
                });
            }
        }
    }
    for call in DISPENSABLE {
        let trial = Trial::test(format!("without-{call}::files_are_written_searched_and_listed"), move || {
            files(Profile::Without(call), 0)
        });
        trials.push(ignored_if(trial, missing.as_deref()));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn ignored_if(trial: Trial, missing: Option<&str>) -> Trial {
    match missing {
        Some(why) => trial.with_kind(format!("ignored: {}", why.replace('\n', "; "))).with_ignored_flag(true),
        None => trial,
    }
}

type Run = fn(Profile, u32) -> Outcome;

const TRIALS: &[(&str, Run)] = &[
    ("files_are_written_searched_and_listed", files),
    ("a_store_keeps_files", store),
    ("changes_are_reported", watched),
    ("a_sandbox_that_cannot_be_had_is_refused_for_one_reason", refused),
    ("namespaces_without_a_proc_of_their_own_need_a_request", visible),
    ("landlock_alone_holds_commands", landlock),
];

fn files(profile: Profile, user: u32) -> Outcome {
    let output = Container::new()?.run(
        profile,
        user,
        "echo one | vfs write /src/a.txt; vfs edit /src/a.txt --old one --new two; vfs grep two; vfs glob '**/*.txt'; vfs ls /src; \
         vfs mv /src/a.txt /b.txt; vfs cp /b.txt /c.txt; vfs rm /b.txt; echo three | vfs write /c.txt --mode overwrite; \
         vfs read /c.txt; vfs cp /src /deep/er; echo x | vfs write /deep/er/x; vfs cp /deep /copy; vfs mv /copy /moved; \
         vfs rm -r /moved; vfs read /deep/er/x; vfs exec -- 'cat c.txt; pwd'",
    )?;
    for line in ["/src/a.txt:1:two", "/src/a.txt", "three", "x", "/files"] {
        ensure(output.lines().any(|output| output == line), line, &output)?;
    }
    let weakness = "vfs: warning: a seccomp filter refuses";
    let is_weaker = matches!(profile, Profile::Without("flock" | "renameat2"));
    ensure(output.contains(weakness) == is_weaker, "a warning if and only if changes are not serialised", &output)?;
    let failed = output.lines().find(|line| line.starts_with("vfs:") && !line.starts_with(weakness));
    ensure(failed.is_none(), "no error", &output)
}

fn store(profile: Profile, user: u32) -> Outcome {
    let script = "vfs --store sqlite:agents.db write /a </etc/passwd; vfs --store sqlite:agents.db read /a";
    let output = Container::new()?.run(profile, user, script)?;
    ensure(output.contains("agent:x:1000"), "the file", &output)
}

fn watched(profile: Profile, user: u32) -> Outcome {
    let output = Container::new()?.run(
        profile,
        user,
        "vfs watch / >/tmp/log & n=0; \
         until grep -q 'created /made' /tmp/log || [ $n -gt 1000 ]; do n=$((n + 1)); echo x | vfs write /made$n; done; \
         kill $!; grep -q 'created /made' /tmp/log && echo reported",
    )?;
    ensure(output.lines().any(|line| line == "reported"), "the change", &output)
}

fn refused(profile: Profile, user: u32) -> Outcome {
    let container = Container::new()?;
    let output = container.run(profile, user, "vfs exec --sandbox -- true; echo \"code $?\"")?;
    for part in ["unsupported", "filter of system calls", "--allow-visible-processes", "--landlock", "code 2"] {
        ensure(output.contains(part), part, &output)?;
    }
    ensure(output.matches("a command could not be started").count() == 1, "the reason once", &output)?;
    let table = container.run(profile, user, "vfs sandbox check; echo \"code $?\"")?;
    ensure(table.contains("as for namespaces") && table.contains("code 1"), "a table", &table)?;
    ensure(table.matches("a command could not be started").count() == 1, "the reason once", &table)
}

fn visible(profile: Profile, user: u32) -> Outcome {
    let output = Container::new()?.run(
        profile,
        user,
        "echo hunter2 >.env; vfs exec --sandbox --allow-visible-processes -- 'pwd; cat .env; tr \"\\0\" \" \" </proc/1/environ; \
         cat /files/.env /etc/shadow; echo done >made'; echo \"code $?\"; cat made; vfs sandbox check --allow-visible-processes",
    )?;
    if profile == Profile::WithoutNamespaces {
        let is_refused = output.contains("code 2") && !output.lines().any(|line| line == "/workspace");
        return ensure(is_refused, "it is refused", &output);
    }
    for line in ["/workspace", "code 0", "done"] {
        ensure(output.lines().any(|output| output == line), line, &output)?;
    }
    ensure(!output.contains("hunter2") && !output.contains("PATH="), "nothing is shown", &output)?;
    let hidden = output.lines().find(|line| line.starts_with("hidden_processes")).unwrap_or_default();
    ensure(hidden.contains("NO        no"), "it says that it is weaker", &output)
}

fn landlock(profile: Profile, user: u32) -> Outcome {
    let output = Container::new()?.run(
        profile,
        user,
        "mkdir src; echo x >/tmp/outside; vfs exec --sandbox --landlock --cwd /src -- 'pwd; echo done >made; cat /tmp/outside; \
         echo changed >/tmp/outside; ls /proc; kill -0 1 && echo reached; cat /etc/passwd'; cat src/made /tmp/outside",
    )?;
    let lines: Vec<_> = output.lines().filter(|line| !line.is_empty() && !line.contains(": ")).collect();
    ensure(lines == ["/files/src", "done", "x"], "the root alone", &output)?;
    ensure(output.matches("ermission denied").count() >= 3, "the rest is denied", &output)
}

fn ensure(holds: bool, expected: &str, output: &str) -> Outcome {
    if holds { Ok(()) } else { Err(format!("expected: {expected}; the container printed:\n{output}").into()) }
}

/// The root of a container that has the programs of this machine, the command, and nothing else.
struct Container {
    home: TempDir,
}

impl Container {
    fn new() -> Result<Self, String> {
        let container = Self { home: tempfile::tempdir().map_err(|error| error.to_string())? };
        container.fill().map_err(|error| format!("the root of a container cannot be made: {error}"))?;
        Ok(container)
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    fn fill(&self) -> std::io::Result<()> {
        for name in ["usr", "proc", "sys", "dev", "run", "tmp", "files", "etc", "command"] {
            fs::create_dir_all(self.root().join(name))?;
        }
        for name in ["tmp", "files"] {
            fs::set_permissions(self.root().join(name), fs::Permissions::from_mode(0o1777))?;
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(Path::new("usr").join(name), self.root().join(name))?;
        }
        fs::write(self.root().join("etc/passwd"), "root:x:0:0::/files:/bin/sh\nagent:x:1000:1000::/files:/bin/sh\n")
    }

    /// What `script` prints, both outputs in one, where `vfs` is the command.
    fn run(&self, profile: Profile, user: u32, script: &str) -> Result<String, String> {
        let mut podman = Command::new("podman");
        // A container gets only a part of the limits of the user who starts it.
        podman.args(["--log-level=error", "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024"]);
        podman.args(["--ulimit=nproc=1024:1024", &format!("--user={user}"), "--workdir=/files"]);
        if let Some(text) = profile.text() {
            let file = self.home.path().join("profile.json");
            fs::write(&file, text).map_err(|error| error.to_string())?;
            podman.arg(format!("--security-opt=seccomp={}", file.display()));
        }
        for shared in ["/usr", "/etc/ld.so.cache"] {
            podman.arg(format!("--volume={shared}:{shared}:ro"));
        }
        podman.arg(format!("--volume={}:/command/vfs:ro", env!("CARGO_BIN_EXE_vfs")));
        podman.args(["--rootfs", &format!("{}:O", self.root().display()), "sh", "-c"]);
        podman.arg(format!("exec 2>&1; PATH=$PATH:/command; {script}; exit 0"));
        let ended = podman.output().map_err(|error| format!("podman cannot be started: {error}"))?;
        let output = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        if ended.status.success() { Ok(output) } else { Err(output) }
    }
}
