//! What the product can say: the texts in its sources, with gaps where something is filled in.

use std::path::Path;

use anyhow::Result;

/// Shorter texts fit anything.
const LEAST: usize = 12;

/// All texts.
pub(crate) struct Texts(Vec<Vec<String>>);

impl Texts {
    /// Those of `src/`, tests left out.
    pub(crate) fn of_the_product() -> Result<Self> {
        let (mut texts, mut folders) = (Vec::new(), vec![e2e::repository().join("src")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.ends_with("tests") || path.ends_with("tests.rs") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    texts.extend(read(&path)?);
                }
            }
        }
        Ok(Self(texts))
    }

    /// Whether one of them fits, or ends it after a colon: errors are told of something.
    pub(crate) fn can_say(&self, message: &str) -> bool {
        let tail = |parts: &[String]| match parts {
            [only] => message
                .strip_suffix(only.as_str())
                .is_some_and(|rest| rest.ends_with(": ")),
            _ => false,
        };
        self.0.iter().any(|parts| fits(message, parts) || tail(parts))
    }
}

fn read(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path)?;
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let literals = code.flat_map(|line| line.split('"').skip(1).step_by(2).map(gaps).collect::<Vec<_>>());
    Ok(literals
        .filter(|parts| parts.iter().map(String::len).sum::<usize>() >= LEAST)
        .collect())
}

/// The parts of a text around what is filled in.
fn gaps(literal: &str) -> Vec<String> {
    let mut parts = literal.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('}').map_or(part, |(_, rest)| rest).to_owned());
    std::iter::once(first).chain(rest).collect()
}

/// Whether `message` is these parts, with anything between them.
fn fits(message: &str, parts: &[String]) -> bool {
    let [first, between @ .., last] = parts else {
        return parts.first().is_some_and(|only| only == message);
    };
    let Some(mut rest) = message.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in between {
        match rest.split_once(part.as_str()) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

#[test]
fn text_with_gaps_fits_what_is_filled_in_and_nothing_else() {
    let parts = gaps("the cluster is in {named}, this process serves {cloud}");
    assert!(fits("the cluster is in A, this process serves B", &parts));
    assert!(!fits("the cluster is in A, this process is B", &parts));
    assert!(!fits("now the cluster is in A, this process serves B", &parts));
    assert!(fits("deleted", &gaps("deleted")) && !fits("deleted too", &gaps("deleted")));
}

#[test]
fn nothing_says_what_is_in_no_source() -> Result<()> {
    let texts = Texts::of_the_product()?;
    assert!(texts.can_say("load balancers: X: check the role assignments of the identity"));
    assert!(!texts.can_say("load balancers: X: check the wind"));
    Ok(())
}
