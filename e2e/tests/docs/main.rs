//! The documents against the code: links lead somewhere, RUNBOOK.md has what can happen and no more, tables are
//! complete.

mod links;
mod runbook;
mod source;
mod tables;
