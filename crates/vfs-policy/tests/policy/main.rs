//! Policies around a store in memory, and command rules against real shells.

mod existence;
mod golden;
mod rules;
mod shells;
