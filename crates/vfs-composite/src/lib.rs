//! Mounts: one namespace over many backends.
