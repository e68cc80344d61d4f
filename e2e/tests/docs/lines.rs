//! Lines of the repository's Markdown fit a screen.

use std::ops::Range;

use anyhow::{Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag};
use regex::Regex;

/// The most columns of a line.
const MOST: usize = 120;

/// The parts of a text that cannot be wrapped, as ranges of bytes: code blocks, tables and headings.
fn fixed(text: &str) -> Vec<Range<usize>> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let is_fixed = |event: &Event<'_>| {
        matches!(
            event,
            Event::Start(Tag::CodeBlock(_) | Tag::Table(_) | Tag::Heading { .. })
        )
    };
    events
        .filter_map(|(event, range)| is_fixed(&event).then_some(range))
        .collect()
}

/// The numbers of the lines that have too many columns and could be wrapped.
fn too_long(text: &str) -> Result<Vec<usize>> {
    let only_a_link = Regex::new(r"^\s*([-*] )?\[[^\]]+\](\([^)]+\)|: \S+)[.,;:]?$")?;
    let fixed = fixed(text);
    let (mut found, mut start) = (Vec::new(), 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = start + line.len();
        let is_fixed = fixed.iter().any(|part| part.start < end && start < part.end);
        let line = line.trim_end();
        if line.chars().count() > MOST && !is_fixed && !only_a_link.is_match(line) {
            found.push(index + 1);
        }
        start = end;
    }
    Ok(found)
}

#[test]
fn prose_has_at_most_120_columns() -> Result<()> {
    let mut found = Vec::new();
    for (path, text) in crate::links::markdown(&e2e::repository().canonicalize()?)? {
        let lines = too_long(&text)?;
        found.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    ensure!(found.is_empty(), "more than {MOST} columns:\n{}", found.join("\n"));
    Ok(())
}

#[test]
fn only_prose_that_could_be_wrapped_is_too_long() -> Result<()> {
    let long = "word ".repeat(30);
    for (text, expected) in [
        (format!("short\n\n{long}\nshort\n"), vec![3]),
        (format!("- short\n- {long}"), vec![2]),
        (format!("`code` and {long}"), vec![1]),
        (format!("[link](x) and {long}"), vec![1]),
        (format!("# {long}\n"), vec![]),
        (format!("```\n{long}\n```\n"), vec![]),
        (format!("- a\n\n  ```\n  {long}\n  ```\n"), vec![]),
        (format!("| a |\n|---|\n| {long} |\n\n{long}\n"), vec![5]),
        (format!("[{long}](https://example.com/).\n"), vec![]),
        (format!("[a]: https://example.com/{}\n", "x".repeat(120)), vec![]),
        ("ü".repeat(120), vec![]),
    ] {
        ensure!(too_long(&text)? == expected, "{text}");
    }
    Ok(())
}
