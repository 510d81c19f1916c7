//! A shell without processes for files of any backend.
