//! Persistent overlays and journals, with failures and with other processes.

mod events;
mod others;
mod records;
