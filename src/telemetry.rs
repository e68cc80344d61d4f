//! Log format and field names.
