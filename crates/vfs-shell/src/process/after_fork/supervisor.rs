//! The supervisor's side: it waits, tells, and ends what is left.

use libc::{c_int, pid_t};

use super::descendants::Descendants;
use super::{ALONE, FORKING, LEAVING_OTHERS, Plan, RELEASE, close_all_but_started, errno, exit, memory, program, tell};

/// The supervisor's descriptors.
const CONTROL: c_int = 0;
const STATUS: c_int = 1;
const HOST: c_int = 2;

/// The longest pause between two attempts to kill what cannot be killed, such as a process of another user, in milliseconds.
const LONGEST_PAUSE: i64 = 500;

/// What is to be done with the processes.
#[derive(Clone, Copy)]
enum Phase {
    /// Nothing.
    Watching,
    /// They were asked to end, and are killed from this moment on.
    Asked(i64),
    /// They have been killed since this moment, again and again.
    Killing(i64),
}

/// Starts the program, and stays until nothing of it is left.
pub(super) fn run(plan: &Plan<'_>) -> ! {
    // SAFETY: every call is on plain numbers, or on memory that lives here.
    unsafe {
        // Ignored in the serving process, it would take away how the program ended.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::setsid();
        let me = libc::getpid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) != 0 {
            tell(plan.started, [FORKING, errno()]);
            exit(1);
        }
        libc::prctl(libc::PR_SET_NAME, c"vfs-supervisor".as_ptr());
        // The command must not look into this copy of the serving process.
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong);
        let program = start_or_end(plan, me);
        if program < 0 {
            tell(plan.started, [FORKING, errno()]);
            exit(1);
        }
        let (grace, terminal) = (plan.grace, plan.terminal);
        libc::dup2(plan.control, CONTROL);
        libc::dup2(plan.status, STATUS);
        libc::dup2(plan.host, HOST);
        close_all_but_started(plan, 3);
        libc::close(plan.started);
        // The plan, which is in such memory, is not used any longer.
        memory::give_back();
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        let children = libc::signalfd(-1, &raw const children, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        supervise(Supervisor { me, program, children, grace, terminal, phase: Phase::Watching })
    }
}

/// As [`start`]. This process stands still meanwhile and hears nothing, so should the serving process go, the kernel ends it,
/// and with it what has not become the program.
fn start_or_end(plan: &Plan<'_>, me: pid_t) -> pid_t {
    // SAFETY: every call is on plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if is_readable(plan.host) {
            exit(1);
        }
        let program = start(plan, me);
        libc::prctl(libc::PR_SET_PDEATHSIG, 0 as libc::c_ulong);
        program
    }
}

fn is_readable(fd: c_int) -> bool {
    let mut source = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one, and it lives.
    unsafe { libc::poll(&raw mut source, 1, 0) > 0 }
}

/// Makes the process that becomes the program, and waits until it is that. Below 0 where it cannot be made.
///
/// It runs in this process' memory, on a stack of its own, so that the tables of a memory that may be huge are not copied
/// once more. Nothing is written meanwhile: this process stands still.
fn start(plan: &Plan<'_>, me: pid_t) -> pid_t {
    let beginning = Beginning { plan, me };
    // SAFETY: the stack is as long as is said, ends where `clone` begins with it, and is left mapped. `beginning` and the
    // plan live until this function returns, which by `CLONE_VFORK` is after the other process has done with them.
    unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let stack = libc::mmap(std::ptr::null_mut(), STACK, access, kind | libc::MAP_STACK, -1, 0);
        if stack == libc::MAP_FAILED {
            return -1;
        }
        // It grows down to a page that nothing can be written to.
        libc::mprotect(stack, GUARD, libc::PROT_NONE);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(become_program, stack.byte_add(STACK), flags, (&raw const beginning).cast_mut().cast())
    }
}

/// The stack on which a process becomes the program, in bytes. What a launch does to confine it is there, too.
const STACK: usize = 1 << 20;

/// At least a page of any system.
const GUARD: usize = 1 << 16;

struct Beginning<'a> {
    plan: &'a Plan<'a>,
    me: pid_t,
}

extern "C" fn become_program(beginning: *mut libc::c_void) -> c_int {
    // SAFETY: it is what `start` gave to `clone`, and lives.
    let Beginning { plan, me } = unsafe { &*beginning.cast::<Beginning<'_>>() };
    program::run(plan, *me)
}

struct Supervisor {
    me: pid_t,
    /// 0 when it has been buried: the number may be another's by then.
    program: pid_t,
    /// Readable when a child has ended.
    children: c_int,
    grace: i64,
    terminal: bool,
    phase: Phase,
}

fn supervise(mut this: Supervisor) -> ! {
    loop {
        this.reap();
        match this.phase {
            Phase::Watching => {}
            Phase::Asked(until) if now() < until => {}
            Phase::Asked(_) => {
                go_first();
                this.phase = Phase::Killing(now());
                this.kill();
            }
            Phase::Killing(_) => this.kill(),
        }
        this.wait();
    }
}

impl Supervisor {
    /// Buries children that ended, tells how the program did, and ends when there are none.
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
                    tell(STATUS, [ALONE, status]);
                }
                exit(0);
            }
        }
        if let Some(status) = ended {
            tell(STATUS, [LEAVING_OTHERS, status]);
        }
    }

    /// Kills all there are.
    fn kill(&self) {
        if !Descendants::of(self.me).each(|group| signal_group(group, libc::SIGKILL)) {
            self.signal_program(libc::SIGKILL);
        }
    }

    /// Asks all there are to end.
    fn ask(&mut self) {
        let terminal = self.terminal;
        let could_look = Descendants::of(self.me).each(|group| {
            // A shell at a terminal heeds this one only.
            if terminal {
                signal_group(group, libc::SIGHUP);
            }
            signal_group(group, libc::SIGTERM);
            signal_group(group, libc::SIGCONT);
        });
        if !could_look {
            self.signal_program(libc::SIGTERM);
        }
        self.phase = Phase::Asked(now().saturating_add(self.grace));
    }

    /// Signals what can be reached without knowing who descends from whom: the program and its group.
    fn signal_program(&self, signal: c_int) {
        if self.program != 0 {
            signal_group(self.program.wrapping_neg(), signal);
            signal_group(self.program, signal);
        }
    }

    /// Waits for a child to end, for a word of the serving process, or until it is time to kill.
    fn wait(&mut self) {
        let watching = matches!(self.phase, Phase::Watching);
        let timeout = match self.phase {
            Phase::Watching => -1,
            Phase::Asked(until) => until.saturating_sub(now()).max(0),
            Phase::Killing(since) => (now().saturating_sub(since) >> 3).clamp(1, LONGEST_PAUSE),
        };
        let source = |fd, wanted| libc::pollfd { fd: if wanted { fd } else { -1 }, events: libc::POLLIN, revents: 0 };
        let mut sources = [source(self.children, true), source(CONTROL, watching), source(HOST, watching)];
        // SAFETY: the array lives, and is as long as is said.
        let ready = unsafe { libc::poll(sources.as_mut_ptr(), 3, c_int::try_from(timeout).unwrap_or(c_int::MAX)) };
        if ready <= 0 {
            return;
        }
        let [children, control, host] = sources;
        if children.revents != 0 {
            let mut told = [0_u8; 512];
            // SAFETY: the buffer lives, and is as long as is said. What it is told is found out by waiting.
            unsafe { libc::read(self.children, told.as_mut_ptr().cast(), told.len()) };
        }
        if control.revents != 0 {
            let mut word = 0_u8;
            // SAFETY: one byte is read into one.
            let read = unsafe { libc::read(CONTROL, (&raw mut word).cast(), 1) };
            if read == 1 && word == RELEASE {
                exit(0);
            }
            self.ask();
        } else if host.revents & libc::POLLIN != 0 {
            self.ask();
        }
    }
}

fn signal_group(group: pid_t, signal: c_int) {
    // SAFETY: it sends a signal, and `group` is one of the command's.
    unsafe { libc::kill(group, signal) };
}

/// Takes the processor before those that are to be killed, where this user may.
fn go_first() {
    // SAFETY: it changes this process' priority only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

/// Milliseconds of a clock that goes on steadily.
#[allow(clippy::useless_conversion, reason = "some systems have smaller numbers")]
fn now() -> i64 {
    // SAFETY: `time` lives, and is written by the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        i64::from(time.tv_sec).saturating_mul(1000).saturating_add(i64::from(time.tv_nsec).wrapping_div(1_000_000))
    }
}
