//! The documents against the code: links lead somewhere, RUNBOOK.md has what can happen and no more, tables are
//! complete, policies fit, lines are not too long.

mod capz;
mod lines;
mod links;
mod policies;
mod runbook;
mod source;
mod tables;
