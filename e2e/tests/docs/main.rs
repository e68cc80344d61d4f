//! The documents against the code: links lead somewhere, RUNBOOK.md has what can happen and nothing else, tables are whole.

mod links;
mod runbook;
mod source;
mod tables;
