//! Wrappers over any backend, each a small value that composes with the others.
