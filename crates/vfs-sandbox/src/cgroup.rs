//! Control groups that bound the memory and processes of all commands of a sandbox together.
#![expect(clippy::disallowed_methods, reason = "files of the kernel are in no backend")]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Controller of the control groups that bounds one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupController {
    Memory,
    Processes,
}

impl CgroupController {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
        }
    }

    /// The files that take a bound, in the first version of the interface and in the second.
    const fn files(self) -> [&'static str; 2] {
        match self {
            Self::Memory => ["memory.limit_in_bytes", "memory.max"],
            Self::Processes => ["pids.max", "pids.max"],
        }
    }
}

/// Lowest number of the descriptors that `entries` returns. The descriptors of a command are placed first and have
/// lower numbers.
pub(crate) const FIRST_ENTRY: i32 = 100;

/// Reason for which a resource is not limited.
pub(crate) type LimitFailure = String;

/// A control group that this process created.
#[derive(Debug)]
struct ControlGroup {
    path: PathBuf,
    /// Name of the file through which a process enters the group.
    entry: &'static str,
}

/// The groups of one sandbox, removed on drop.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    made: Vec<ControlGroup>,
    /// Description of the bound on memory, or why there is none.
    pub(crate) memory: Result<String, LimitFailure>,
    /// Description of the bound on processes, or why there is none.
    pub(crate) processes: Result<String, LimitFailure>,
}

impl ControlGroups {
    /// Returns no groups, for this reason.
    pub(crate) fn none(reason: &str) -> Self {
        Self { made: Vec::new(), memory: Err(reason.to_owned()), processes: Err(reason.to_owned()) }
    }

    /// Creates groups with these bounds, as far as this process may.
    pub(crate) fn create(memory: Option<u64>, processes: Option<u64>) -> Self {
        let mut groups = Self::none("no bound was requested");
        let hierarchies = CgroupHierarchies::read();
        sweep(&hierarchies);
        if let Some(bytes) = memory {
            groups.memory = groups.bound(&hierarchies, CgroupController::Memory, bytes);
        }
        if let Some(processes) = processes {
            groups.processes = groups.bound(&hierarchies, CgroupController::Processes, processes);
        }
        groups
    }

    /// Opens the files through which a process of a single thread enters the groups, by writing `0`.
    pub(crate) fn entries(&self) -> io::Result<Vec<OwnedFd>> {
        let entry = |group: &ControlGroup| {
            let entry: OwnedFd = fs::OpenOptions::new().write(true).open(group.path.join(group.entry))?.into();
            Ok(rustix::io::fcntl_dupfd_cloexec(entry, FIRST_ENTRY)?)
        };
        self.made.iter().map(entry).collect()
    }

    fn bound(
        &mut self,
        hierarchies: &CgroupHierarchies,
        controller: CgroupController,
        bound: u64,
    ) -> Result<String, LimitFailure> {
        let mut reason = format!("no control group hierarchy for {} is mounted", controller.name());
        for place in hierarchies.parent_groups(controller) {
            let existing = self.made.iter().find(|group| group.path.parent() == Some(&place.parent));
            let exists = existing.is_some();
            let group = existing.map_or_else(|| place.parent.join(name()), |group| group.path.clone());
            match set(&place, &group, controller, bound) {
                Ok(()) => {
                    if !exists {
                        self.made.push(ControlGroup { path: group, entry: place.entry() });
                    }
                    return Ok(format!(
                        "all commands together at {bound}, by a control group (version {})",
                        place.version
                    ));
                }
                Err(error) => {
                    reason = format!(
                        "no control group can be created here ({error}); run as root, or in a group that is delegated to you"
                    );
                    if !exists {
                        // The group may not exist; the next sandbox sweeps away what is left.
                        let _ = fs::remove_dir(&group);
                    }
                }
            }
        }
        Err(reason)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for group in &self.made {
            // A group that still has a process stays until the next sandbox sweeps it away.
            let _ = fs::remove_dir(&group.path);
        }
    }
}

fn set(place: &ParentControlGroup, group: &Path, controller: CgroupController, bound: u64) -> io::Result<()> {
    if let Err(error) = fs::create_dir(group)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    let [first, second] = controller.files();
    let file = group.join(if place.version == 1 { first } else { second });
    if place.version == 2 && place.own && rustix::fs::stat(&file).is_err() {
        fs::write(place.parent.join("cgroup.subtree_control"), format!("+{}", controller.name()))?;
    }
    fs::write(&file, bound.to_string())?;
    if place.version == 2 && controller == CgroupController::Memory {
        // Not every kernel can bound swap.
        let _ = fs::write(group.join("memory.swap.max"), "0");
    }
    if place.version == 1 && controller == CgroupController::Memory {
        let _ = fs::write(group.join("memory.memsw.limit_in_bytes"), bound.to_string());
    }
    fs::OpenOptions::new().write(true).open(group.join(place.entry())).map(drop)
}

/// A group of the host in which this process may create others.
#[derive(Debug)]
struct ParentControlGroup {
    parent: PathBuf,
    version: u8,
    /// Whether this process is in the group.
    own: bool,
}

impl ParentControlGroup {
    /// Returns the file of a group through which a process of a single thread enters.
    ///
    /// To move a process, the kernel waits for some 10 ms until no process of the system is being created. It does not
    /// wait for a thread that moves itself (since Linux 5.5). In the second version, a thread cannot leave the group of
    /// its process.
    const fn entry(&self) -> &'static str {
        if self.version == 1 { "tasks" } else { "cgroup.procs" }
    }
}

/// The mounted control group hierarchies, with the groups of this process.
#[derive(Debug, Default)]
struct CgroupHierarchies {
    /// Controllers of the first version, as name, mount and own group.
    first: Vec<(String, PathBuf, PathBuf)>,
    /// The second version, as mount and own group.
    second: Option<(PathBuf, PathBuf)>,
}

impl CgroupHierarchies {
    fn read() -> Self {
        let (Ok(mounts), Ok(own)) = (fs::read_to_string("/proc/self/mounts"), fs::read_to_string("/proc/self/cgroup"))
        else {
            return Self::default();
        };
        Self::parse(&mounts, &own)
    }

    fn parse(mounts: &str, own: &str) -> Self {
        let mut found = Self::default();
        let group = |controller: &str| {
            own.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                controllers.split(',').any(|name| name == controller).then(|| path.trim_start_matches('/').to_owned())
            })
        };
        for line in mounts.lines() {
            let mut fields = line.split(' ').skip(1);
            let (Some(at), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let at = PathBuf::from(at);
            match kind {
                "cgroup2" => found.second = group("").map(|own| (at.clone(), at.join(own))),
                "cgroup" => found.first.extend(
                    [CgroupController::Memory, CgroupController::Processes].into_iter().filter_map(|controller| {
                        let has = options.split(',').any(|name| name == controller.name());
                        let own = group(controller.name()).filter(|_| has)?;
                        Some((controller.name().to_owned(), at.clone(), at.join(own)))
                    }),
                ),
                _ => {}
            }
        }
        found
    }

    /// Returns the groups in which one for `controller` may be created, the best first.
    fn parent_groups(&self, controller: CgroupController) -> Vec<ParentControlGroup> {
        let first = self.first.iter().filter(|(name, ..)| name == controller.name());
        let first = first.map(|(_, _, own)| ParentControlGroup { parent: own.clone(), version: 1, own: true });
        let second = self.second.iter().flat_map(|(mount, own)| {
            let above = own.ancestors().take_while(move |group| group.starts_with(mount));
            above.map(move |group| ParentControlGroup { parent: group.to_owned(), version: 2, own: group == own })
        });
        first.chain(second).filter(|place| rustix::fs::stat(&place.parent).is_ok()).collect()
    }
}

const PREFIX: &str = "agent-vfs-";

fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Removes the groups of processes that have ended.
fn sweep(hierarchies: &CgroupHierarchies) {
    let parent_groups = [CgroupController::Memory, CgroupController::Processes]
        .into_iter()
        .flat_map(|each| hierarchies.parent_groups(each));
    for place in parent_groups {
        let Ok(entries) = fs::read_dir(&place.parent) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner =
                name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|name| name.split('-').next());
            let Some(owner) = owner else { continue };
            if rustix::fs::stat(format!("/proc/{owner}")).is_err() {
                // A group that still has a process stays.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_this_process_are_found_in_both_versions() {
        let own = "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n0::/user.slice/x.scope\n";
        let mounts = "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let found = CgroupHierarchies::parse(mounts, own);
        let first: Vec<_> = found.first.iter().map(|(name, _, own)| (name.as_str(), own.as_path())).collect();
        assert_eq!(
            first,
            [("memory", Path::new("/sys/fs/cgroup/memory/a/b")), ("pids", Path::new("/sys/fs/cgroup/pids/"))]
        );
        let unified = Path::new("/sys/fs/cgroup/unified");
        assert_eq!(found.second, Some((unified.to_owned(), unified.join("user.slice/x.scope"))));
    }
}
