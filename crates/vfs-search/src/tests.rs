//! Tests of the operations over whole trees.

mod engine;
mod find;
mod grep;
mod known;
mod limits;
mod list;
mod places;
mod visibility;
