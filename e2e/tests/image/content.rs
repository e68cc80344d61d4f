//! What is in an image: the program, the certificates, and nothing else; and its metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rstest::rstest;

use crate::archive::{self, Image};
use e2e::node::images::{self, ARMSIM, AWSSIM, HYPERLINK, HYPERLINK_ARM64, HYPERLINK_INDEX, SOURCE};

/// Largest size of an image in bytes, packed and unpacked.
const MOST: u64 = 20 << 20;

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

#[rstest]
#[case::amd64(HYPERLINK, &["etc", "etc/ssl", "etc/ssl/certs", CERTIFICATES, "hyperlink"])]
#[case::arm64(HYPERLINK_ARM64, &["etc", "etc/ssl", "etc/ssl/certs", CERTIFICATES, "hyperlink"])]
#[case::armsim(ARMSIM, &["armsim"])]
#[case::awssim(AWSSIM, &["awssim"])]
fn image_is_small_and_has_nothing_that_is_not_needed(#[case] name: &str, #[case] expected: &[&str]) {
    e2e::scenario(async {
        let Some(built) = images::built(name)? else {
            return Ok(());
        };
        let image = Image::unpack(&built.archive)?;
        let mut found = BTreeSet::new();
        list(&image.root, &image.root, &mut found)?;
        ensure!(found == expected.iter().map(ToString::to_string).collect(), "{found:?}");
        let packed = built.archive.metadata()?.len();
        let mut unpacked = 0;
        for name in found {
            let metadata = image.root.join(&name).metadata()?;
            let (owner, mode) = ((metadata.uid(), metadata.gid()), metadata.permissions().mode() & 0o7777);
            ensure!(
                !rustix::process::geteuid().is_root() || owner == (0, 0),
                "{name} belongs to {owner:?}"
            );
            ensure!(mode & 0o7022 == 0, "{name} has mode {mode:o}");
            unpacked += if metadata.is_file() { metadata.len() } else { 0 };
        }
        eprintln!("{name}: {packed} bytes packed, {unpacked} unpacked");
        ensure!(
            packed <= MOST && unpacked <= MOST,
            "{packed} bytes, {unpacked} unpacked"
        );
        Ok(())
    });
}

#[rstest]
#[case::amd64(HYPERLINK, "hyperlink")]
#[case::arm64(HYPERLINK_ARM64, "hyperlink")]
#[case::armsim(ARMSIM, "armsim")]
#[case::awssim(AWSSIM, "awssim")]
fn image_has_the_expected_metadata(#[case] name: &str, #[case] program: &str) {
    e2e::scenario(async {
        let Some(built) = images::built(name)? else {
            return Ok(());
        };
        let image = Image::unpack(&built.archive)?;
        ensure!(image.digest == built.digest, "{} and {}", image.digest, built.digest);
        let called = format!("localhost/{program}:{}", env!("CARGO_PKG_VERSION"));
        ensure!(image.name == called, "{} is called {}", name, image.name);
        let architecture = name.rsplit_once('-').context("a name with an architecture")?.1;
        ensure!(image.config["os"] == "linux" && image.config["architecture"] == architecture);
        let config = &image.config["config"];
        ensure!(config["User"] == "65532:65532", "{config}");
        ensure!(
            config["Entrypoint"] == serde_json::json!([format!("/{program}")]),
            "{config}"
        );
        for unwanted in ["Cmd", "Volumes", "ExposedPorts", "WorkingDir"] {
            ensure!(config[unwanted].is_null(), "{config}");
        }
        for (label, expected) in [
            ("title", program),
            ("licenses", "Apache-2.0"),
            ("source", SOURCE),
            ("version", env!("CARGO_PKG_VERSION")),
        ] {
            ensure!(image.label(label)? == expected, "{label}: {}", image.label(label)?);
        }
        let commit = image.label("revision")?.trim_end_matches("-dirty");
        ensure!(
            commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{commit}"
        );
        let elf = std::fs::read(image.root.join(program))?;
        ensure!(machine(&elf) == Some(architecture), "built for another machine");
        ensure!(!asks_for_an_interpreter(&elf)?, "not static");
        Ok(())
    });
}

#[rstest]
#[case::word("version")]
#[case::flag("--version")]
fn version_names_the_commit(#[case] asked: &str) {
    e2e::scenario(async {
        let Some(built) = images::built(HYPERLINK)? else {
            return Ok(());
        };
        let image = Image::unpack(&built.archive)?;
        let output = Command::new(image.root.join("hyperlink")).arg(asked).output()?;
        let printed = String::from_utf8(output.stdout)?;
        let (version, commit) = (image.label("version")?, image.label("revision")?);
        ensure!(printed == format!("hyperlink {version} ({commit})\n"), "{printed}");
        Ok(())
    });
}

#[test]
fn index_has_the_image_for_each_machine() {
    e2e::scenario(async {
        let mut built = Vec::new();
        for name in [HYPERLINK_INDEX, HYPERLINK, HYPERLINK_ARM64] {
            let Some(one) = images::built(name)? else {
                return Ok(());
            };
            built.push(one);
        }
        let (digest, images) = archive::index(&built[0].archive)?;
        ensure!(digest == built[0].digest, "{digest} and {}", built[0].digest);
        let expected = [("amd64", &built[1]), ("arm64", &built[2])];
        let expected = expected.map(|(machine, one)| (machine.to_owned(), one.digest.clone()));
        ensure!(images == BTreeMap::from(expected), "{images:?}");
        Ok(())
    });
}

#[test]
fn certificates_are_those_of_public_authorities() {
    e2e::scenario(async {
        let Some(built) = images::built(HYPERLINK)? else {
            return Ok(());
        };
        let image = Image::unpack(&built.archive)?;
        let certificates = reqwest::Certificate::from_pem_bundle(&std::fs::read(image.root.join(CERTIFICATES))?)?;
        ensure!(certificates.len() > 100, "{} certificates", certificates.len());
        Ok(())
    });
}

fn list(root: &Path, dir: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in dir.read_dir()? {
        let path = entry?.path();
        found.insert(path.strip_prefix(root)?.to_string_lossy().into_owned());
        if path.symlink_metadata()?.is_dir() {
            list(root, &path, found)?;
        }
    }
    Ok(())
}

/// The processor that an ELF file is for.
fn machine(elf: &[u8]) -> Option<&'static str> {
    match elf.get(18..20)? {
        [62, 0] => Some("amd64"),
        [183, 0] => Some("arm64"),
        _ => None,
    }
}

/// Whether an ELF file (64 bits, little endian) has to be loaded by another program.
fn asks_for_an_interpreter(elf: &[u8]) -> Result<bool> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, bytes: usize| -> Result<u64> {
        let field = elf.get(at..at + bytes).context("a short ELF file")?;
        Ok(field
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        if number(usize::try_from(start + index * size)?, 4)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}
