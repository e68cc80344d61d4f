//! Two builds of the same sources have the same digest: the second from a copy of the sources, in other directories, in another time
//! zone, and with everything compiled anew. What both share is the toolchain, and the sources of the dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::scenario;

use crate::archive::Image;
use crate::images::{self, HYPERLINK};

#[test]
fn second_build_elsewhere_has_the_same_digest() {
    scenario(async {
        let Some(first) = images::built(HYPERLINK)? else {
            return Ok(());
        };
        let image = Image::unpack(&first.archive)?;
        let created: jiff::Timestamp = image.config["created"].as_str().context("no time")?.parse()?;
        let elsewhere = images::target_dir().join("image-elsewhere");
        let (source, target) = (elsewhere.join("source"), elsewhere.join("target"));
        copy_sources(&source)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let second = images::build(
            &source,
            &[HYPERLINK],
            &[
                ("CARGO_TARGET_DIR", &path(&target)),
                ("HYPERLINK_COMMIT", image.label("revision")?),
                ("SOURCE_DATE_EPOCH", &created.as_second().to_string()),
                ("TZ", "Asia/Tokyo"),
            ],
        )?;
        let second = second.get(HYPERLINK).context("not built")?;
        let again = Image::unpack(&second.archive)?;
        let program = |image: &Image| std::fs::read(image.root.join("hyperlink"));
        let (one, other) = (program(&image)?, program(&again)?);
        ensure!(one == other, "the programs differ: {:?}", differing_names(&one, &other));
        ensure!(image.config == again.config, "{} and {}", image.config, again.config);
        ensure!(first.digest == second.digest, "{} and {}", first.digest, second.digest);
        ensure!(
            std::fs::read(first.bill())? == std::fs::read(second.bill())?,
            "the bills differ"
        );
        Ok(())
    });
}

#[test]
fn program_names_no_directory_of_this_machine() {
    scenario(async {
        let Some(built) = images::built(HYPERLINK)? else {
            return Ok(());
        };
        let text = std::fs::read(Image::unpack(&built.archive)?.root.join("hyperlink"))?;
        let text = String::from_utf8_lossy(&text);
        let home = std::env::var("HOME")?;
        for place in [
            e2e::repository(),
            images::target_dir(),
            cargo_home()?,
            PathBuf::from(home).join(".rustup"),
        ] {
            let place = place.to_string_lossy();
            ensure!(!text.contains(&*place), "{place} is in the program");
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

/// What git knows and what it does not ignore, with the times of the files, so that a second run compiles only what has changed.
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
