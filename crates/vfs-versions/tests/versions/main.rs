//! Overlays and checkpoints of a store in memory.

mod golden;
mod overlay;
mod overlay_discard;
mod persistence;
mod snapshots;
mod support;
