//! Links inside the repository's Markdown lead to files and headings that are there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What one document has and what it refers to.
#[derive(Debug, Default)]
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

fn read(text: &str) -> Document {
    let (mut document, mut heading) = (Document::default(), None::<String>);
    let mut slug_counts = HashMap::<String, usize>::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let times = slug_counts.entry(slug.clone()).or_default();
                document
                    .anchors
                    .insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
                *times += 1;
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = heading.as_mut() {
                    heading.push_str(&text);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }
    document
}

/// The anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim().to_lowercase();
    let allowed = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    allowed.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text of all Markdown of the repository, by path.
pub(crate) fn markdown(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path)?;
                found.insert(path, text);
            }
        }
    }
    Ok(found)
}

fn documents(root: &Path) -> Result<BTreeMap<PathBuf, Document>> {
    let texts = markdown(root)?.into_iter();
    Ok(texts.map(|(path, text)| (path, read(&text))).collect())
}

/// What is wrong with a link in the document `from`; none if it is right, or leads out of the repository.
fn wrong(documents: &BTreeMap<PathBuf, Document>, from: &Path, link: &str) -> Result<Option<String>> {
    if link.contains("://") {
        return Ok(None);
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        from.to_owned()
    } else {
        let target = from.parent().context("no folder")?.join(path);
        match target.canonicalize() {
            Ok(target) => target,
            Err(_) => return Ok(Some(format!("no file {path}"))),
        }
    };
    let known = || {
        documents
            .get(&target)
            .is_some_and(|document| document.anchors.contains(anchor))
    };
    Ok((!anchor.is_empty() && !known()).then(|| format!("no heading #{anchor} in {}", target.display())))
}

#[test]
fn every_link_leads_somewhere() -> Result<()> {
    let documents = documents(&e2e::repository().canonicalize()?)?;
    let mut found = Vec::new();
    let mut links = 0;
    for (path, document) in &documents {
        for link in &document.links {
            links += 1;
            if let Some(wrong) = wrong(&documents, path, link)? {
                found.push(format!("{}: {link}: {wrong}", path.display()));
            }
        }
    }
    ensure!(links > 50, "read only {links} links");
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn links_of_alerts_and_dashboard_lead_to_runbook_headings() -> Result<()> {
    let root = e2e::repository();
    let runbook = read(&std::fs::read_to_string(root.join("RUNBOOK.md"))?);
    for file in ["alerts.yaml", "dashboard.json"] {
        let text = std::fs::read_to_string(root.join("charts/hyperlink/files").join(file))?;
        let named = text.split("/RUNBOOK.md#").skip(1);
        let ends = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        let named: Vec<_> = named.filter_map(|rest| rest.split(ends).next()).collect();
        ensure!(named.len() > 10, "read only {} links in {file}", named.len());
        for anchor in named {
            ensure!(runbook.anchors.contains(anchor), "{file}: no heading #{anchor}");
        }
    }
    Ok(())
}

#[test]
fn link_to_a_missing_file_or_heading_is_found() -> Result<()> {
    let here = e2e::repository().canonicalize()?.join("README.md");
    let text = "# One `two`, three\n\n## a\n\n## a\n\n[x](#a-1)";
    let documents = BTreeMap::from([(here.clone(), read(text))]);
    for (link, right) in [
        ("#one-two-three", true),
        ("#a-1", true),
        ("Cargo.toml", true),
        ("https://example.com/#x", true),
        ("#a-2", false),
        ("docs/nowhere.md", false),
    ] {
        ensure!(wrong(&documents, &here, link)?.is_none() == right, "{link}");
    }
    Ok(())
}
