//! Arguments of bubblewrap.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::Network;
use crate::namespaces::system_files::{CommandUser, SystemFiles};
use crate::protect::nested_covers;

/// Source of a bind mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BindSource {
    /// The file at this path of the host when bubblewrap starts.
    Path(PathBuf),
    /// The file that is open as this descriptor.
    Descriptor(i32),
}

/// A mount over a path of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoveringMount {
    /// A writable directory or file. As a mount point it cannot be moved, so the paths below it stay in place.
    Writable(BindSource),
    /// A read-only directory or file.
    ReadOnly(BindSource),
    /// An empty file that cannot be opened, with its content from this descriptor.
    HiddenFile(i32),
    /// An empty directory that cannot be opened.
    HiddenDirectory,
    /// An empty directory that can be listed.
    EmptyDirectory,
}

/// Whether a command gets a terminal session of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetsidMode {
    /// A session of its own, without a terminal.
    New,
    /// The session of a terminal that was created for it.
    OfTerminal,
}

/// Whether a command sees the processes of the host and its host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostProcessVisibility {
    /// The command has a `/proc` and a host name of its own.
    Hidden,
    /// The command has those of this process, for containers whose filter forbids others.
    Visible,
}

/// How commands are prevented from creating user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserNamespacePrevention {
    /// By an option of bubblewrap.
    Disabled,
    /// By the filter of system calls alone, since this version of bubblewrap has no option.
    LeftToFilter,
}

/// What the helper is given to mount covers deep in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelperMountSupport {
    /// Nothing: it mounts none.
    None,
    /// The capability to mount, and an empty file and directory; the content of the file comes from this descriptor.
    Made(i32),
}

/// Inputs of the arguments of bubblewrap.
#[derive(Debug)]
pub(crate) struct BubblewrapPlan<'a> {
    pub(crate) system: &'a SystemFiles,
    pub(crate) tools: &'a [PathBuf],
    pub(crate) network: Network,
    pub(crate) session: SetsidMode,
    pub(crate) identity: CommandUser,
    pub(crate) outside: HostProcessVisibility,
    pub(crate) nested_users: UserNamespacePrevention,
    pub(crate) tmp_bytes: u64,
    /// Generated files, with the descriptors that have their content.
    pub(crate) written: Vec<(i32, PathBuf)>,
    /// Mounts over the tree, with their paths.
    pub(crate) covers: Vec<(String, CoveringMount)>,
    /// Requirements of the helper for mounting covers.
    pub(crate) nested: HelperMountSupport,
    /// A descriptor that stays open as long as a process runs inside.
    pub(crate) lock: Option<i32>,
    pub(crate) filter: Option<i32>,
    pub(crate) directory: &'a str,
}

/// Returns the arguments for `plan`, up to the command.
pub(crate) fn arguments(plan: &BubblewrapPlan<'_>) -> Vec<OsString> {
    let mut line = BubblewrapArguments(Vec::with_capacity(128));
    add_isolation(&mut line, plan);
    add_system(&mut line, plan);
    for (at, cover) in &plan.covers {
        add_cover(&mut line, at, cover);
    }
    line.words(["--remount-ro", "/dev", "--remount-ro", "/"]);
    if let Some(lock) = plan.lock {
        line.words(["--sync-fd", &lock.to_string()]);
    }
    if let Some(filter) = plan.filter {
        line.words(["--seccomp", &filter.to_string()]);
    }
    line.words(["--chdir", plan.directory, "--"]);
    line.0
}

fn add_isolation(line: &mut BubblewrapArguments, plan: &BubblewrapPlan<'_>) {
    line.words(["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]);
    if plan.network == Network::Off {
        line.words(["--unshare-net"]);
    }
    if plan.outside == HostProcessVisibility::Hidden {
        line.words(["--hostname", "sandbox"]);
    }
    line.words(["--die-with-parent"]);
    if plan.session == SetsidMode::New {
        line.words(["--new-session"]);
    }
    if plan.nested_users == UserNamespacePrevention::Disabled {
        line.words(["--disable-userns"]);
    }
    if plan.identity == CommandUser::Ordinary {
        let id = CommandUser::ORDINARY.to_string();
        line.words(["--uid", &id, "--gid", &id, "--cap-drop", "ALL"]);
    }
    if plan.nested != HelperMountSupport::None {
        line.words(["--cap-add", "CAP_SYS_ADMIN"]);
    }
}

fn add_system(line: &mut BubblewrapArguments, plan: &BubblewrapPlan<'_>) {
    for directory in &plan.system.directories {
        line.same("--ro-bind", directory);
    }
    for (target, at) in &plan.system.links {
        line.0.extend(["--symlink".into(), target.into(), at.into()]);
    }
    for path in &plan.system.settings {
        line.same("--ro-bind-try", path);
    }
    for (descriptor, at) in &plan.written {
        line.words(["--perms", "0444", "--file", &descriptor.to_string()]);
        line.0.push(at.into());
    }
    if let HelperMountSupport::Made(empty) = plan.nested {
        line.words(["--perms", "0000", "--file", &empty.to_string(), nested_covers::HIDDEN_FILE]);
        line.words(["--perms", "0000", "--dir", nested_covers::HIDDEN_DIRECTORY]);
    }
    let shared = plan.tmp_bytes.min(64 << 20).to_string();
    match plan.outside {
        HostProcessVisibility::Hidden => line.words(["--proc", "/proc"]),
        HostProcessVisibility::Visible => line.words(["--ro-bind", "/proc", "/proc"]),
    }
    line.words(["--dev", "/dev"]);
    if plan.identity == CommandUser::Ordinary {
        for path in &plan.system.kernel_settings {
            line.same("--ro-bind", path);
        }
        for path in &plan.system.kernel_memory {
            line.0.extend(["--ro-bind".into(), "/dev/null".into(), path.into()]);
        }
    }
    line.words(["--perms", "1777", "--size", &shared, "--tmpfs", "/dev/shm"]);
    line.words(["--perms", "1777", "--size", &plan.tmp_bytes.to_string(), "--tmpfs", "/tmp"]);
    for tool in plan.tools {
        line.same("--ro-bind", tool);
    }
}

fn add_cover(line: &mut BubblewrapArguments, at: &str, cover: &CoveringMount) {
    match cover {
        CoveringMount::Writable(source) => line.bind(BindAccess::Writable, source, at),
        CoveringMount::ReadOnly(source) => line.bind(BindAccess::ReadOnly, source, at),
        CoveringMount::HiddenFile(empty) => line.words(["--perms", "0000", "--ro-bind-data", &empty.to_string(), at]),
        CoveringMount::HiddenDirectory => add_directory(line, at, "0000"),
        CoveringMount::EmptyDirectory => add_directory(line, at, "0555"),
    }
}

fn add_directory(line: &mut BubblewrapArguments, at: &str, mode: &str) {
    line.words(["--perms", mode, "--size", "4096", "--tmpfs", at, "--remount-ro", at]);
}

/// Access of a bind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BindAccess {
    ReadOnly,
    Writable,
}

/// Builder of the argument list.
struct BubblewrapArguments(Vec<OsString>);

impl BubblewrapArguments {
    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.0.extend(words.into_iter().map(OsString::from));
    }

    fn same(&mut self, option: &str, path: &std::path::Path) {
        self.0.extend([option.into(), path.into(), path.into()]);
    }

    fn bind(&mut self, access: BindAccess, source: &BindSource, at: &str) {
        let (option, source): (&str, OsString) = match (access, source) {
            (BindAccess::Writable, BindSource::Path(path)) => ("--bind", path.into()),
            (BindAccess::ReadOnly, BindSource::Path(path)) => ("--ro-bind", path.into()),
            (BindAccess::Writable, BindSource::Descriptor(number)) => ("--bind-fd", number.to_string().into()),
            (BindAccess::ReadOnly, BindSource::Descriptor(number)) => ("--ro-bind-fd", number.to_string().into()),
        };
        self.0.extend([option.into(), source, at.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> SystemFiles {
        SystemFiles {
            directories: vec!["/usr".into()],
            links: vec![("usr/bin".into(), "/bin".into())],
            settings: vec!["/etc/alternatives".into()],
            setting_files: Vec::new(),
            kernel_settings: vec!["/proc/sys".into()],
            kernel_memory: vec!["/proc/kcore".into()],
        }
    }

    fn plan(system: &SystemFiles) -> BubblewrapPlan<'_> {
        BubblewrapPlan {
            system,
            tools: &[],
            network: Network::Off,
            session: SetsidMode::New,
            outside: HostProcessVisibility::Hidden,
            identity: CommandUser::Same,
            nested_users: UserNamespacePrevention::LeftToFilter,
            tmp_bytes: 4096,
            written: Vec::new(),
            covers: Vec::new(),
            nested: HelperMountSupport::None,
            lock: None,
            filter: None,
            directory: "/",
        }
    }

    fn argument_line(plan: &BubblewrapPlan<'_>) -> String {
        let words: Vec<_> = arguments(plan).into_iter().map(|word| word.into_string().expect("UTF-8")).collect();
        words.join(" ")
    }

    #[test]
    fn minimal_arguments() {
        assert_eq!(
            argument_line(&plan(&system())),
            "--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --unshare-net \
             --hostname sandbox --die-with-parent --new-session --ro-bind /usr /usr --symlink usr/bin /bin \
             --ro-bind-try /etc/alternatives /etc/alternatives --proc /proc --dev /dev \
             --perms 1777 --size 4096 --tmpfs /dev/shm --perms 1777 --size 4096 --tmpfs /tmp \
             --remount-ro /dev --remount-ro / --chdir / --"
        );
    }

    /// Arguments that a setting adds (`+`) or removes (`-`).
    #[test]
    fn each_setting_changes_its_arguments() {
        type PlanEdit = fn(&mut BubblewrapPlan<'_>);
        let table: &[(&str, PlanEdit)] = &[
            ("- --unshare-net", |plan| plan.network = Network::Host),
            ("- --new-session", |plan| plan.session = SetsidMode::OfTerminal),
            ("+ --disable-userns", |plan| plan.nested_users = UserNamespacePrevention::Disabled),
            ("- --hostname sandbox", |plan| plan.outside = HostProcessVisibility::Visible),
            ("+ --ro-bind /proc /proc --dev /dev", |plan| plan.outside = HostProcessVisibility::Visible),
            ("+ --uid 1000 --gid 1000 --cap-drop ALL", |plan| plan.identity = CommandUser::Ordinary),
            ("+ --dev /dev --ro-bind /proc/sys /proc/sys --ro-bind /dev/null /proc/kcore --perms", |plan| {
                plan.identity = CommandUser::Ordinary;
            }),
            ("+ --seccomp 7 --chdir / --", |plan| plan.filter = Some(7)),
            ("+ --perms 0444 --file 5 /etc/passwd", |plan| plan.written = vec![(5, "/etc/passwd".into())]),
            ("+ --chdir /workspace/src --", |plan| plan.directory = "/workspace/src"),
            ("+ --ro-bind /opt/tools /opt/tools", |plan| {
                plan.tools = Box::leak(Box::new([PathBuf::from("/opt/tools")]))
            }),
            ("+ --cap-add CAP_SYS_ADMIN", |plan| plan.nested = HelperMountSupport::Made(5)),
            ("+ --perms 0000 --file 5 /run/vfs-hidden-file --perms 0000 --dir /run/vfs-hidden-directory", |plan| {
                plan.nested = HelperMountSupport::Made(5);
            }),
            ("+ --sync-fd 9 --chdir / --", |plan| plan.lock = Some(9)),
            ("+ --bind-fd 3 /w --ro-bind-fd 4 /w/.git --remount-ro /dev", |plan| {
                plan.covers = vec![
                    ("/w".into(), CoveringMount::Writable(BindSource::Descriptor(3))),
                    ("/w/.git".into(), CoveringMount::ReadOnly(BindSource::Descriptor(4))),
                ];
            }),
            ("+ --bind /h/w /w --perms 0000 --ro-bind-data 6 /w/.env --remount-ro /dev", |plan| {
                plan.covers = vec![
                    ("/w".into(), CoveringMount::Writable(BindSource::Path("/h/w".into()))),
                    ("/w/.env".into(), CoveringMount::HiddenFile(6)),
                ];
            }),
            ("+ --perms 0000 --size 4096 --tmpfs /w/keys --remount-ro /w/keys", |plan| {
                plan.covers = vec![("/w/keys".into(), CoveringMount::HiddenDirectory)];
            }),
            ("+ --perms 0555 --size 4096 --tmpfs /w/.git --remount-ro /w/.git", |plan| {
                plan.covers = vec![("/w/.git".into(), CoveringMount::EmptyDirectory)];
            }),
        ];
        let system = system();
        for (expected, change) in table {
            let mut plan = plan(&system);
            let before = argument_line(&plan);
            change(&mut plan);
            let after = argument_line(&plan);
            let (sign, words) = expected.split_once(' ').expect("a sign");
            let words = format!(" {words}");
            let contained = |line: &str| format!(" {line} ").contains(&format!("{words} "));
            let (has, had) = (contained(&after), contained(&before));
            assert_eq!((has, had), if sign == "+" { (true, false) } else { (false, true) }, "{expected}\n{after}");
        }
    }
}
