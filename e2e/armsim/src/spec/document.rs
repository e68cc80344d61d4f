//! The OpenAPI files as they lie on disk, and what a `$ref` in one of them means.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::SpecError;

/// Where the reference data keeps what upstream calls `common-types/resource-management`.
const COMMON_TYPES: &str = "common-types/resource-management/";

/// A location in the specs: the file, and the JSON pointer in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpecLocation {
    pub(super) file: PathBuf,
    pub(super) pointer: String,
}

/// Files that were read, each once.
pub(super) struct Documents {
    root: PathBuf,
    read: HashMap<PathBuf, Value>,
}

impl Documents {
    /// `root` is the directory that holds `network`, `privatedns`, `resources` and `common-types`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            read: HashMap::new(),
        }
    }

    pub(super) fn file(&mut self, file: &Path) -> Result<&Value, SpecError> {
        if !self.read.contains_key(file) {
            let bad = |why: String| SpecError {
                place: file.display().to_string(),
                why,
            };
            let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
            let json = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
            self.read.insert(file.to_owned(), json);
        }
        Ok(&self.read[file])
    }

    /// What stands at a location.
    pub(super) fn at(&mut self, location: &SpecLocation) -> Result<Value, SpecError> {
        let found = self.file(&location.file)?.pointer(&location.pointer).cloned();
        found.ok_or_else(|| SpecError {
            place: location.file.display().to_string(),
            why: format!("there is nothing at {}", location.pointer),
        })
    }

    /// The location that a `$ref` in `file` means.
    pub(super) fn refers(&self, file: &Path, reference: &str) -> SpecLocation {
        let (other, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match other.split_once(COMMON_TYPES) {
            Some((_, rest)) => self.root.join("common-types").join(rest),
            None if other.is_empty() => file.to_owned(),
            None => file.with_file_name(other.trim_start_matches("./")),
        };
        SpecLocation {
            file,
            pointer: pointer.to_owned(),
        }
    }
}
