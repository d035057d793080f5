//! What every ledger must do, told against the trait: one suite for every kind of store
//! (`common::Store`). What is of SQLite's own making (files, processes) is in `files` and
//! `processes`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "the builders of a test may fail it"
)]

#[path = "../common/ledger.rs"]
mod common;

mod applying;
mod authorising;
mod calls;
mod cursors;
mod driving;
mod feeds;
mod files;
mod filling;
mod leases;
mod limits;
mod opening;
mod pages;
mod people;
mod processes;
mod report;
mod review_list;
mod upgrading;
mod writers;
