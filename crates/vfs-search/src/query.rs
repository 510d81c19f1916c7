//! Compilation of requests: expressions, matchers, file filters and required literals.

pub(crate) mod alternation;
pub(crate) mod compiled;
pub(crate) mod file_filter;
pub(crate) mod file_types;
pub(crate) mod lookahead;
pub(crate) mod matcher;
pub(crate) mod regex;
pub(crate) mod required_literals;
pub(crate) mod search_scope;
