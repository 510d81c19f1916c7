//! Deny list of programs and builtins that run other commands, or change later ones.

use super::simple_command::{CommandArgument, ParseResult, SimpleCommand};

/// System directories, whose programs are known by their names.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Reserved words. Shells differ on whether these still count as such when quoted or after a redirection.
const GRAMMAR: &str =
    "! { } [[ ]] case coproc do done elif else esac fi for function if in repeat select then time until while";

/// Builtins that run text, set variables from which a command may be built, or change the meaning of a name or a line.
const BUILTINS: &str = ". alias bind builtin command compgen complete declare enable eval exec export fc getopts hash \
                        history jobs let local logout mapfile read readarray readonly set shopt source trap typeset \
                        unalias unset";

/// Programs that read commands, or run the command in their arguments.
const PROGRAMS: &str = "aa-exec aarch64 aarch64_be arm armv7l armv8l ash at bash batch busybox bwrap capsh cgexec \
                        choom chpst chronic chroot chrt coreutils cpulimit csh daemon daemonize dash dbus-launch \
                        dbus-run-session doas dumb-init eatmydata elvish entr env es expect fakeroot faketime \
                        firejail fish flock gdb gosu hush hyperfine i386 i486 i586 i686 ifne ionice ip ksh linux32 \
                        linux64 lksh logsave ltrace mips mips64 mispipe mksh mosh newgrp nice nohup nsenter nu \
                        numactl oksh osh parallel pee perf pkexec posh ppc ppc32 ppc64 ppc64le prlimit proot \
                        proxychains proxychains4 pwsh rbash rc riscv64 rksh rlwrap rsh run-parts run0 runcon runuser \
                        rust-parallel rzsh s390 s390x sash screen script sem setarch setpriv setsid sg sh socat \
                        softlimit sparc sparc64 ssh ssh-agent sshpass start-stop-daemon static-sh stdbuf strace su \
                        su-exec sudo systemd-cat systemd-inhibit systemd-run taskset tcsh timeout tini tmux torsocks \
                        toybox uname26 unbuffer unshare valgrind watch watchexec x86_64 xargs xinit xterm xvfb-run \
                        yash ysh zsh";

/// Programs and builtins that are understood only without these options, including a short option in a cluster.
const OPTIONS: [(&str, &[&str]); 9] = [
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir"]),
    ("printf", &["-v"]),
    ("rg", &["--hostname-bin", "--pre"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    (
        "tar",
        &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
    ("wait", &["-p"]),
];

/// Refuses a command that would run another one, or that changes what a later one runs.
pub(super) fn refuse_indirection(command: &SimpleCommand) -> ParseResult<()> {
    let name = match command.name.rsplit_once('/') {
        None => command.name.as_str(),
        Some((directory, name)) if SYSTEM.contains(&directory) => name,
        Some(_) => return Err("it names a program outside of the directories of the system"),
    };
    // Case-insensitive file systems differ in which letters they fold.
    if name.is_empty() || !name.is_ascii() {
        return Err("the name of a command is not plain");
    }
    let name = name.to_ascii_lowercase();
    let is_listed = |list: &str, name: &str| list.split_whitespace().any(|listed| listed == name);
    if is_listed(GRAMMAR, &name) {
        return Err("it has a construct of the shell's grammar; write simple commands");
    }
    if is_listed(BUILTINS, &name) {
        return Err("it has a builtin that runs text or changes what later commands do");
    }
    // Such as `ksh93`, `bash5.2` or `busybox-static`.
    let is_version = |letter: char| letter.is_ascii_digit() || ".-".contains(letter);
    let family = name.trim_end_matches("static").trim_end_matches(is_version);
    if is_listed(PROGRAMS, &name) || is_listed(PROGRAMS, family) || name.starts_with("ld-") || name.starts_with("ld.so")
    {
        return Err("it has a program that runs other commands");
    }
    let literals = || command.arguments.iter().filter_map(CommandArgument::literal);
    let options = OPTIONS.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
    if literals().any(|word| options.iter().any(|option| may_be_option(word, option))) {
        return Err("it has an option that runs a command or sets a variable");
    }
    // The index of an element is expanded by the builtin, quoted or not.
    if (name == "[" || name == "test") && literals().any(|word| word.contains('[')) {
        return Err("it has a test of an element");
    }
    Ok(())
}

fn may_be_option(word: &str, option: &str) -> bool {
    let Some(cluster) = word.strip_prefix('-') else { return false };
    match (option.strip_prefix("--"), cluster.strip_prefix('-')) {
        (Some(option), Some(long)) => {
            let written = long.split('=').next().unwrap_or(long);
            !written.is_empty() && option.starts_with(written)
        }
        (None, None) if option.len() == 2 => cluster.contains(&option[1..]),
        _ => word == option,
    }
}
