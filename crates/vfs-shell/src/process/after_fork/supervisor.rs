//! Main loop of the supervisor: reap children, report the exit, terminate what is left.

use libc::{c_int, pid_t};

use super::process_tree::ProcessTree;
use super::{
    ForkPlan, NO_ORPHANS, ORPHANS_LEFT, RELEASE, STAGE_FORK, close_all_but_started, errno, exit, memory_release,
    program_exec, write_record,
};

/// Descriptors of the supervisor.
const CONTROL: c_int = 0;
const STATUS: c_int = 1;
const HOST: c_int = 2;

/// Upper bound in milliseconds on the pause between two attempts to kill a process that cannot be killed, such as one of
/// another user.
const MAX_KILL_PAUSE_MS: i64 = 500;

/// Stage of the termination.
#[derive(Clone, Copy)]
enum SupervisorPhase {
    /// Not requested.
    Watching,
    /// `SIGTERM` was sent; `SIGKILL` follows at this moment.
    Terminating(i64),
    /// `SIGKILL` has been sent repeatedly since this moment.
    Killing(i64),
}

/// Starts the program and stays until none of its processes is left.
pub(super) fn run(plan: &ForkPlan<'_>) -> ! {
    // SAFETY: every call takes plain numbers or memory that lives here.
    unsafe {
        // If `SIGCHLD` is ignored, as the serving process may do, the kernel discards the exit status.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::setsid();
        let supervisor = libc::getpid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) != 0 {
            write_record(plan.started, [STAGE_FORK, errno()]);
            exit(1);
        }
        libc::prctl(libc::PR_SET_NAME, c"vfs-supervisor".as_ptr());
        // The command must not read this copy of the serving process.
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong);
        let program = start_or_exit(plan, supervisor);
        if program < 0 {
            write_record(plan.started, [STAGE_FORK, errno()]);
            exit(1);
        }
        let (grace, terminal) = (plan.grace, plan.terminal);
        libc::dup2(plan.control, CONTROL);
        libc::dup2(plan.status, STATUS);
        libc::dup2(plan.host, HOST);
        close_all_but_started(plan, 3);
        libc::close(plan.started);
        // The plan lies in released memory and is not used any longer.
        memory_release::release_pages();
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        let children = libc::signalfd(-1, &raw const children, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        supervise(Supervisor { pid: supervisor, program, children, grace, terminal, phase: SupervisorPhase::Watching })
    }
}

/// Calls [`start`] with a death signal set. This process is suspended meanwhile and reads no request, so if the serving
/// process exits, the kernel kills it together with a program that has not executed yet.
fn start_or_exit(plan: &ForkPlan<'_>, supervisor: pid_t) -> pid_t {
    // SAFETY: every call takes plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if is_readable(plan.host) {
            exit(1);
        }
        let program = start(plan, supervisor);
        libc::prctl(libc::PR_SET_PDEATHSIG, 0 as libc::c_ulong);
        program
    }
}

fn is_readable(fd: c_int) -> bool {
    let mut source = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one entry, and it lives.
    unsafe { libc::poll(&raw mut source, 1, 0) > 0 }
}

/// Creates the process that becomes the program and waits until it has executed. Returns a negative number on failure.
///
/// The process runs in this memory, on a stack of its own, so that page tables of a large memory are not copied once more.
/// This process is suspended meanwhile, so nothing else writes to it.
fn start(plan: &ForkPlan<'_>, supervisor: pid_t) -> pid_t {
    let arguments = ChildEntryArguments { plan, supervisor };
    // SAFETY: the stack has the given length, `clone` starts at its end, and it stays mapped. `arguments` and the plan live
    // until this function returns, which by `CLONE_VFORK` is after the other process has stopped using them.
    unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let stack = libc::mmap(std::ptr::null_mut(), STACK_BYTES, access, kind | libc::MAP_STACK, -1, 0);
        if stack == libc::MAP_FAILED {
            return -1;
        }
        // The stack grows down to a page that cannot be written.
        libc::mprotect(stack, GUARD_BYTES, libc::PROT_NONE);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(become_program, stack.byte_add(STACK_BYTES), flags, (&raw const arguments).cast_mut().cast())
    }
}

/// Size in bytes of the stack on which a process becomes the program, including [`confine`](crate::SpawnSpec::confine).
const STACK_BYTES: usize = 1 << 20;

/// Size in bytes of the guard area, at least one page on every system.
const GUARD_BYTES: usize = 1 << 16;

/// Arguments of the process that becomes the program, as `clone` passes them.
struct ChildEntryArguments<'a> {
    plan: &'a ForkPlan<'a>,
    supervisor: pid_t,
}

extern "C" fn become_program(arguments: *mut libc::c_void) -> c_int {
    // SAFETY: `start` passed this pointer to `clone`, and its target lives.
    let ChildEntryArguments { plan, supervisor } = unsafe { &*arguments.cast::<ChildEntryArguments<'_>>() };
    program_exec::run(plan, *supervisor)
}

/// State of the supervisor process.
struct Supervisor {
    pid: pid_t,
    /// Zero once reaped: the kernel may reuse the number.
    program: pid_t,
    /// Readable when a child has exited.
    children: c_int,
    grace: i64,
    terminal: bool,
    phase: SupervisorPhase,
}

fn supervise(mut supervisor: Supervisor) -> ! {
    loop {
        supervisor.reap();
        match supervisor.phase {
            SupervisorPhase::Watching => {}
            SupervisorPhase::Terminating(until) if now_ms() < until => {}
            SupervisorPhase::Terminating(_) => {
                raise_priority();
                supervisor.phase = SupervisorPhase::Killing(now_ms());
                supervisor.kill();
            }
            SupervisorPhase::Killing(_) => supervisor.kill(),
        }
        supervisor.wait();
    }
}

impl Supervisor {
    /// Reaps children, reports the exit of the program, and exits if there are none left.
    fn reap(&mut self) {
        let mut ended = None;
        loop {
            let mut status: c_int = 0;
            // SAFETY: `status` lives.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
            if pid == 0 {
                break;
            } else if pid == self.program {
                ended = Some(status);
                self.program = 0;
            } else if pid < 0 && errno() != libc::EINTR {
                if let Some(status) = ended {
                    write_record(STATUS, [NO_ORPHANS, status]);
                }
                exit(0);
            }
        }
        if let Some(status) = ended {
            write_record(STATUS, [ORPHANS_LEFT, status]);
        }
    }

    /// Sends `SIGKILL` to all descendants.
    fn kill(&self) {
        if !ProcessTree::new(self.pid).for_each_group(|group| signal_processes(group, libc::SIGKILL)) {
            self.signal_program(libc::SIGKILL);
        }
    }

    /// Sends `SIGTERM` to all descendants.
    fn terminate(&mut self) {
        let terminal = self.terminal;
        let has_visited = ProcessTree::new(self.pid).for_each_group(|group| {
            // A shell at a terminal ignores `SIGTERM` but not `SIGHUP`.
            if terminal {
                signal_processes(group, libc::SIGHUP);
            }
            signal_processes(group, libc::SIGTERM);
            signal_processes(group, libc::SIGCONT);
        });
        if !has_visited {
            self.signal_program(libc::SIGTERM);
        }
        self.phase = SupervisorPhase::Terminating(now_ms().saturating_add(self.grace));
    }

    /// Signals the program and its group, which can be reached without `/proc`.
    fn signal_program(&self, signal: c_int) {
        if self.program != 0 {
            signal_processes(self.program.wrapping_neg(), signal);
            signal_processes(self.program, signal);
        }
    }

    /// Waits until a child exits, the serving process sends a request or exits, or the next kill is due.
    fn wait(&mut self) {
        let watching = matches!(self.phase, SupervisorPhase::Watching);
        let timeout = match self.phase {
            SupervisorPhase::Watching => -1,
            SupervisorPhase::Terminating(until) => until.saturating_sub(now_ms()).max(0),
            SupervisorPhase::Killing(since) => (now_ms().saturating_sub(since) >> 3).clamp(1, MAX_KILL_PAUSE_MS),
        };
        let source = |fd, poll| libc::pollfd { fd: if poll { fd } else { -1 }, events: libc::POLLIN, revents: 0 };
        let mut sources = [source(self.children, true), source(CONTROL, watching), source(HOST, watching)];
        // SAFETY: the array lives and has the given length.
        let ready = unsafe { libc::poll(sources.as_mut_ptr(), 3, c_int::try_from(timeout).unwrap_or(c_int::MAX)) };
        if ready <= 0 {
            return;
        }
        let [children, control, host] = sources;
        if children.revents != 0 {
            let mut buffer = [0_u8; 512];
            // SAFETY: the buffer lives and has the given length. Its content is not needed: `waitpid` returns the same.
            unsafe { libc::read(self.children, buffer.as_mut_ptr().cast(), buffer.len()) };
        }
        if control.revents != 0 {
            let mut word = 0_u8;
            // SAFETY: one byte is read into one byte.
            let read = unsafe { libc::read(CONTROL, (&raw mut word).cast(), 1) };
            if read == 1 && word == RELEASE {
                exit(0);
            }
            self.terminate();
        } else if host.revents & libc::POLLIN != 0 {
            self.terminate();
        }
    }
}

fn signal_processes(group: pid_t, signal: c_int) {
    // SAFETY: this only sends a signal, and `group` belongs to the command.
    unsafe { libc::kill(group, signal) };
}

/// Raises the priority above that of the processes to kill, if the user may.
fn raise_priority() {
    // SAFETY: this changes the priority of this process only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

/// Returns the milliseconds of the monotonic clock.
#[allow(clippy::useless_conversion, reason = "some systems have smaller numbers")]
fn now_ms() -> i64 {
    // SAFETY: `time` lives and is written by the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        i64::from(time.tv_sec).saturating_mul(1000).saturating_add(i64::from(time.tv_nsec).wrapping_div(1_000_000))
    }
}
