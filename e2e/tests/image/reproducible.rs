//! Two builds of the same sources have the same digest. The second one is made from a copy of the sources, in other
//! directories and another time zone, and compiles everything again. Both share the toolchain and the sources of the
//! dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::scenario;
use rstest::rstest;

use crate::archive::Image;
use e2e::node::images::{self, Built, HYPERLINK, HYPERLINK_ARM64};

/// The image for the other machine stands for both: they come from the same recipe, and each build takes minutes.
#[test]
fn second_build_elsewhere_has_the_same_digest() {
    scenario(async {
        let Some(first) = images::built(HYPERLINK_ARM64)? else {
            return Ok(());
        };
        let second = build_elsewhere(HYPERLINK_ARM64, &Image::unpack(&first.archive)?)?;
        is_the_same(&first, &second)?;
        ensure!(first.archive != second.archive, "it was not built elsewhere");
        ensure!(first.digest == second.digest, "{} and {}", first.digest, second.digest);
        Ok(())
    });
}

/// Builds an image as `like` says it was built, from a copy of the sources, in other directories and another time zone.
fn build_elsewhere(name: &str, like: &Image) -> Result<Built> {
    let created: jiff::Timestamp = like.config["created"].as_str().context("no time")?.parse()?;
    let elsewhere = images::target_dir().join("image-elsewhere");
    let (source, target) = (elsewhere.join("source"), elsewhere.join("target"));
    copy_sources(&source)?;
    let built = images::build(
        &source,
        &[name],
        &[
            ("CARGO_TARGET_DIR", &target.to_string_lossy()),
            ("HYPERLINK_COMMIT", like.label("revision")?),
            ("SOURCE_DATE_EPOCH", &created.as_second().to_string()),
            ("TZ", "Asia/Tokyo"),
        ],
    )?;
    Ok(built.get(name).context("no such image was built")?.clone())
}

/// Fails with what differs between two builds of an image, or of the SBOM beside it.
fn is_the_same(first: &Built, second: &Built) -> Result<()> {
    let (image, again) = (Image::unpack(&first.archive)?, Image::unpack(&second.archive)?);
    let program = |image: &Image| std::fs::read(image.root.join("hyperlink"));
    let (one, other) = (program(&image)?, program(&again)?);
    ensure!(one == other, "the programs differ: {:?}", differing_names(&one, &other));
    ensure!(image.config == again.config, "{} and {}", image.config, again.config);
    let bill = |built: &Built| std::fs::read(built.bill());
    ensure!(bill(first)? == bill(second)?, "the bills differ");
    Ok(())
}

#[rstest]
#[case::amd64(HYPERLINK)]
#[case::arm64(HYPERLINK_ARM64)]
fn program_names_no_directory_of_this_machine(#[case] name: &str) {
    scenario(async {
        let Some(built) = images::built(name)? else {
            return Ok(());
        };
        let text = std::fs::read(Image::unpack(&built.archive)?.root.join("hyperlink"))?;
        let text = String::from_utf8_lossy(&text);
        let home = std::env::var("HOME")?;
        for path in [
            e2e::repository(),
            images::target_dir(),
            cargo_home()?,
            PathBuf::from(home).join(".rustup"),
        ] {
            let path = path.to_string_lossy();
            ensure!(!text.contains(&*path), "{path} is in the program");
        }
        ensure!(text.contains("/cargo/registry/src/"), "no panic says where it was");
        Ok(())
    });
}

fn cargo_home() -> Result<PathBuf> {
    let given = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    given.or(default).context("no home")
}

/// What git knows and what it does not ignore, with the times of the files, so that a second run compiles only what has
/// changed.
fn copy_sources(into: &Path) -> Result<()> {
    const COPY: &str = r#"rm -rf "$0" && mkdir -p "$0" &&
        git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from - | tar --extract --directory "$0""#;
    let status = Command::new("bash")
        .args(["-o", "pipefail", "-c", COPY])
        .arg(into)
        .current_dir(e2e::repository())
        .status()?;
    ensure!(status.success(), "copy the sources: {status}");
    Ok(())
}

/// Words with a slash that only one of two programs has.
fn differing_names(one: &[u8], other: &[u8]) -> Vec<String> {
    let names = |bytes: &[u8]| -> BTreeSet<String> {
        let words = bytes
            .split(|byte| !byte.is_ascii_graphic())
            .filter(|word| word.contains(&b'/'));
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    names(one)
        .symmetric_difference(&names(other))
        .take(10)
        .cloned()
        .collect()
}
