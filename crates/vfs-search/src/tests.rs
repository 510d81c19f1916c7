//! Tests of the operations over whole trees.

mod engine;
mod glob;
mod grep;
mod limits;
mod ls;
mod prefilter;
mod submatches;
mod visibility;
