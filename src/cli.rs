//! Commands and dispatch.
