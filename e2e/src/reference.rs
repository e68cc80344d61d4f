//! Where HyperShift's own CRDs and other reference data are, if they are on this machine.
//!
//! They are never copied into the project. Without them, a test uses a fallback or is skipped.

use std::path::PathBuf;

/// Environment variable that names the directory of the reference data.
pub const VARIABLE: &str = "HYPERLINK_REFERENCE_DATA";

/// A directory of the reference data, or `None` where it is absent.
///
/// It is searched for in the directory that `HYPERLINK_REFERENCE_DATA` names, by default `../shared` beside the
/// repository.
pub fn directory(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os(VARIABLE).map_or_else(|| crate::repository().join("../shared"), PathBuf::from);
    Some(root.join(name)).filter(|path| path.is_dir())
}
