//! What a store keeps of an overlay, whatever fails and whoever else is there.

mod events;
mod others;
mod records;
