//! Filter of system calls for commands, as a BPF program.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::config::UnixSockets;

/// Profile of a seccomp filter: what a command could reach without the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeccompProfile {
    /// Only what its namespaces show.
    Namespaces,
    /// Everything of the host that Landlock does not deny; internet sockets are allowed.
    HostWithInternet,
    /// Everything of the host that Landlock does not deny.
    Host,
}

/// Process to which a filter applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterTarget {
    /// A command.
    Command,
    /// The helper while it mounts covers, and the first process of the namespaces. The helper adds the filter of commands
    /// afterwards, and the first process lacks the capability that the additional calls need.
    Covering,
}

/// The calls that the helper makes to mount covers.
const COVERING: [i64; 3] = [libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_mount_setattr];

/// A process number that Linux never uses, as those end at 4,194,304. The filter denies `kill` with it, which
/// distinguishes this filter from an inherited one.
pub(crate) const FILTER_PROBE_PID: i32 = 0x7666_7331;

/// Condition on one argument of a system call.
type ArgumentCondition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// Returns the filter for this processor: a denied call fails with `EPERM`, an unavailable one with `ENOSYS`.
pub(crate) fn program(
    profile: SeccompProfile,
    unix_sockets: UnixSockets,
    process: FilterTarget,
) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        format!("there is no filter for {} processors; it is written for x86_64 and aarch64", std::env::consts::ARCH)
    })?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let rules = rules(profile, unix_sockets, process).map_err(|error| error.to_string())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).map_err(|error| error.to_string())?;
    let checked: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    let ignored = if profile == SeccompProfile::Namespaces { Vec::new() } else { ignored_calls() };
    Ok(unavailable_calls().into_iter().chain(ignored).chain(checked).collect())
}

/// Encodes a filter as bubblewrap reads it.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.jt, instruction.jf]);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    bytes
}

/// Decodes a filter.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<BpfProgram, String> {
    let (instructions, rest) = bytes.as_chunks::<8>();
    if instructions.is_empty() || !rest.is_empty() {
        return Err(format!("a filter cannot have {} bytes", bytes.len()));
    }
    let instruction = |&[c0, c1, jt, jf, k0, k1, k2, k3]: &[u8; 8]| sock_filter {
        code: u16::from_ne_bytes([c0, c1]),
        jt,
        jf,
        k: u32::from_ne_bytes([k0, k1, k2, k3]),
    };
    Ok(instructions.iter().map(instruction).collect())
}

/// Instructions that fail calls with `ENOSYS`: `clone3` and `openat2`, whose arguments a filter cannot see, so that programs use
/// the older call; and all calls of the x32 interface, whose numbers no rule names.
fn unavailable_calls() -> Vec<sock_filter> {
    const X32: u32 = 0x4000_0000;
    vec![
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_NOT_BELOW, 2, 0, X32),
        instruction(JUMP_IF_EQUAL, 1, 0, libc::SYS_clone3 as u32),
        instruction(JUMP_IF_EQUAL, 0, 1, libc::SYS_openat2 as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ]
}

/// Instructions that report success, without effect, for calls that change mode, owner or times of an open file.
/// Neither Landlock nor a filter can determine whether a command may write to that file. Programs that copy, unpack or
/// compress make these calls for every file that they create, and fail if the calls return an error.
fn ignored_calls() -> Vec<sock_filter> {
    const SECOND_ARGUMENT: [u32; 2] = [24, 28];
    let [low, high] = SECOND_ARGUMENT;
    vec![
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_EQUAL, 6, 0, libc::SYS_fchmod as u32),
        instruction(JUMP_IF_EQUAL, 5, 0, libc::SYS_fchown as u32),
        instruction(JUMP_IF_EQUAL, 0, 5, libc::SYS_utimensat as u32),
        // Without a path, the call is about an open file. Both halves of the pointer count: one of them may be zero.
        instruction(LOAD_WORD, 0, 0, low),
        instruction(JUMP_IF_EQUAL, 0, 3, 0),
        instruction(LOAD_WORD, 0, 0, high),
        instruction(JUMP_IF_EQUAL, 0, 1, 0),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO),
    ]
}

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_NOT_BELOW: u16 = 0x35;
const RETURN: u16 = 0x06;

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn rules(
    profile: SeccompProfile,
    unix_sockets: UnixSockets,
    process: FilterTarget,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let (always, conditional): (Vec<_>, Vec<_>) = conditional_denials(profile, unix_sockets, process)
        .into_iter()
        .partition(|(_, conditions)| conditions.is_empty());
    for (call, conditions) in conditional {
        let conditions = conditions
            .into_iter()
            .map(|(argument, length, operator, value)| SeccompCondition::new(argument, length, operator, value))
            .collect::<Result<Vec<_>, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
    }
    // A call without rules is denied with any arguments.
    rules.extend(always.into_iter().map(|(call, _)| call).chain(ALWAYS.iter().copied()).map(|call| (call, Vec::new())));
    if process == FilterTarget::Covering {
        rules.retain(|call, _| !COVERING.contains(call));
    }
    Ok(rules)
}

/// Calls that are denied with any arguments.
const ALWAYS: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Operations that bypass the filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel's keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    // Parts of the kernel with a history of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    // The machine.
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// `kexec_file_load`, which `libc` lacks for some systems. Architectures newer than x86-64 share one number.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

const OPEN_TREE_ATTR: i64 = 467;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Returns the calls that are denied under conditions, or with any arguments for this `profile`.
fn conditional_denials(
    profile: SeccompProfile,
    unix_sockets: UnixSockets,
    process: FilterTarget,
) -> Vec<(i64, Vec<ArgumentCondition>)> {
    let mut denied = Vec::new();
    deny_namespaces(&mut denied, process);
    deny_terminal_input(&mut denied);
    deny_personalities(&mut denied);
    deny_special_modes(&mut denied);
    deny_packet_sockets(&mut denied);
    // Without this filter, the call fails with `ESRCH`.
    denied.push((libc::SYS_kill, vec![equal(0, FILTER_PROBE_PID as u64), equal(1, 0)]));
    // Without namespaces, every socket of the host has a path that a command can name.
    if unix_sockets == UnixSockets::Deny || profile != SeccompProfile::Namespaces {
        deny_unix_sockets(&mut denied);
    }
    if profile != SeccompProfile::Namespaces {
        deny_attributes(&mut denied);
        deny_other_processes(&mut denied);
    }
    if profile == SeccompProfile::Host {
        for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
            denied.push((libc::SYS_socket, vec![equal(0, family as u64)]));
        }
    }
    denied
}

fn equal(argument: u8, value: u64) -> ArgumentCondition {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn unequal(argument: u8, value: u64) -> ArgumentCondition {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Condition that all of `bits` are set.
fn set(argument: u8, bits: u64) -> ArgumentCondition {
    masked(argument, bits, bits)
}

fn masked(argument: u8, mask: u64, value: u64) -> ArgumentCondition {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

/// Denies new namespaces, except the mount namespace of the helper.
fn deny_namespaces(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>, process: FilterTarget) {
    const NEW_TIME: u64 = 0x80;
    let flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    for flag in flags {
        denied.push((libc::SYS_clone, vec![set(0, flag as u64)]));
        if process != FilterTarget::Covering || flag != libc::CLONE_NEWNS {
            denied.push((libc::SYS_unshare, vec![set(0, flag as u64)]));
        }
    }
    denied.push((libc::SYS_unshare, vec![set(0, NEW_TIME)]));
}

/// Denies input into a terminal that another process reads.
fn deny_terminal_input(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    const TIOCLINUX: u64 = 0x541c;
    #[allow(clippy::unnecessary_cast, reason = "the type of the number depends on the C library")]
    let terminal_input = libc::TIOCSTI as u64;
    denied.push((libc::SYS_ioctl, vec![equal(1, terminal_input)]));
    denied.push((libc::SYS_ioctl, vec![equal(1, TIOCLINUX)]));
}

/// Denies all execution domains but Linux with 32 and 64 bits, and the query.
fn deny_personalities(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    let allowed = [0, 0x0008, 0x20000, 0x20008, 0xffff_ffff];
    denied.push((libc::SYS_personality, allowed.into_iter().map(|persona| unequal(0, persona)).collect()));
}

/// Denies set-user and set-group bits, which a file keeps on the host, and devices.
fn deny_special_modes(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    let creates = libc::O_CREAT as u64;
    let unnamed = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;
    for bit in [u64::from(libc::S_ISUID), u64::from(libc::S_ISGID)] {
        for (call, argument) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)]
        {
            denied.push((call, vec![set(argument, bit)]));
        }
        for flag in [creates, unnamed] {
            denied.push((libc::SYS_openat, vec![set(2, flag), set(3, bit)]));
            #[cfg(target_arch = "x86_64")]
            denied.push((libc::SYS_open, vec![set(1, flag), set(2, bit)]));
        }
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            denied.push((call, vec![set(1, bit)]));
        }
    }
    for kind in [u64::from(libc::S_IFCHR), u64::from(libc::S_IFBLK)] {
        let kinds = u64::from(libc::S_IFMT);
        denied.push((libc::SYS_mknodat, vec![masked(2, kinds, kind)]));
        #[cfg(target_arch = "x86_64")]
        denied.push((libc::SYS_mknod, vec![masked(1, kinds, kind)]));
    }
}

const KIND: u64 = 0xf;

/// Denies packet sockets, and address families that commands do not need.
fn deny_packet_sockets(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    const SOCK_PACKET: u64 = 10;
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    denied.push((libc::SYS_socket, families.iter().map(|&family| unequal(0, family as u64)).collect()));
    denied.push((libc::SYS_socketpair, vec![unequal(0, libc::AF_UNIX as u64)]));
    for family in [libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_RAW as u64, SOCK_PACKET] {
            denied.push((libc::SYS_socket, vec![equal(0, family as u64), masked(1, KIND, kind)]));
        }
    }
    let routes = libc::NETLINK_ROUTE as u64;
    denied.push((libc::SYS_socket, vec![equal(0, libc::AF_NETLINK as u64), unequal(2, routes)]));
}

/// Denies unix sockets that could be connected to one of the host: at a path in a mount, or, without namespaces, at any path. A
/// filter sees no address, so a command cannot connect to its own sockets either. Pairs that stay connected to each other are
/// allowed.
fn deny_unix_sockets(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    denied.push((libc::SYS_socket, vec![equal(0, libc::AF_UNIX as u64)]));
    let lasting = [libc::SOCK_STREAM as u64, libc::SOCK_SEQPACKET as u64];
    let other = (0..=KIND).filter(|kind| !lasting.contains(kind));
    denied.extend(other.map(|kind| (libc::SYS_socketpair, vec![masked(1, KIND, kind)])));
}

/// Denies changes of the attributes of files. Landlock denies them neither by path nor through a file that was opened
/// for reading.
fn deny_attributes(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    let calls = [
        libc::SYS_fchmod,
        libc::SYS_fchown,
        libc::SYS_fsetxattr,
        libc::SYS_fremovexattr,
        libc::SYS_utimensat,
        libc::SYS_fchmodat,
        FCHMODAT2,
        libc::SYS_fchownat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        SETXATTRAT,
        REMOVEXATTRAT,
        FILE_SETATTR,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat,
    ];
    denied.extend(calls.map(|call| (call, Vec::new())));
}

/// Denies access to other processes of the user, and to memory and queues that processes share.
fn deny_other_processes(denied: &mut Vec<(i64, Vec<ArgumentCondition>)>) {
    let shared = [
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        libc::SYS_ioprio_set,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ];
    denied.extend(shared.map(|call| (call, Vec::new())));
    denied.push((libc::SYS_prlimit64, vec![unequal(0, 0)]));
    denied.push((libc::SYS_sched_setaffinity, vec![unequal(0, 0)]));
    denied.push((libc::SYS_setpriority, vec![unequal(0, libc::PRIO_PROCESS as u64)]));
    denied.push((libc::SYS_setpriority, vec![unequal(1, 0)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reach_has_a_program_that_the_kernel_accepts() {
        for profile in [SeccompProfile::Namespaces, SeccompProfile::HostWithInternet, SeccompProfile::Host] {
            for unix_sockets in [UnixSockets::Deny, UnixSockets::Allow] {
                let program = program(profile, unix_sockets, FilterTarget::Command).expect("compiles");
                assert!(program.len() < 4096, "{profile:?}: {}", program.len());
                assert_eq!(from_bytes(&bytes(&program)).expect("it is whole"), program);
            }
        }
        for broken in [&[][..], &[0; 7], &[0; 12]] {
            from_bytes(broken).expect_err("it is no program");
        }
    }

    #[test]
    fn a_call_that_is_always_denied_has_no_conditions() {
        let rules = rules(SeccompProfile::Host, UnixSockets::Deny, FilterTarget::Command).expect("rules");
        for call in ALWAYS {
            assert!(rules[call].is_empty(), "call {call}");
        }
    }

    #[test]
    fn covers_need_four_calls_that_commands_do_not_get() {
        let rules = |process| rules(SeccompProfile::Namespaces, UnixSockets::Deny, process).expect("rules");
        let (command, covering) = (rules(FilterTarget::Command), rules(FilterTarget::Covering));
        let missing: Vec<i64> = command.keys().filter(|call| !covering.contains_key(call)).copied().collect();
        let mut expected = COVERING;
        expected.sort_unstable();
        assert_eq!(missing, expected);
        assert_eq!(command[&libc::SYS_unshare].len(), covering[&libc::SYS_unshare].len() + 1, "but for the mounts");
        assert!(covering.keys().all(|call| command.contains_key(call)));
    }
}
