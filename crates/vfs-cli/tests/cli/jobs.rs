//! Commands in the background.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::{HANG_TIMEOUT, Run, command, configured, finish, tree};

/// A directory for files, and one for jobs.
struct Jobs {
    files: TempDir,
    /// Removed with this.
    _state: TempDir,
    home: PathBuf,
}

impl Jobs {
    fn new() -> Self {
        Self::below("")
    }

    /// The same, with jobs some directories down.
    fn below(path: &str) -> Self {
        let state = tree(&[]);
        let home = state.path().join(path);
        Self { files: tree(&[]), _state: state, home }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(self.files.path());
        command.env("XDG_STATE_HOME", &self.home).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        finish(&mut self.command(args), b"")
    }

    fn start(&self, command: &str) -> String {
        self.run(&["exec", "--background", "--", command]).success().trim().to_owned()
    }

    /// Starts it after `before` was done by a shell.
    fn start_after(&self, before: &str, command: &str) -> String {
        let start = self.command(&["exec", "--background", "--", command]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}; exec \"$@\""), "sh"]).arg(start.get_program()).args(start.get_args());
        shell.env("XDG_STATE_HOME", &self.home).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(&mut shell, b"").success().trim().to_owned()
    }

    fn follow(&self, id: &str) -> Child {
        self.command(&["jobs", "output", id, "--follow"]).spawn().expect("it runs")
    }

    /// What a job prints until it ends.
    fn followed(&self, id: &str) -> Vec<u8> {
        let ended = self.follow(id).wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        ended.stdout
    }

    fn state(&self, id: &str) -> String {
        let listed = self.run(&["jobs"]);
        listed.success().lines().find(|line| line.starts_with(id)).unwrap_or_default().to_owned()
    }

    fn all(&self) -> PathBuf {
        self.home.join("vfs/jobs")
    }

    fn socket(&self, id: &str) -> PathBuf {
        self.all().join(id).join("keeper")
    }

    /// A pipe with a name among the files: `: < name` waits there until it is [opened](Self::open).
    fn gate(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.files.path().join(name)).status().expect("it runs");
        assert!(made.success());
    }

    /// Opens a gate for the commands that wait there, until the result is dropped.
    fn open(&self, name: &str) -> File {
        // Both ways, since this opens at once whether somebody waits or not.
        OpenOptions::new().read(true).write(true).open(self.files.path().join(name)).expect("it opens")
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.map(|entry| entry.expect("it lists").file_name().into_string().expect("text")).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

#[test]
fn a_job_runs_in_the_background_and_can_be_followed() {
    let jobs = Jobs::new();
    jobs.gate("go");
    let id = jobs.start("echo one; : < go; echo two; exit 3");
    assert!(jobs.state(&id).contains("running"));
    let follower = jobs.follow(&id);
    let _go = jobs.open("go");
    let followed = follower.wait_with_output().expect("it ends");
    assert_eq!(followed.stdout, b"one\ntwo\n");
    assert!(jobs.state(&id).contains("exited 3"));
    assert_eq!(jobs.run(&["jobs", "output", &id, "--from", "4"]).success(), "two\n");
    jobs.run(&["jobs", "forget", &id]).success();
    assert_eq!(jobs.run(&["jobs"]).success(), "");
}

#[test]
fn a_stopped_job_leaves_no_process() {
    let jobs = Jobs::new();
    let mut had_exited = false;
    // A shell waits for the end of what it killed, but only for a moment, which may be too short on a busy machine.
    for _ in 0..ATTEMPTS {
        let id = jobs.start("trap '' TERM; echo $$; sleep 1000 & wait");
        let mut follower = jobs.follow(&id);
        let mut printed = BufReader::new(follower.stdout.take().expect("it is piped"));
        let mut pid = String::new();
        printed.read_line(&mut pid).expect("it prints");
        jobs.run(&["jobs", "forget", &id]).failure("stop it first");
        let stopped = jobs.run(&["jobs", "stop", &id]);
        let process = Path::new("/proc").join(pid.trim());
        had_exited = !process.exists();
        until("the shell has exited", || !process.exists());
        assert!(stopped.success().contains("stopped"));
        assert!(follower.wait().expect("it ends").success());
        assert!(jobs.run(&["jobs", "stop", &id]).success().contains("stopped"), "once more");
        if had_exited {
            break;
        }
    }
    assert!(had_exited, "the stop is reported only after the shell has exited");
}

/// How often a test repeats what depends on a process being scheduled within a fixed time of the product.
const ATTEMPTS: usize = 20;

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + HANG_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not after {HANG_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_unknown_job_id_is_reported() {
    let jobs = Jobs::new();
    for id in ["00000000", "", "..", "../jobs", "a/b", "\u{7}"] {
        for what in ["output", "stop", "forget"] {
            jobs.run(&["jobs", what, id]).failure("not_found: there is no such job; 'vfs jobs' lists them");
        }
    }
}

#[test]
fn a_job_is_listed_on_one_line_with_its_command_escaped() {
    let jobs = Jobs::new();
    let id = jobs.start("echo \"one\"\necho 'two'");
    jobs.followed(&id);
    assert!(jobs.state(&id).ends_with("exited 0    echo \"one\"\\necho 'two'"), "{}", jobs.state(&id));
    fs::rename(jobs.all().join(&id), jobs.all().join("o\nther")).expect("it is there");
    assert!(jobs.run(&["jobs"]).success().starts_with("o\\nther  "));
}

#[test]
fn output_of_a_job_is_stored_byte_for_byte() {
    let jobs = Jobs::new();
    let id = jobs.start("head -c 3000000 /dev/zero | tr '\\0' a; printf '\\357\\273\\277x\\r\\n\\303\\244\\0y'");
    let mut expected = vec![b'a'; 3_000_000];
    expected.extend_from_slice("\u{feff}x\r\nä\0y".as_bytes());
    assert!(jobs.followed(&id) == expected);
    assert!(jobs.run(&["jobs", "output", &id, "--from", "3000003"]).out == expected[3_000_003..]);
    assert_eq!(jobs.run(&["jobs", "output", &id, "--from", "4000000"]).success(), "", "not so much was printed");
}

#[test]
fn many_connections_do_not_exhaust_the_monitor() {
    let jobs = Jobs::new();
    jobs.gate("go");
    let id = jobs.start_after("ulimit -n 96", ": < go; echo two; exit 3");
    for _ in 0..200 {
        UnixStream::connect(jobs.socket(&id)).expect("the keeper is there");
    }
    let _go = jobs.open("go");
    assert_eq!(jobs.followed(&id), b"two\n");
    assert!(jobs.state(&id).contains("exited 3"));
}

#[test]
fn idle_connections_do_not_block_others() {
    let jobs = Jobs::new();
    jobs.gate("go");
    let (prints, stays) = (jobs.start(": < go; echo two; exit 3"), jobs.start("sleep 1000"));
    // More than a keeper listens to at a time.
    let connect = |id| UnixStream::connect(jobs.socket(id)).expect("the keeper is there");
    let idle: Vec<_> = (0..40).flat_map(|_| [connect(&prints), connect(&stays)]).collect();
    let _go = jobs.open("go");
    assert_eq!(jobs.followed(&prints), b"two\n");
    assert!(jobs.state(&prints).contains("exited 3"));
    assert!(jobs.run(&["jobs", "stop", &stays]).success().contains("stopped"));
    drop(idle);
}

#[test]
fn a_command_that_cannot_start_is_reported_and_is_not_a_job() {
    let jobs = Jobs::new();
    for (args, reason) in [
        (["--cwd", "/missing", "true"], "not_found"),
        (["--virtual", "--cwd=/missing", "true"], "not_found"),
        (["--cwd", "/../..", "true"], "invalid_path"),
    ] {
        let waited_for = jobs.run(&[&["exec"], &args[..]].concat());
        let mut background = jobs.run(&[&["exec", "--background"], &args[..]].concat());
        // A command has a moment to fail, which may be too short on a busy machine: then it is a job that fails.
        for _ in 0..ATTEMPTS {
            if background.code != Some(0) {
                break;
            }
            let id = background.success().trim().to_owned();
            jobs.followed(&id);
            jobs.run(&["jobs", "forget", &id]).success();
            background = jobs.run(&[&["exec", "--background"], &args[..]].concat());
        }
        background.failure(reason);
        assert_eq!(background.err, waited_for.err);
    }
    let url = format!("sqlite:{}", jobs.files.path().join("s.db").display());
    let mut store = Command::new(env!("CARGO_BIN_EXE_vfs"));
    store.args(["--store", &url, "write", "/a.txt"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut store, b"").success();
    let mut store = Command::new(env!("CARGO_BIN_EXE_vfs"));
    store.env("XDG_STATE_HOME", &jobs.home).stdout(Stdio::piped()).stderr(Stdio::piped());
    store.args(["--store", &url, "exec", "--background", "--", "true"]);
    let run = finish(&mut store, b"");
    run.failure("--virtual");
    assert!(!run.err.contains("internal"), "{run:?}");

    assert_eq!(jobs.run(&["jobs"]).success(), "");
    assert_eq!(names(&jobs.all()), [""; 0]);
}

#[test]
fn a_job_whose_id_cannot_be_printed_is_removed() {
    let jobs = Jobs::new();
    let mut keeper = jobs.command(&["--keep-job", "0badcafe", "exec", "--background", "--", "sleep 1000"]);
    let mut keeper = keeper.spawn().expect("it runs");
    drop(keeper.stdout.take());
    keeper.wait().expect("it ends");
    assert_eq!(names(&jobs.all()), [""; 0]);
}

#[test]
fn an_existing_job_is_never_replaced() {
    let jobs = Jobs::new();
    let id = jobs.start("echo first");
    jobs.followed(&id);
    jobs.run(&["--keep-job", &id, "exec", "--background", "--", "echo second"]).failure("exists");
    assert_eq!(jobs.run(&["jobs", "output", &id]).success(), "first\n");
}

#[test]
fn jobs_can_be_in_a_directory_with_a_long_path() {
    let jobs = Jobs::below(&format!("{0}/{0}", "d".repeat(200)));
    let id = jobs.start("echo one; sleep 1000");
    assert!(jobs.state(&id).contains("running"));
    assert!(jobs.run(&["jobs", "stop", &id]).success().contains("stopped"));
    assert_eq!(jobs.run(&["jobs", "output", &id]).success(), "one\n");
}

#[test]
fn a_follower_reports_a_killed_monitor() {
    let jobs = Jobs::new();
    let id = jobs.start("echo one; sleep 1000");
    let mut follower = jobs.follow(&id);
    let mut printed = BufReader::new(follower.stdout.take().expect("it is piped"));
    printed.read_line(&mut String::new()).expect("it prints");
    let keeper = block_on(async {
        let connection = tokio::net::UnixStream::connect(jobs.socket(&id)).await.expect("the keeper is there");
        connection.peer_cred().expect("it has an owner").pid().expect("it has an id")
    });
    let killed = Command::new("kill").args(["-KILL", &keeper.to_string()]).status().expect("it runs");
    assert!(killed.success());
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("it ends");
    let ended = follower.wait_with_output().expect("it ends");
    assert_eq!((rest.as_str(), ended.status.code()), ("", Some(0)));
    let warning = String::from_utf8(ended.stderr).expect("text");
    assert!(warning.contains(&format!("{id}: the monitor process of the job is gone")), "{warning}");
    assert!(jobs.state(&id).contains("lost"));
    jobs.run(&["jobs", "forget", &id]).success();
}

#[test]
fn without_jobs_the_list_is_empty_and_nothing_is_created() {
    let jobs = Jobs::below("state");
    assert_eq!(jobs.run(&["jobs"]).success(), "");
    jobs.run(&["jobs", "output", "3f9a04c1"]).failure("there is no such job");
    assert!(!jobs.home.exists());
}

#[test]
fn stopping_a_job_that_ends_meanwhile_reports_its_exit_status() {
    let jobs = Jobs::new();
    let id = jobs.start("exit 3");
    jobs.followed(&id);
    let record = jobs.all().join(&id).join("job.json");
    let ended = fs::read(&record).expect("it is there");
    let mut running: serde_json::Value = serde_json::from_slice(&ended).expect("it is JSON");
    running.as_object_mut().expect("an object").remove("exit");
    fs::write(&record, running.to_string()).expect("it writes");
    fs::remove_file(jobs.socket(&id)).expect("it was there");
    let stopped = block_on(async {
        let keeper = UnixListener::bind(jobs.socket(&id)).expect("it binds");
        let stop = jobs.command(&["jobs", "stop", &id]).spawn().expect("it runs");
        let (connection, _) = keeper.accept().await.expect("it connects");
        // The request stays unread: closing such a connection resets it.
        connection.readable().await.expect("it sends a request");
        fs::write(&record, &ended).expect("it writes");
        drop((keeper, connection));
        stop.wait_with_output().expect("it ends")
    });
    let output = String::from_utf8(stopped.stdout).expect("text");
    assert!(output.contains("exited 3") && stopped.status.success() && stopped.stderr.is_empty(), "{output}");
}

#[test]
fn invalid_entries_do_not_hide_other_jobs() {
    let jobs = Jobs::new();
    let id = jobs.start("exit 3");
    jobs.followed(&id);
    fs::write(jobs.all().join("stray"), "").expect("a file");
    fs::create_dir(jobs.all().join("empty")).expect("a directory");
    assert_eq!(jobs.run(&["jobs"]).success().lines().count(), 1);
    jobs.run(&["jobs", "output", "stray"]).failure("there is no such job");

    fs::create_dir(jobs.all().join("broken")).expect("a directory");
    fs::write(jobs.all().join("broken/job.json"), "{").expect("a file");
    let listed = jobs.run(&["jobs"]);
    assert_eq!((listed.code, listed.out().lines().count()), (Some(0), 1), "{listed:?}");
    assert!(listed.err.contains("broken") && listed.err.contains("cannot be read"), "{listed:?}");
    jobs.run(&["jobs", "forget", "broken"]).success();
    assert_eq!(jobs.run(&["jobs"]).success().lines().count(), 1);
}

#[test]
fn output_that_cannot_be_written_does_not_end_a_job() {
    let jobs = Jobs::new();
    // No file may grow over 512 bytes, which is an error where the signal for it is ignored.
    let id = jobs.start_after("trap '' XFSZ; ulimit -f 1", "head -c 5000 /dev/zero | tr '\\0' a; exit 3");
    let followed = jobs.followed(&id);
    assert!(followed.len() <= 512 && followed.iter().all(|byte| *byte == b'a'), "{followed:?}");
    assert!(jobs.state(&id).contains("exited 3"));
}

#[test]
fn nobody_else_gets_at_jobs() {
    let jobs = Jobs::new();
    let id = jobs.start_after("umask 0", "echo one; sleep 1000");
    let directory = jobs.all().join(&id);
    assert_eq!((mode(&jobs.all()), mode(&directory)), (0o700, 0o700));
    assert_eq!((mode(&jobs.socket(&id)), mode(&directory.join("output"))), (0o600, 0o600));
    jobs.run(&["jobs", "stop", &id]).success();

    fs::set_permissions(jobs.all(), fs::Permissions::from_mode(0o770)).expect("it is ours");
    for args in [&["jobs"][..], &["exec", "--background", "true"]] {
        jobs.run(args).failure("'chmod 700'");
    }
}

#[test]
fn a_variable_of_a_job_is_in_no_arguments() {
    let jobs = Jobs::new();
    jobs.gate("go");
    let secret = format!("secret-{}-of-a-job", std::process::id());
    let variable = format!("TOKEN={secret}");
    let id = jobs.run(&["exec", "--background", "--env", &variable, "--", "echo \"$TOKEN\"; : < go"]);
    let id = id.success().trim().to_owned();
    // The process that was given the variable has ended; that which keeps the job has not.
    let names_secret = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&secret).then_some(line)
    };
    let shown: Vec<String> = fs::read_dir("/proc").expect("it lists").flatten().filter_map(names_secret).collect();
    assert!(jobs.state(&id).contains("running"));
    assert_eq!(shown, [""; 0]);
    let _go = jobs.open("go");
    assert_eq!(jobs.followed(&id), format!("{secret}\n").as_bytes());
}

#[test]
fn a_variable_without_a_value_is_that_of_the_environment() {
    let jobs = Jobs::new();
    for options in [&["exec"][..], &["exec", "--background"]] {
        let mut command = jobs.command(&[options, &["--env", "TOKEN", "--", "echo \"$TOKEN\""]].concat());
        let run = finish(command.env("TOKEN", "a secret").stdout(Stdio::piped()).stderr(Stdio::piped()), b"");
        let output = run.success();
        let output = if options.len() == 1 { output.as_bytes().to_vec() } else { jobs.followed(output.trim()) };
        assert_eq!(output, b"a secret\n");
    }
    jobs.run(&["exec", "--env", "ABSENT_HERE", "--", "true"]).failure("not set in this environment");
}

#[test]
fn a_keeper_runs_no_part_of_a_command_line() {
    let jobs = Jobs::new();
    let whole = b"5\0exec\0--background\0--\0touch\0made\0";
    for cut in [whole.len() - 1, whole.len() - 3, whole.len() - 5, 0] {
        let mut keeper = Command::new(jobs.command(&[]).get_program());
        keeper.env("XDG_STATE_HOME", &jobs.home).current_dir(&jobs.files).args(["--keep-job", "0badcafe"]);
        keeper.stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(&mut keeper, &whole[..cut]).failure("the arguments of the job are incomplete");
    }
    assert_eq!(jobs.run(&["jobs"]).success(), "");
    assert_eq!(fs::read_dir(jobs.files.path()).expect("it lists").count(), 0);
}

#[test]
fn a_job_acts_for_the_actor_that_started_it() {
    const RULED: &str = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n\
        [[layers.rules]]\neffect = 'deny'\noperations = ['write']\nactors = ['intern-*']\n\
        [[layers.rules]]\neffect = 'allow'\noperations = ['execute']\n";
    let jobs = Jobs::new();
    fs::write(jobs.files.path().join("vfs.toml"), RULED).expect("a file");
    let mut start = configured(&jobs.files);
    start.env("XDG_STATE_HOME", &jobs.home).args(["--actor", "intern-7"]);
    start.args(["exec", "--virtual", "--background", "--", "echo mine > /a.txt"]);
    let id = finish(&mut start, b"").success().trim().to_owned();
    let printed = String::from_utf8(jobs.followed(&id)).expect("text");
    assert!(printed.contains("a policy forbids this"), "{printed}");
    assert!(!jobs.files.path().join("a.txt").exists());
}
