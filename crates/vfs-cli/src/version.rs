//! The version of the command, with the optional features of the build.

use std::sync::LazyLock;

const FEATURES: [(&str, bool); 8] = [
    ("sqlite", cfg!(feature = "sqlite")),
    ("postgres", cfg!(feature = "postgres")),
    ("redis", cfg!(feature = "redis")),
    ("object-store", cfg!(feature = "object-store")),
    ("gcp", cfg!(feature = "gcp")),
    ("azure", cfg!(feature = "azure")),
    ("sandbox", cfg!(feature = "sandbox")),
    ("virtual-shell", cfg!(feature = "virtual-shell")),
];

/// The text of `vfs --version` after the name.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let enabled: Vec<_> = FEATURES.iter().filter(|(_, is_enabled)| *is_enabled).map(|(name, _)| *name).collect();
    let features = if enabled.is_empty() { "no optional features".to_owned() } else { enabled.join(", ") };
    format!("{} ({features})", env!("CARGO_PKG_VERSION"))
});
