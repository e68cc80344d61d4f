//! The documents against the code: links lead somewhere, and RUNBOOK.md has what can happen and nothing else.

mod links;
mod runbook;
mod source;
