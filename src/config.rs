//! Flags and environment become one checked configuration.
