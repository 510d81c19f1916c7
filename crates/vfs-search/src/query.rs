//! Compilation of requests: expressions, matchers, file filters and required literals.

pub(crate) mod any_of;
pub(crate) mod compiled_grep_request;
pub(crate) mod file_filter;
pub(crate) mod file_types;
pub(crate) mod max_read_past_match;
pub(crate) mod pattern_matcher;
pub(crate) mod regex;
pub(crate) mod required_literals;
pub(crate) mod search_scope;
