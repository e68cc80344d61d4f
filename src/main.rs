//! The `hyperlink` binary: parses the command line and dispatches.

mod cli;
mod manager;

fn main() {}
