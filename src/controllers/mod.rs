//! The controllers: each observes, plans, executes and reports, in files of these names.

pub mod decision;
pub mod identity;
pub mod intent;
pub mod link_service;
