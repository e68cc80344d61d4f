//! The texts that the product can produce: those in its sources, with gaps where something is filled in.

use std::path::Path;

use anyhow::Result;
use e2e::runbook::fits;

/// Least length of a text without its gaps: shorter ones fit anything.
const LEAST: usize = 12;

/// All texts, each as the parts around its gaps.
pub(crate) struct Texts(Vec<Vec<String>>);

impl Texts {
    /// Reads the texts of `src/`, without tests.
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

    /// Whether one of them equals this text and has no gap.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0
            .iter()
            .any(|parts| matches!(parts.as_slice(), [only] if only == text))
    }

    /// Whether one of them fits the message, or its end after a colon, as an error follows what it is about.
    pub(crate) fn can_produce(&self, message: &str) -> bool {
        let length = |parts: &[String]| parts.iter().map(String::len).sum::<usize>();
        let tail = |parts: &[String]| match parts {
            [only] => message
                .strip_suffix(only.as_str())
                .is_some_and(|rest| rest.ends_with(": ")),
            _ => false,
        };
        let mut long = self.0.iter().filter(|parts| length(parts) >= LEAST);
        long.any(|parts| fits(message, parts) || tail(parts))
    }
}

fn read(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path)?;
    let code = product(&text).filter(|line| !line.trim_start().starts_with("//"));
    Ok(code
        .flat_map(|line| line.split('"').skip(1).step_by(2).map(gaps).collect::<Vec<_>>())
        .collect())
}

/// The lines before the tests that are in the file itself.
pub(crate) fn product(text: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    text.lines().take_while(move |line| {
        let tests = before == "#[cfg(test)]" && line.ends_with('{');
        before = line;
        !tests
    })
}

/// The parts of a text around what is filled in.
fn gaps(literal: &str) -> Vec<String> {
    let mut parts = literal.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('}').map_or(part, |(_, rest)| rest).to_owned());
    std::iter::once(first).chain(rest).collect()
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
fn tests_are_no_part_of_the_product() {
    let text = "a\n#[cfg(test)]\nmod model;\nb\n#[cfg(test)]\nmod tests {\nc";
    assert!(product(text).eq(["a", "#[cfg(test)]", "mod model;", "b", "#[cfg(test)]"]));
}

#[test]
fn text_that_is_in_no_source_is_not_found() -> Result<()> {
    let texts = Texts::of_the_product()?;
    assert!(texts.can_produce("load balancers: X: check the role assignments of the identity"));
    assert!(!texts.can_produce("load balancers: X: check the wind"));
    Ok(())
}
