//! The SBOM beside an image: valid by CycloneDX's own schema, and what it names is what is in the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::scenario;
use rstest::rstest;
use serde_json::Value;

use crate::archive::Image;
use e2e::node::images::{self, ARMSIM, AWSSIM, HYPERLINK, HYPERLINK_ARM64};

/// Directory of the dependencies in a program's messages, which is equal on every machine.
const REGISTRY: &str = "/cargo/registry/src/";

/// Name and version of a crate.
type Crate = (String, String);

#[rstest]
#[case::amd64(HYPERLINK, "hyperlink", "x86_64-unknown-linux-musl")]
#[case::arm64(HYPERLINK_ARM64, "hyperlink", "aarch64-unknown-linux-musl")]
#[case::armsim(ARMSIM, "armsim", "x86_64-unknown-linux-musl")]
#[case::awssim(AWSSIM, "awssim", "x86_64-unknown-linux-musl")]
fn bill_names_what_is_in_the_program(#[case] name: &str, #[case] program: &str, #[case] triple: &str) {
    scenario(async {
        let Some(built) = images::built(name)? else {
            return Ok(());
        };
        validate(&built.bill())?;
        let bill: Value = serde_json::from_slice(&std::fs::read(built.bill())?)?;
        let subject = &bill["metadata"]["component"];
        ensure!(
            subject["name"] == program && subject["version"] == env!("CARGO_PKG_VERSION"),
            "{subject}"
        );
        let listed = listed(&bill)?;

        let locked = locked()?;
        for (one, hash) in &listed {
            let hash_of_lock = locked
                .get(one)
                .with_context(|| format!("{one:?} is not in Cargo.lock"))?;
            ensure!(hash == hash_of_lock, "{one:?} has another hash in Cargo.lock");
        }
        let missing: Vec<_> = built_in(program, triple)?
            .into_iter()
            .filter(|one| !listed.contains_key(one))
            .collect();
        ensure!(missing.is_empty(), "cargo builds in and the bill lacks {missing:?}");

        let binary = std::fs::read(Image::unpack(&built.archive)?.root.join(program))?;
        let named = named_in(&binary);
        for name in ["kube-client-", "rustls-", "tokio-"] {
            ensure!(named.iter().any(|dir| dir.starts_with(name)), "{named:?}");
        }
        let listed: BTreeSet<_> = listed
            .keys()
            .map(|(name, version)| format!("{name}-{version}"))
            .collect();
        let missing: Vec<_> = named.difference(&listed).collect();
        ensure!(missing.is_empty(), "in the program and not in the bill: {missing:?}");
        Ok(())
    });
}

/// Fails unless the bill is valid by the schema of its own version.
fn validate(bill: &Path) -> Result<()> {
    const CHECK: &str = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()))";
    let requirements = e2e::repository().join("e2e/tests/image/requirements.txt");
    let venv = Command::new(e2e::repository().join("hack/venv"))
        .arg(requirements)
        .output()?;
    ensure!(venv.status.success(), "{}", String::from_utf8_lossy(&venv.stderr));
    let python = Path::new(String::from_utf8(venv.stdout)?.trim()).join("bin/python");
    let output = Command::new(python).args(["-c", CHECK]).arg(bill).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The components of a bill with their hashes.
fn listed(bill: &Value) -> Result<BTreeMap<Crate, Option<String>>> {
    let components = bill["components"].as_array().context("no components")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let one = |component: &Value| {
        let named = (text(&component["name"])?, text(&component["version"])?);
        Some((named, text(&component["hashes"][0]["content"])))
    };
    components
        .iter()
        .map(|component| one(component).with_context(|| component.to_string()))
        .collect()
}

/// The packages of Cargo.lock with their hashes.
fn locked() -> Result<BTreeMap<Crate, Option<String>>> {
    let text = std::fs::read_to_string(e2e::repository().join("Cargo.lock"))?;
    let field = |package: &str, name: &str| {
        let line = package
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    text.split("[[package]]")
        .skip(1)
        .map(|package| {
            let named = field(package, "name").zip(field(package, "version"));
            Ok((named.context("a package without a name")?, field(package, "checksum")))
        })
        .collect()
}

/// The crates that cargo builds into the program, without the program itself.
fn built_in(program: &str, triple: &str) -> Result<BTreeSet<Crate>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--locked",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]);
    cargo.args(["--package", program, "--target", triple, "--format", "{p}"]);
    let output = cargo.current_dir(e2e::repository()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let line = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    Ok(text
        .lines()
        .skip(1)
        .filter_map(line)
        .filter(|(name, _)| name != program)
        .collect())
}

/// The directories (`name-version`) of the crates whose sources a program names, in the messages of its panics.
fn named_in(binary: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(binary);
    // The first part of a path is the registry.
    let paths = text.split(REGISTRY).skip(1);
    paths
        .filter_map(|path| path.split('/').nth(1))
        .map(str::to_owned)
        .collect()
}
