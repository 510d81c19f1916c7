//! The Postgres store on a real server, whose URL is in `VFS_TEST_POSTGRES`; `.ci/postgres` starts one.
//!
//! `VFS_TEST_POSTGRES_EDITS` is how many edits the competing processes make; default 2,000.

#![cfg(feature = "postgres")]

mod alike;
mod changes;
mod contention;
mod damage;
mod first_errors;
mod given_up;
mod lab;
mod listing;
mod opening;
mod pooler;
mod proxy;
mod restart;
mod search;
mod severed;
mod staging;
