//! The backend that a command works on, and the paths that name its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_config::{Built, Config, Placed};
use vfs_core::{Backend, BackendExt as _, Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_layers::BackendSink;
use vfs_local::{Confinement, LocalBackend};
use vfs_sandbox::{Guarantee, Helper, Mechanism, Network, OsSandbox, SandboxConfig, SelfTest, UnixSockets};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_store::{NamespaceSource, StoreBackend, StoreConfig, StoreUrl};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::args::{Place, SandboxArgs, ShellArgs};
use crate::exit::{self, Failure};

/// The files, as one command sees them.
#[derive(Debug)]
pub(crate) struct Session {
    /// The files.
    pub(crate) backend: Arc<dyn Backend>,
    /// The circumstances of every call: no deadline; ending the process cancels.
    pub(crate) cx: OpContext,
    source: Source,
    /// The directory that the arguments name.
    pub(crate) root: Option<PathBuf>,
}

/// Prints a notice about the recovery of an interrupted move that may take long.
#[derive(Debug)]
struct RecoveryNotice;

impl RecoveryObserver for RecoveryNotice {
    fn on_recovery(&self, from: &VfsPath, to: &VfsPath) {
        exit::tell(format_args!("finishing the interrupted move of '{from}' to '{to}' first"));
    }
}

/// What the files come from.
#[derive(Debug)]
enum Source {
    /// A directory.
    Directory(LocalBackend),
    /// A description.
    Config(Box<Built>),
    /// A durable store.
    Store,
}

/// What the arguments say that the files come from.
enum Named<'a> {
    Directory,
    Config(&'a Path),
    Store(&'a str),
}

impl<'a> Named<'a> {
    fn of(place: &'a Place) -> Result<Self, Failure> {
        // Options that hold for all commands may stand on either side of one, where clap sees no conflict.
        let has_directory = place.root.is_some() || place.host;
        match (&place.config, &place.store) {
            (None, None) if place.namespace.is_some() => {
                Err(Failure::Usage("--namespace is about the files of a store; name it with --store"))
            }
            (None, None) => Ok(Self::Directory),
            (Some(file), None) if !has_directory && place.namespace.is_none() => Ok(Self::Config(file)),
            (None, Some(url)) if !has_directory => Ok(Self::Store(url)),
            (None, Some(_)) => Err(Failure::Usage("--store says where the files are; leave out --root and --host")),
            (Some(_), _) if has_directory => {
                Err(Failure::Usage("--config says where the files are; leave out --root and --host"))
            }
            (Some(_), _) => Err(Failure::Usage("--config says where the files are; leave out --store and --namespace")),
        }
    }
}

const NO_CONFIG: Failure = Failure::Usage("this needs a vfs.toml, with --config; see 'vfs config --help'");

/// What runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellKind {
    /// This machine, as its user.
    Host,
    /// A sandbox of this machine.
    Sandbox(SandboxArgs),
    /// An interpreter in this process.
    Virtual,
}

impl ShellKind {
    /// Returns the shell that the arguments name.
    pub(crate) fn of(args: ShellArgs) -> Result<Self, Failure> {
        if !args.sandbox && args.sandbox_args != SandboxArgs::default() {
            return Err(Failure::Usage(
                "--landlock, --network, --unix-sockets, --allow-visible-processes, --allow-unprotected-names, \
                 --max-scanned-entries and --self-test need --sandbox",
            ));
        }
        Ok(match (args.sandbox, args.virtual_shell) {
            (true, _) => Self::Sandbox(args.sandbox_args),
            (_, true) => Self::Virtual,
            _ => Self::Host,
        })
    }
}

/// What becomes of a store that is a file and is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made.
    Make,
    /// It is an error: nobody looks for something where nothing can be.
    Refuse,
}

impl Session {
    /// Opens what the arguments name.
    pub(crate) async fn open(place: &Place, missing: Missing) -> Result<Self, Failure> {
        let cx = match &place.actor {
            Some(actor) => OpContext::new().with_actor(actor.as_str()),
            None => OpContext::new(),
        };
        match Named::of(place)? {
            Named::Directory => Self::of_directory(place, cx),
            Named::Config(file) => Self::of_config(file, cx).await,
            Named::Store(url) => Self::of_store(url, missing, place.namespace.as_deref(), cx).await,
        }
    }

    /// The audit logs of the description that the arguments name, which may be damaged; nothing else is opened.
    pub(crate) async fn audit_logs(place: &Place) -> Result<Vec<Placed<BackendSink>>, Failure> {
        let Named::Config(file) = Named::of(place)? else { return Err(NO_CONFIG) };
        let config = Config::load(file).await.map_err(Failure::Config)?;
        config.audit_logs(&config.directory().unwrap_or_default()).await.map_err(Failure::Config)
    }

    async fn of_store(url: &str, missing: Missing, namespace: Option<&str>, cx: OpContext) -> Result<Self, Failure> {
        let namespace = NamespaceSource::template(namespace.unwrap_or_default())?;
        let store = vfs_store::open_store(&store_url(url, missing).await?).await?;
        let backend = StoreBackend::with_config(store, StoreConfig::new().namespace(namespace));
        Ok(Self { backend: Arc::new(backend), cx, source: Source::Store, root: None })
    }

    fn of_directory(place: &Place, cx: OpContext) -> Result<Self, Failure> {
        let root = place.root.as_deref().unwrap_or(Path::new("."));
        let opened = if place.host { LocalBackend::host(root) } else { LocalBackend::open(root) };
        let backend = opened.map_err(|error| Failure::Root(root.to_owned(), error))?;
        if let Some(weakness) = vfs_local::weakness_between_processes() {
            exit::tell(format_args!("warning: {weakness}"));
        }
        Ok(Self {
            backend: Arc::new(backend.clone()),
            cx,
            source: Source::Directory(backend),
            root: place.root.clone(),
        })
    }

    async fn of_config(file: &Path, cx: OpContext) -> Result<Self, Failure> {
        let config =
            Config::load(file).await.map_err(Failure::Config)?.with_recovery_observer(Arc::new(RecoveryNotice));
        let built = config.build(&config.directory().unwrap_or_default()).await.map_err(Failure::Config)?;
        built.warnings.iter().for_each(|warning| exit::tell(format_args!("warning: {warning}")));
        Ok(Self { backend: Arc::clone(&built.backend), cx, source: Source::Config(Box::new(built)), root: None })
    }

    /// The files with what runs commands beside them.
    pub(crate) async fn with_shell(&self, kind: ShellKind) -> Result<Arc<dyn Backend>, Failure> {
        match (kind, &self.source) {
            (ShellKind::Virtual, _) => {
                let shell = Arc::new(VirtualShell::new(Arc::clone(&self.backend), VirtualShellConfig::new()));
                Ok(match &self.source {
                    Source::Config(built) => built.with_commands(shell),
                    Source::Directory(_) | Source::Store => shell,
                })
            }
            (ShellKind::Host, Source::Directory(files)) => {
                Ok(Arc::new(LocalShellBackend::over(files.clone(), ShellConfig::new())))
            }
            (_, Source::Config(_)) => Err(Failure::Usage(
                "no program can see the files of a vfs.toml as it describes them; run with --virtual",
            )),
            (_, Source::Store) => Err(Failure::Usage("no program can see the files of a store; run with --virtual")),
            (ShellKind::Sandbox(args), Source::Directory(_)) => {
                let sandbox = open_sandbox(sandbox_config(self.root.as_deref(), args)?).await?;
                Ok(Arc::new(sandbox.into_backend()?))
            }
        }
    }

    /// The path that `text` names: below the root, or with `--host` wherever a shell would look.
    pub(crate) fn path(&self, text: &str) -> Result<VfsPath> {
        match &self.source {
            Source::Directory(files) => files.resolve(text),
            Source::Config(_) | Source::Store => VfsPath::parse(text),
        }
    }

    /// Returns the path of the file that is at `host_path` on this machine; `None` unless that is below a root directory.
    pub(crate) fn path_of_host_path(&self, host_path: &str) -> Option<VfsPath> {
        let Source::Directory(files) = &self.source else { return None };
        let config = files.config();
        if config.confinement == Confinement::None {
            return None;
        }
        // Without a working directory, the path is compared with the real path of the root alone.
        let named = std::path::absolute(self.root.as_deref().unwrap_or(Path::new("."))).ok();
        let roots = [Some(config.root.as_path()), named.as_deref()];
        let below = roots.into_iter().flatten().find_map(|root| Path::new(host_path).strip_prefix(root).ok())?;
        VfsPath::parse(below.to_str()?).ok()
    }

    /// The same; the root directory where `text` is left out.
    pub(crate) fn path_or_root(&self, text: Option<&str>) -> Result<VfsPath> {
        self.path(text.unwrap_or("."))
    }

    /// The parts of the namespace, where a file describes it.
    pub(crate) fn built(&self) -> Result<&Built, Failure> {
        match &self.source {
            Source::Config(built) => Ok(built),
            Source::Directory(_) | Source::Store => Err(NO_CONFIG),
        }
    }

    /// Where commands in a sandbox of these settings see `path`.
    pub(crate) fn path_in_sandbox(&self, args: SandboxArgs, path: &VfsPath) -> Result<VfsPath, Failure> {
        let config = sandbox_config(self.root.as_deref(), args)?;
        let root = config.mounts.first().map(|mount| mount.at.clone()).unwrap_or_default();
        Ok(root.join(path.relative())?)
    }

    /// Brings to an end what has begun: audit records of what was not waited for.
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        match &self.source {
            Source::Config(built) => Ok(built.flush().await?),
            Source::Directory(_) | Source::Store => Ok(()),
        }
    }
}

/// Returns an error that names the root if it is not a directory that can be opened.
pub(crate) fn check_root(root: Option<&Path>) -> Result<(), Failure> {
    let root = root.unwrap_or(Path::new("."));
    LocalBackend::open(root).map(drop).map_err(|error| Failure::Root(root.to_owned(), error))
}

/// A sandbox on the directory that the arguments name.
pub(crate) fn sandbox_config(root: Option<&Path>, args: SandboxArgs) -> Result<SandboxConfig, Failure> {
    let directory = std::path::absolute(root.unwrap_or(Path::new(".")))
        .map_err(|error| Failure::Place("working directory", error))?;
    // This program is its own helper: it asks first of all whether it is to be that.
    let helper = std::env::current_exe().map_err(|error| Failure::Place("file of this program", error))?;
    let config = if args.landlock {
        let mechanisms = [Mechanism::Landlock, Mechanism::Seccomp];
        SandboxConfig::in_place(directory)?.only(mechanisms).require(Guarantee::WITHOUT_NAMESPACES.iter().copied())
    } else {
        SandboxConfig::new(directory)
    };
    let mut config = config.helper(Helper::At(helper));
    if args.network {
        config = config.network(Network::Host);
    }
    if args.unix_sockets {
        config = config.unix_sockets(UnixSockets::Allow);
    }
    if args.allow_visible_processes {
        config.required.remove(&Guarantee::HiddenProcesses);
    }
    if args.allow_unprotected_names {
        config.required.remove(&Guarantee::ProtectedNames);
    }
    if args.self_test {
        config = config.self_test(SelfTest::Always);
    }
    if let Some(entries) = args.max_scanned_entries {
        config = config.max_scanned_entries(entries);
    }
    Ok(config)
}

/// Opens a sandbox. If it cannot protect names and could be opened without that, the error names the option.
async fn open_sandbox(config: SandboxConfig) -> Result<OsSandbox> {
    let error = match OsSandbox::open(config.clone()).await {
        Err(error) if error.kind() == ErrorKind::Unsupported => error,
        opened => return opened,
    };
    let report = OsSandbox::check(config).await?;
    let missing: Vec<Guarantee> = report.missing().map(|result| result.guarantee).collect();
    if missing != [Guarantee::ProtectedNames] {
        return Err(error);
    }
    let advice = "'--allow-unprotected-names' runs the command without that, and reports what it leaves";
    Err(Error::new(ErrorKind::Unsupported, format!("{}; {advice}", error.message())))
}

/// The variable that has the URL of a store, where the arguments have `-`.
const STORE_VARIABLE: &str = "VFS_STORE";

/// The store that `text` names.
pub(crate) async fn store_url(text: &str, missing: Missing) -> Result<StoreUrl, Failure> {
    let url = if text == "-" {
        let told = "'-' is the store in the variable VFS_STORE, which is not set";
        StoreUrl::parse(&std::env::var(STORE_VARIABLE).map_err(|_| Failure::Usage(told))?)?
    } else {
        StoreUrl::parse(text)?
    };
    match url.file()? {
        Some(file) if missing == Missing::Refuse && !is_there(&file).await => {
            let message = format!("there is no store at '{url}'; name another file, or create one with 'vfs write'");
            Err(Failure::Operation(Error::new(ErrorKind::NotFound, message)))
        }
        _ => Ok(url),
    }
}

async fn is_there(file: &Path) -> bool {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(files) = LocalBackend::host(directory) else { return false };
    match files.resolve(name) {
        Ok(path) => files.exists(path.as_str()).await.unwrap_or(false),
        Err(_) => false,
    }
}
