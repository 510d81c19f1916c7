//! System calls as an attacker makes them: by number, with any arguments.
#![expect(unsafe_code, reason = "an attack is a system call that no library makes")]

use std::ffi::CString;

/// Makes a system call, and returns its result or the name of its error.
pub(crate) fn call(number: i64, arguments: [usize; 6]) -> Result<i64, String> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel checks every argument. Pointers among them are to values that outlive the call, and a new
    // process makes only system calls.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// Makes a system call by the 32-bit interface, which a 64-bit process can use, too.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_32_bit(number: u32, arguments: [u32; 3]) -> i32 {
    let [first, second, third] = arguments;
    let result: i32;
    // SAFETY: the kernel checks every argument, and none is a pointer. It changes only the register of the result and
    // the named registers, and `rbx` is restored.
    unsafe {
        std::arch::asm!(
            "xchg {first}, rbx",
            "int 0x80",
            "xchg {first}, rbx",
            first = inout(reg) u64::from(first) => _,
            inout("eax") number => result,
            in("ecx") second,
            in("edx") third,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// Returns the name of the last error.
fn errno() -> String {
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let name = NAMES.iter().find(|(other, _)| *other == code).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("errno {code}"))
}

const NAMES: &[(i32, &str)] = &[
    (libc::EPERM, "EPERM"),
    (libc::ENOENT, "ENOENT"),
    (libc::ESRCH, "ESRCH"),
    (libc::EIO, "EIO"),
    (libc::ENXIO, "ENXIO"),
    (libc::EBADF, "EBADF"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EACCES, "EACCES"),
    (libc::EFAULT, "EFAULT"),
    (libc::EBUSY, "EBUSY"),
    (libc::EEXIST, "EEXIST"),
    (libc::EXDEV, "EXDEV"),
    (libc::ENODEV, "ENODEV"),
    (libc::ENOTDIR, "ENOTDIR"),
    (libc::EISDIR, "EISDIR"),
    (libc::EINVAL, "EINVAL"),
    (libc::ENOTTY, "ENOTTY"),
    (libc::EFBIG, "EFBIG"),
    (libc::ENOSPC, "ENOSPC"),
    (libc::EROFS, "EROFS"),
    (libc::ELOOP, "ELOOP"),
    (libc::ENOSYS, "ENOSYS"),
    (libc::EUSERS, "EUSERS"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
    (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
];

/// Returns the outcome of an attack: `done`, or the error with which it failed.
pub(crate) fn outcome(result: Result<i64, String>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(name) => name,
    }
}

pub(crate) fn text(path: &str) -> CString {
    CString::new(path).expect("no NUL")
}

pub(crate) const HERE: usize = libc::AT_FDCWD as usize;

/// Opens a file; the descriptor stays open.
pub(crate) fn open(path: &str, flags: i32, mode: u32) -> Result<i64, String> {
    let path = text(path);
    call(libc::SYS_openat, [HERE, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0])
}

/// Opens a file and reads from it.
pub(crate) fn read(path: &str) -> Result<String, String> {
    let file = open(path, libc::O_RDONLY, 0)?;
    let mut bytes = vec![0_u8; 4096];
    let length = call(libc::SYS_read, [file as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0])?;
    bytes.truncate(length as usize);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a file for writing, creating it if it is missing, and writes to it.
pub(crate) fn write(path: &str, content: &str) -> Result<i64, String> {
    let file = open(path, libc::O_WRONLY | libc::O_CREAT, 0o644)?;
    call(libc::SYS_write, [file as usize, content.as_ptr() as usize, content.len(), 0, 0, 0])
}

/// Runs `child` in a new process, and returns how that ended: `exit` with its code, or `signal` with a number.
pub(crate) fn in_child(child: impl FnOnce() -> i32) -> Result<String, String> {
    let process = call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0])?;
    if process == 0 {
        let code = child();
        let _ = call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]);
    }
    let mut status = 0_i32;
    call(libc::SYS_wait4, [process as usize, std::ptr::from_mut(&mut status) as usize, 0, 0, 0, 0])?;
    if libc::WIFSIGNALED(status) {
        return Ok(format!("signal {}", libc::WTERMSIG(status)));
    }
    Ok(format!("exit {}", libc::WEXITSTATUS(status)))
}
