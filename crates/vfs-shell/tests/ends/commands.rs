//! Commands that resist termination. Each prints `begun` and creates a file of that name.

use std::fs;

use libtest_mimic::Trial;
use vfs_shell::Limits;

/// Upper bound on the processes of a fork bomb.
const MOST_PROCESSES: u64 = 40;

/// Number of processes that proves the fork bomb runs: other processes of its user may use up the rest of the limit.
const BOMB_PROCESSES: usize = 10;

/// Command that resists termination.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    /// Minimum number of processes once the whole command runs.
    pub(crate) processes: usize,
    needs: Needs,
}

#[derive(PartialEq)]
enum Needs {
    Nothing,
    /// Limit on processes. The kernel does not apply it to root, so the command runs as another user.
    ProcessLimit,
}

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "forks",
        script: "echo begun; : >begun; sleep 1000 & sleep 1000 & (sleep 1000; sleep 1000) & sleep 1000",
        processes: 4,
        needs: Needs::Nothing,
    },
    Command {
        name: "ignores_termination",
        script: "trap '' TERM HUP INT; echo begun; : >begun; while :; do sleep 1; done",
        processes: 1,
        needs: Needs::Nothing,
    },
    Command {
        name: "becomes_a_daemon",
        script: "echo begun; : >begun; setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 1000 &); sleep 1000; sleep 1000' >/dev/null 2>&1 & sleep 1000",
        processes: 4,
        needs: Needs::Nothing,
    },
    Command {
        name: "forks_twice_and_is_adopted",
        script: "trap '' TERM; echo begun; : >begun; (setsid sh -c '(setsid sh -c \"sleep 1000; sleep 1000\" &)' &) ; (sleep 1000 &); sleep 1000; sleep 1000",
        processes: 5,
        needs: Needs::Nothing,
    },
    Command {
        name: "holds_its_outputs_open",
        script: "echo begun; : >begun; (trap '' TERM; setsid sleep 1000 & sleep 1000) & sleep 1000",
        processes: 3,
        needs: Needs::Nothing,
    },
    Command { name: "floods", script: "echo begun; : >begun; yes & yes >&2", processes: 2, needs: Needs::Nothing },
    Command {
        name: "floods_and_ignores_termination",
        script: "trap '' TERM; echo begun; : >begun; yes & yes >&2 & cat /dev/zero",
        processes: 3,
        needs: Needs::Nothing,
    },
    Command {
        name: "never_stays_the_same_process",
        // Each starts another process in a session of its own, and exits.
        script: r#"trap '' TERM; echo begun; : >begun; R='trap "" TERM; setsid sh -c "$R" & exit'; export R; sh -c "$R"; sleep 1000; sleep 1000"#,
        processes: 2,
        needs: Needs::Nothing,
    },
    Command {
        name: "is_stopped",
        script: "echo begun; (kill -STOP $$; : >begun) & sleep 1000",
        processes: 1,
        needs: Needs::Nothing,
    },
    Command { name: "is_a_fork_bomb", script: BOMB, processes: BOMB_PROCESSES, needs: Needs::ProcessLimit },
    Command {
        name: "is_a_fork_bomb_of_sessions",
        script: SESSION_BOMB,
        processes: BOMB_PROCESSES,
        needs: Needs::ProcessLimit,
    },
];

/// Fork bomb: each process forks forever, whether or not the fork succeeds. The process that is waited for only sleeps.
const BOMB: &str = r#"echo begun; : >begun
BOMB='$SIG{TERM} = "IGNORE"; while (1) { fork }'
if [ "$(id -u)" = 0 ]; then setpriv --reuid=47110 --regid=47110 --clear-groups perl -e "$BOMB" & else perl -e "$BOMB" & fi
exec sleep 1000"#;

/// Fork bomb whose processes are in sessions of their own.
const SESSION_BOMB: &str = r#"echo begun; : >begun
BOMB='use POSIX; $SIG{TERM} = "IGNORE"; while (1) { my $pid = fork; POSIX::setsid() if defined $pid && !$pid }'
if [ "$(id -u)" = 0 ]; then setpriv --reuid=47110 --regid=47110 --clear-groups perl -e "$BOMB" & else perl -e "$BOMB" & fi
exec sleep 1000"#;

impl Command {
    pub(crate) fn limits(&self) -> Limits {
        match self.needs {
            Needs::Nothing => Limits::default(),
            // The limit counts the processes that this user runs already, too.
            Needs::ProcessLimit if rustix::process::geteuid().is_root() => Limits::default().processes(MOST_PROCESSES),
            Needs::ProcessLimit => Limits::default().processes(threads_of_this_user() + MOST_PROCESSES),
        }
    }

    pub(crate) fn ignored_where_it_cannot_run(&self, trial: Trial) -> Trial {
        let needed = ["/usr/bin/perl", "/usr/bin/setpriv"];
        let missing = needed.into_iter().find(|program| !fs::exists(program).unwrap_or(false));
        match missing {
            Some(program) if self.needs == Needs::ProcessLimit => {
                trial.with_kind(format!("ignored: {program} is missing")).with_ignored_flag(true)
            }
            _ => trial,
        }
    }
}

fn threads_of_this_user() -> u64 {
    let us = rustix::process::geteuid().as_raw();
    let status = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("status")).unwrap_or_default();
    let value = |status: &str, name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let all = fs::read_dir("/proc").expect("processes are listed").flatten().map(status);
    all.filter(|status| value(status, "Uid:") == Some(us.into())).filter_map(|status| value(&status, "Threads:")).sum()
}
