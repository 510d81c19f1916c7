//! Attempts to escape from the sandbox: each fails with the expected error, and changes nothing outside.
//!
//! Every attempt runs under all mechanisms together, and under each mechanism alone that has to prevent it. The
//! attacking program is this test itself, started in the sandbox; it is also the helper that applies Landlock.
#![allow(clippy::disallowed_methods, reason = "attacks go past every backend")]

mod attacks;
mod system;
mod world;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::shell::TerminalSize;
use vfs_core::{ExecuteRequest, OpContext, Shell as _, VfsPath};
use vfs_sandbox::{
    Guarantee, HelperLocation, Mechanism, Network, OsSandbox, ProtectionLevel, SandboxConfig, SandboxReport,
    UnixSockets, sandbox_helper_main,
};
use vfs_shell::{CommandRunner, Limits, ShellConfig};

use crate::attacks::{Attack, Confinement, Setting, Target};
use crate::world::{Shared, World};

/// Value of `ESCAPE_PASSWORD` in the environment of the process that opens the sandbox.
const SECRET: &str = "a secret of the environment";

fn main() -> ExitCode {
    sandbox_helper_main();
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|argument| argument == "--attack") {
        return attack(&arguments[2..]);
    }
    if std::env::var_os("ESCAPE_PASSWORD").is_none() {
        let error = std::process::Command::new(own()).args(&arguments[1..]).env("ESCAPE_PASSWORD", SECRET).exec();
        panic!("the test cannot be restarted: {error}");
    }
    let _shared = Shared::make();
    let reports: BTreeMap<Confinement, Result<SandboxReport, String>> =
        Confinement::ALL.into_iter().map(|confinement| (confinement, report(confinement))).collect();
    for (confinement, report) in &reports {
        show(*confinement, report);
    }
    let mut trials = Vec::new();
    for attack in attacks::all() {
        let attack = Arc::new(attack);
        for &(confinement, reasons) in attack.expected {
            let name = format!("escape::{}::under_{confinement:?}", attack.name).to_lowercase();
            let missing = missing(&reports[&confinement], confinement, attack.setting);
            let attack = Arc::clone(&attack);
            let trial = Trial::test(name, move || fails(confinement, &attack, reasons));
            trials.push(match missing {
                None => trial,
                Some(why) => trial.with_kind(format!("ignored: {why}")).with_ignored_flag(true),
            });
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs one attack, in the sandbox, and prints its outcome.
fn attack(arguments: &[String]) -> ExitCode {
    use std::io::Write as _;
    let attack = attacks::all().into_iter().find(|attack| attack.name == arguments[0]).expect("an attack");
    let outcome = (attack.run)(&Target::parse(&arguments[1..]));
    writeln!(std::io::stdout(), "outcome: {outcome}").expect("written");
    ExitCode::SUCCESS
}

fn own() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn config(confinement: Confinement, world: &World, setting: Setting) -> SandboxConfig {
    let mechanisms: &[Mechanism] = match confinement {
        Confinement::All => Mechanism::ALL,
        Confinement::Namespaces => &[Mechanism::Namespaces],
        Confinement::Landlock => &[Mechanism::Landlock],
        Confinement::Seccomp => &[Mechanism::Seccomp],
        Confinement::WithoutNamespaces => &[Mechanism::Landlock, Mechanism::Seccomp],
    };
    let config = SandboxConfig::in_place(world.inside()).expect("a path").tool(own()).helper(HelperLocation::At(own()));
    let config = config.protect("absent", ProtectionLevel::Hidden).expect("a path");
    let config = config.protect("none/.git", ProtectionLevel::ReadOnly).expect("a path");
    let config = config.only(mechanisms.iter().copied()).require([]);
    match setting {
        Setting::Usual | Setting::Terminal => config,
        Setting::UnixSockets => config.unix_sockets(UnixSockets::Allow),
        Setting::UnixSocketsAndNetwork => config.unix_sockets(UnixSockets::Allow).network(Network::Host),
        Setting::Processes(processes) => config.processes(processes),
        Setting::Memory(bytes) => config.memory_bytes(bytes),
        Setting::Disk(bytes) => config.limits(Limits::default().file_bytes(bytes)).tmp_bytes(bytes),
    }
}

fn report(confinement: Confinement) -> Result<SandboxReport, String> {
    let world = World::make().map_err(|error| error.to_string())?;
    let checked = runtime().block_on(OsSandbox::check(config(confinement, &world, Setting::Usual)));
    checked.map_err(|error| error.to_string())
}

/// Prints the report of a sandbox, which is a part of the result of this test.
fn show(confinement: Confinement, report: &Result<SandboxReport, String>) {
    use std::io::Write as _;
    let text = match report {
        Ok(report) => report.to_string(),
        Err(error) => error.clone(),
    };
    writeln!(std::io::stderr(), "{confinement:?}\n{text}").expect("written");
}

/// Returns why a trial cannot run on this system, if it cannot.
fn missing(report: &Result<SandboxReport, String>, confinement: Confinement, setting: Setting) -> Option<String> {
    let report = match report {
        Ok(report) => report,
        Err(error) => return Some(error.clone()),
    };
    let guarantees: &[Guarantee] = match confinement {
        Confinement::All => &[Guarantee::Namespaces, Guarantee::Seccomp, Guarantee::LandlockFiles],
        Confinement::Namespaces => &[Guarantee::Namespaces],
        Confinement::Landlock => &[Guarantee::LandlockFiles, Guarantee::LandlockScope],
        Confinement::Seccomp => &[Guarantee::Seccomp],
        Confinement::WithoutNamespaces => &[Guarantee::Seccomp, Guarantee::LandlockFiles, Guarantee::LandlockScope],
    };
    let bound: &[Guarantee] = match setting {
        Setting::Processes(_) => &[Guarantee::Processes],
        Setting::Memory(_) => &[Guarantee::Memory],
        Setting::UnixSocketsAndNetwork => &[Guarantee::LandlockScope],
        _ => &[],
    };
    let missing: Vec<String> = guarantees
        .iter()
        .chain(bound)
        .filter(|guarantee| !report.enforces(**guarantee))
        .map(ToString::to_string)
        .collect();
    (!missing.is_empty()).then(|| format!("this system does not enforce {}", missing.join(", ")))
}

/// Runs an attack, and checks its outcome inside and the damage outside.
fn fails(confinement: Confinement, attack: &Attack, reasons: &str) -> Result<(), Failed> {
    let mut world = World::make()?;
    let (outcome, output) = runtime().block_on(run_attack(confinement, attack, &world))?;
    let damage = world.damage();
    if !damage.is_empty() {
        return Err(format!("outside: {}\n{output}", damage.join(", ")).into());
    }
    if !reasons.split('|').any(|reason| reason == outcome) {
        return Err(format!("the outcome of the attack is {outcome:?}, and was to be {reasons}\n{output}").into());
    }
    Ok(())
}

/// Runs an attack in a new sandbox, and returns its outcome and all output.
async fn run_attack(confinement: Confinement, attack: &Attack, world: &World) -> Result<(String, String), Failed> {
    let sandbox = OsSandbox::open(config(confinement, world, attack.setting)).await?;
    let commands = CommandRunner::new(sandbox, ShellConfig::new());
    let target = world.target();
    let words = [own().to_str().expect("UTF-8").to_owned(), "--attack".to_owned(), attack.name.to_owned()];
    let line: Vec<String> = words.into_iter().chain(target.arguments()).map(|word| format!("'{word}'")).collect();
    let mut request = ExecuteRequest::new(line.join(" ")).cwd(VfsPath::parse(&target.inside)?);
    if attack.setting == Setting::Terminal {
        request = request.terminal(TerminalSize::default());
    }
    let ended = commands.execute(&OpContext::new(), request).await?;
    let outcome = ended.output.lines().find_map(|line| line.trim().strip_prefix("outcome: ").map(str::to_owned));
    let outcome = outcome.unwrap_or_else(|| format!("exit {:?} signal {:?}", ended.exit_code, ended.signal));
    Ok((outcome, ended.output))
}
