//! Keeps the words that `docs/glossary.md` replaces out of identifiers, log fields and metric names.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// Names that Kubernetes or HyperShift gave, or that operators already match.
const PUBLIC: [&str; 3] = ["NotOurs", "NOT_OURS", "NotServed"];

/// The words of the glossary's last column.
#[derive(Debug, Default)]
struct Replaced {
    /// Not to be a part of any name.
    words: BTreeSet<String>,
    /// Not to be a whole name.
    names: BTreeSet<String>,
}

impl Replaced {
    fn read(glossary: &str) -> Self {
        let mut replaced = Self::default();
        for row in glossary.lines().filter(|line| line.starts_with("| ")) {
            let last_column = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
            if row.matches('|').count() != 4 || last_column.trim() == "instead of" || row.ends_with("|  |") {
                continue;
            }
            for word in last_column.split(',').map(str::trim) {
                match word.strip_prefix('`').and_then(|word| word.strip_suffix('`')) {
                    Some(name) => replaced.names.insert(name.to_owned()),
                    None => replaced.words.insert(word.to_owned()),
                };
            }
        }
        replaced
    }

    /// Whether `identifier` is, or contains, a replaced word.
    fn hits(&self, identifier: &str) -> bool {
        let hit = |part: String| self.words.contains(&part);
        !PUBLIC.contains(&identifier) && (self.names.contains(identifier) || parts(identifier).into_iter().any(hit))
    }
}

/// The words of a `snake_case` or `CamelCase` name, in lower case.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_ascii_uppercase() && after_lower) {
            parts.push(String::new());
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.push(c.to_ascii_lowercase());
        }
    }
    parts
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn identifiers(tokens: TokenStream, found: &mut BTreeSet<(String, usize)>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                found.insert((name.to_string(), name.span().start().line));
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn glossary() -> Replaced {
    Replaced::read(&read_to_string(root().join("docs/glossary.md")).unwrap())
}

#[test]
fn sources_use_the_words_of_the_glossary() {
    let (replaced, mut files, mut wrong) = (glossary(), Vec::new(), Vec::new());
    for folder in ["src", "tests", "fuzz", "e2e"] {
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 500, "read only {} files", files.len());
    for file in files {
        let tokens: TokenStream = read_to_string(&file).unwrap().parse().unwrap();
        let mut found = BTreeSet::new();
        identifiers(tokens, &mut found);
        let hits = found.into_iter().filter(|(name, _)| replaced.hits(name));
        wrong.extend(hits.map(|(name, line)| format!("{}:{line}: {name}", file.display())));
    }
    assert!(
        wrong.is_empty(),
        "words that docs/glossary.md replaces:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn metrics_use_the_words_of_the_glossary() {
    let (replaced, metrics) = (glossary(), read_to_string(root().join("docs/metrics.md")).unwrap());
    let names: Vec<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("| `hyperlink_")?.split('`').next())
        .collect();
    assert!(names.len() > 20, "read only {} names", names.len());
    let wrong: Vec<&str> = names.into_iter().filter(|name| replaced.hits(name)).collect();
    assert!(wrong.is_empty(), "words that docs/glossary.md replaces: {wrong:?}");
}

#[test]
fn replaced_words_are_found_in_any_spelling() {
    let replaced =
        Replaced::read("| term | meaning | instead of |\n|---|---|---|\n| a | b | seen, `Memory` |\n| c | d |  |\n");
    for name in ["seen", "_seen", "last_seen_at", "SEEN_AT", "LastSeen", "Memory"] {
        assert!(replaced.hits(name), "{name}");
    }
    for name in ["unseen", "memory", "MemoryLimit", "seed", "NotOurs"] {
        assert!(!replaced.hits(name), "{name}");
    }
}
