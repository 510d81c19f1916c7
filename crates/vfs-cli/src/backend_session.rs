//! The backend of one command, and resolution of its path arguments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_config::{Config, ConfiguredBackend, LayerHandle};
use vfs_core::{Backend, OpContext, Result, VfsPath};
use vfs_layers::BackendSink;
use vfs_local::{Confinement, LocalBackend};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_store::{NamespaceSource, StoreBackend, StoreConfig};
#[cfg(feature = "virtual-shell")]
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::args::{BackendArgs, SandboxArgs};
use crate::exit::{self, Failure};
use crate::sandbox;
use crate::shell_selection::ShellBackendKind;
use crate::store_argument::{MissingStore, resolve_store_url};

/// The backend and the context of one command.
#[derive(Debug)]
pub(crate) struct BackendSession {
    /// The backend.
    pub(crate) backend: Arc<dyn Backend>,
    /// The context of every call, without a deadline.
    pub(crate) cx: OpContext,
    opened: OpenedBackend,
    /// The root directory from the arguments.
    pub(crate) root: Option<PathBuf>,
}

/// Prints a notice about the recovery of an interrupted move that may take long.
#[derive(Debug)]
struct RecoveryNoticePrinter;

impl RecoveryObserver for RecoveryNoticePrinter {
    fn on_recovery(&self, from: &VfsPath, to: &VfsPath) {
        exit::print_message(format_args!("finishing the interrupted move of '{from}' to '{to}' first"));
    }
}

/// An opened backend, with what its kind offers beyond the trait.
#[derive(Debug)]
enum OpenedBackend {
    /// A directory of the host.
    Directory(LocalBackend),
    /// A configuration file.
    Config(Box<ConfiguredBackend>),
    /// A durable store.
    Store,
}

/// The origin of the backend that the arguments select.
enum BackendOrigin<'a> {
    Directory,
    Config(&'a Path),
    Store(&'a str),
}

impl<'a> BackendOrigin<'a> {
    fn from_args(args: &'a BackendArgs) -> Result<Self, Failure> {
        // Global options can be before or after the command, and clap detects no conflict between the two positions.
        let has_directory = args.root.is_some() || args.host;
        match (&args.config, &args.store) {
            (None, None) if args.namespace.is_some() => {
                Err(Failure::Usage("--namespace needs a store; name one with --store"))
            }
            (None, None) => Ok(Self::Directory),
            (Some(file), None) if !has_directory && args.namespace.is_none() => Ok(Self::Config(file)),
            (None, Some(url)) if !has_directory => Ok(Self::Store(url)),
            (None, Some(_)) => Err(Failure::Usage("--store already selects the files; leave out --root and --host")),
            (Some(_), _) if has_directory => {
                Err(Failure::Usage("--config already selects the files; leave out --root and --host"))
            }
            (Some(_), _) => {
                Err(Failure::Usage("--config already selects the files; leave out --store and --namespace"))
            }
        }
    }
}

const MISSING_CONFIG: Failure =
    Failure::Usage("this command needs a vfs.toml; name one with --config, see 'vfs config --help'");

impl BackendSession {
    /// Opens the backend that the arguments select.
    pub(crate) async fn open(args: &BackendArgs, missing: MissingStore) -> Result<Self, Failure> {
        let cx = match &args.actor {
            Some(actor) => OpContext::new().with_actor(actor.as_str()),
            None => OpContext::new(),
        };
        match BackendOrigin::from_args(args)? {
            BackendOrigin::Directory => Self::open_directory(args, cx),
            BackendOrigin::Config(file) => Self::open_config(file, cx).await,
            BackendOrigin::Store(url) => Self::open_store(url, missing, args.namespace.as_deref(), cx).await,
        }
    }

    /// Returns the audit logs of the configuration file, which may be damaged, and opens nothing else.
    pub(crate) async fn audit_logs(args: &BackendArgs) -> Result<Vec<LayerHandle<BackendSink>>, Failure> {
        let BackendOrigin::Config(file) = BackendOrigin::from_args(args)? else { return Err(MISSING_CONFIG) };
        let config = Config::load(file).await.map_err(Failure::Config)?;
        config.audit_logs(&config.directory().unwrap_or_default()).await.map_err(Failure::Config)
    }

    async fn open_store(
        url: &str,
        missing: MissingStore,
        namespace: Option<&str>,
        cx: OpContext,
    ) -> Result<Self, Failure> {
        let namespace = NamespaceSource::template(namespace.unwrap_or_default())?;
        let store = vfs_store::open_store(&resolve_store_url(url, missing).await?).await?;
        let backend = StoreBackend::with_config(store, StoreConfig::new().namespace(namespace));
        Ok(Self { backend: Arc::new(backend), cx, opened: OpenedBackend::Store, root: None })
    }

    fn open_directory(args: &BackendArgs, cx: OpContext) -> Result<Self, Failure> {
        let root = args.root.as_deref().unwrap_or(Path::new("."));
        let opened = if args.host { LocalBackend::host(root) } else { LocalBackend::open(root) };
        let backend = opened.map_err(|error| Failure::Root(root.to_owned(), error))?;
        if let Some(weakness) = vfs_local::weakness_between_processes() {
            exit::print_message(format_args!("warning: {weakness}"));
        }
        Ok(Self {
            backend: Arc::new(backend.clone()),
            cx,
            opened: OpenedBackend::Directory(backend),
            root: args.root.clone(),
        })
    }

    async fn open_config(file: &Path, cx: OpContext) -> Result<Self, Failure> {
        let config =
            Config::load(file).await.map_err(Failure::Config)?.with_recovery_observer(Arc::new(RecoveryNoticePrinter));
        let configured = config.build(&config.directory().unwrap_or_default()).await.map_err(Failure::Config)?;
        configured.warnings.iter().for_each(|warning| exit::print_message(format_args!("warning: {warning}")));
        Ok(Self {
            backend: Arc::clone(&configured.backend),
            cx,
            opened: OpenedBackend::Config(Box::new(configured)),
            root: None,
        })
    }

    /// Returns the backend with a shell of this kind.
    pub(crate) async fn with_shell(&self, kind: ShellBackendKind) -> Result<Arc<dyn Backend>, Failure> {
        match (kind, &self.opened) {
            #[cfg(not(feature = "virtual-shell"))]
            (ShellBackendKind::Virtual, _) => Err(Failure::MissingFeature("virtual-shell")),
            #[cfg(feature = "virtual-shell")]
            (ShellBackendKind::Virtual, _) => {
                let shell = Arc::new(VirtualShell::new(Arc::clone(&self.backend), VirtualShellConfig::new()));
                Ok(match &self.opened {
                    OpenedBackend::Config(configured) => configured.with_commands(shell),
                    OpenedBackend::Directory(_) | OpenedBackend::Store => shell,
                })
            }
            (ShellBackendKind::Host, OpenedBackend::Directory(files)) => {
                Ok(Arc::new(LocalShellBackend::with_files(files.clone(), ShellConfig::new())))
            }
            (_, OpenedBackend::Config(_)) => Err(Failure::Usage(
                "a process would bypass the mounts and policies of this configuration; use --virtual",
            )),
            (_, OpenedBackend::Store) => {
                Err(Failure::Usage("a process cannot access the files of a store; use --virtual"))
            }
            (ShellBackendKind::Sandbox(args), OpenedBackend::Directory(_)) => {
                sandbox::open(self.root.as_deref(), args).await
            }
        }
    }

    /// Parses the path argument `text`: below the root, or with `--host` as a path of the host.
    pub(crate) fn path(&self, text: &str) -> Result<VfsPath> {
        match &self.opened {
            OpenedBackend::Directory(files) => files.resolve(text),
            OpenedBackend::Config(_) | OpenedBackend::Store => VfsPath::parse(text),
        }
    }

    /// Returns the path of the file at `host_path`, or `None` if that is not below a root directory.
    pub(crate) fn path_of_host_path(&self, host_path: &str) -> Option<VfsPath> {
        let OpenedBackend::Directory(files) = &self.opened else { return None };
        let config = files.config();
        if config.confinement == Confinement::None {
            return None;
        }
        // If the working directory is unknown, the path is only compared with the real path of the root.
        let absolute_root = std::path::absolute(self.root.as_deref().unwrap_or(Path::new("."))).ok();
        let roots = [Some(config.root.as_path()), absolute_root.as_deref()];
        let below = roots.into_iter().flatten().find_map(|root| Path::new(host_path).strip_prefix(root).ok())?;
        VfsPath::parse(below.to_str()?).ok()
    }

    /// Parses the path argument `text`, with the root as the default.
    pub(crate) fn path_or_root(&self, text: Option<&str>) -> Result<VfsPath> {
        self.path(text.unwrap_or("."))
    }

    /// Returns the configured backend.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] without `--config`.
    pub(crate) fn configured(&self) -> Result<&ConfiguredBackend, Failure> {
        match &self.opened {
            OpenedBackend::Config(configured) => Ok(configured),
            OpenedBackend::Directory(_) | OpenedBackend::Store => Err(MISSING_CONFIG),
        }
    }

    /// Returns the path at which commands in a sandbox with these settings see `path`.
    pub(crate) fn path_in_sandbox(&self, args: SandboxArgs, path: &VfsPath) -> Result<VfsPath, Failure> {
        Ok(sandbox::path_of_root(self.root.as_deref(), args)?.join(path.relative())?)
    }

    /// Writes the audit records of dropped operations.
    pub(crate) async fn close(&self) -> Result<(), Failure> {
        match &self.opened {
            OpenedBackend::Config(configured) => Ok(configured.flush().await?),
            OpenedBackend::Directory(_) | OpenedBackend::Store => Ok(()),
        }
    }
}
