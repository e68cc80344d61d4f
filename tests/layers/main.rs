//! Who may use what under `src/`. Reads the sources and fails on a forbidden path, on `async` where decisions are made,
//! on a file that belongs to no layer, on a file that no `mod` names, and on a generic file that names a kind of
//! resource. The layers are those of ARCHITECTURE.md.
//!
//! Only what is compiled into the product counts: tests inside the files may use what they like.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod kinds;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use kinds::named_kinds;
use rules::{leftovers, violations};

fn sources() -> BTreeMap<String, String> {
    fn collect(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    collect(&root, &root, &mut found);
    found
}

#[test]
fn the_sources_keep_their_layers() {
    let sources = sources();
    assert!(sources.len() > 20, "read only {} files", sources.len());
    let found = violations(&sources);
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}

#[test]
fn generic_files_name_no_kind_of_resource() {
    let found = named_kinds(&sources());
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}

#[test]
fn what_is_listed_is_there() {
    let found = leftovers(&sources());
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}
