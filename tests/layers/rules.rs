//! The layers, and what each may use. A layer may use its own and those below it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use hyperlink::telemetry::FIELDS;

use super::source::{self, Path, Source};

mod bans;

use bans::BANS;

/// From the bottom up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Types, names, comparisons.
    Data,
    /// Pure functions from observations to decisions.
    Decide,
    /// Calls to Azure, one at a time, and what counts them.
    Wire,
    /// Reads, writes, controllers.
    Effect,
    /// Flags, election, start and stop.
    Run,
}

use Layer::{Data, Decide, Effect, Run, Wire};

/// Which module is in which layer, as ARCHITECTURE.md has it: the file or folder of that name, `*` for any one. The
/// longest that fits counts.
static LAYERS: LazyLock<Vec<(String, Layer)>> = LazyLock::new(|| table(include_str!("../../ARCHITECTURE.md")));

/// The rows of the table of layers, `folder/{a,b}` taken apart.
fn table(text: &str) -> Vec<(String, Layer)> {
    let mut modules = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, listed, _, ""] = cells.as_slice() else {
            continue;
        };
        let named = |layer: &Layer| format!("{layer:?}").to_lowercase() == *name;
        let Some(layer) = [Data, Decide, Wire, Effect, Run].into_iter().find(named) else {
            continue;
        };
        for entry in listed.split('`').skip(1).step_by(2) {
            let (folder, names) = entry.split_once('{').unwrap_or(("", entry));
            let names = names.trim_end_matches('}').split(',');
            modules.extend(names.map(|name| (format!("{folder}{name}"), layer)));
        }
    }
    modules
}

/// One line for each breach: `src/file.rs:line: what, and why not`.
pub(crate) fn violations(sources: &BTreeMap<String, String>) -> Vec<String> {
    let parsed: BTreeMap<&str, Source> = sources
        .iter()
        .map(|(file, text)| (file.as_str(), source::read(text)))
        .collect();
    let mut found = Vec::new();
    let reached = named(&parsed);
    for (file, source) in &parsed {
        match reached.get(*file) {
            None => found.push(format!("src/{file}: no `mod` names this file")),
            // A file for tests only may use what it likes.
            Some(true) => {}
            Some(false) => match layer(file) {
                None => found.push(format!(
                    "src/{file}: belongs to no layer; add it to the table in ARCHITECTURE.md"
                )),
                Some(own) => check(file, own, source, &parsed, &mut found),
            },
        }
    }
    found
}

/// What is listed and does not exist: modules of the table of layers, and log fields.
pub(crate) fn leftovers(sources: &BTreeMap<String, String>) -> Vec<String> {
    let logged: BTreeSet<String> = sources
        .values()
        .flat_map(|text| source::read(text).log_fields)
        .map(|(_, field)| field)
        .collect();
    let modules = LAYERS.iter().map(|(pattern, _)| pattern);
    let modules = modules.filter(|pattern| !sources.keys().any(|file| fits(pattern, file)));
    let fields = FIELDS.iter().filter(|(name, _)| !logged.contains(*name));
    modules
        .map(|pattern| format!("ARCHITECTURE.md: there is no src/{pattern}"))
        .chain(fields.map(|(name, _)| format!("telemetry::FIELDS: nobody logs {name}")))
        .collect()
}

fn check(file: &str, own: Layer, source: &Source, read: &BTreeMap<&str, Source>, found: &mut Vec<String>) {
    if own <= Decide {
        for line in &source.async_lines {
            found.push(format!(
                "src/{file}:{line}: async in the {own:?} layer, which waits for nothing"
            ));
        }
    }
    for (line, field) in &source.log_fields {
        if !FIELDS.iter().any(|(name, _)| name == field) {
            found.push(format!(
                "src/{file}:{line}: logs {field}, which is not among telemetry::FIELDS"
            ));
        }
    }
    for path in &source.paths {
        let full = absolute(file, path);
        let shown = full.join("::");
        let line = path.line;
        for ban in BANS {
            if ban.covers(file, own) && ban.hits(&full) {
                found.push(format!("src/{file}:{line}: uses {shown}; {}", ban.why));
            }
        }
        if let Some((used, above)) = owner(&full, read)
            && above > own
        {
            found.push(format!(
                "src/{file}:{line}: uses {shown} of src/{used}; the {own:?} layer must not use the {above:?} layer"
            ));
        }
    }
}

/// Whether `path` is `pattern` or below it; `…::name` fits the end, or what is below it.
fn begins(pattern: &str, path: &[String]) -> bool {
    let parts: Vec<&str> = pattern.split("::").collect();
    match parts.as_slice() {
        ["…", end @ ..] => path.windows(end.len()).any(|window| window == end),
        all => path.len() >= all.len() && path[..all.len()] == *all,
    }
}

/// Whether `file` is the module, or a part of it.
fn fits(pattern: &str, file: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    let same = |(pattern, part): (&&str, &&str)| *pattern == "*" || pattern == part;
    parts.len() >= pattern.len() && pattern.iter().zip(&parts).all(same)
}

fn layer(file: &str) -> Option<Layer> {
    let fitting = LAYERS.iter().filter(|(pattern, _)| fits(pattern, file));
    let closest = fitting.max_by_key(|(pattern, _)| pattern.split('/').count());
    closest.map(|(_, layer)| *layer)
}

/// The crates' first files. The compiler keeps the crates apart.
const ROOTS: [&str; 5] = ["lib.rs", "main.rs", "aws/lib.rs", "azure/lib.rs", "engine/lib.rs"];

/// The folder of the crate with which a path begins: `hyperlink_azure::kinds` is in `azure`.
fn crate_of(file: &str, first: &str) -> Option<&'static str> {
    match first {
        "crate" => Some(
            ["aws", "azure", "engine"]
                .into_iter()
                .find(|folder| fits(folder, file))
                .unwrap_or_default(),
        ),
        "hyperlink" => Some(""),
        "hyperlink_aws" => Some("aws"),
        "hyperlink_azure" => Some("azure"),
        "hyperlink_engine" => Some("engine"),
        _ => None,
    }
}

/// The module that a file is: `azure/arm/auth/mod.rs` is `azure`, `auth`.
fn module(file: &str) -> Vec<String> {
    let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    let parts = match parts.as_slice() {
        [before @ .., "mod" | "lib"] => before,
        ["main"] => &[],
        all => all,
    };
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The path from the crate's root or from another crate.
fn absolute(file: &str, path: &Path) -> Vec<String> {
    let mut base = module(file);
    let mut rest = path.segments.as_slice();
    let first = rest.first().map(String::as_str).unwrap_or_default();
    if let Some(folder) = crate_of(file, first) {
        let folder = Some(folder.to_owned()).filter(|folder| !folder.is_empty());
        return std::iter::once("crate".to_owned())
            .chain(folder)
            .chain(rest[1..].iter().cloned())
            .collect();
    }
    if !matches!(first, "self" | "super") {
        return rest.to_vec();
    }
    while let Some(first) = rest.first() {
        match first.as_str() {
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = &rest[1..];
    }
    [&["crate".to_owned()], base.as_slice(), rest].concat()
}

/// The file that a path of this crate leads to, and its layer.
fn owner<'a>(path: &[String], read: &BTreeMap<&'a str, Source>) -> Option<(&'a str, Layer)> {
    let inside = path.strip_prefix(&["crate".to_owned()])?;
    (1..=inside.len()).rev().find_map(|length| {
        let stem = inside[..length].join("/");
        let candidates = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
        let (file, _) = candidates
            .iter()
            .find_map(|candidate| read.get_key_value(candidate.as_str()))?;
        layer(file).map(|layer| (*file, layer))
    })
}

/// The files that are reached from the roots, and whether only as tests.
fn named<'a>(read: &BTreeMap<&'a str, Source>) -> BTreeMap<&'a str, bool> {
    let mut reached = BTreeMap::new();
    let mut open: Vec<(&str, bool)> = ROOTS.map(|root| (root, false)).to_vec();
    let mut visited = BTreeSet::new();
    while let Some((file, for_tests)) = open.pop() {
        let Some((file, source)) = read.get_key_value(file) else {
            continue;
        };
        if !visited.insert((*file, for_tests)) {
            continue;
        }
        let only_tests = reached.entry(*file).or_insert(true);
        *only_tests &= for_tests;
        for (name, test) in &source.modules {
            let stem = [module(file).as_slice(), std::slice::from_ref(name)].concat().join("/");
            for candidate in [format!("{stem}.rs"), format!("{stem}/mod.rs")] {
                if let Some((child, _)) = read.get_key_value(candidate.as_str()) {
                    open.push((*child, for_tests || *test));
                }
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests;
