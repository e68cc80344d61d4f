//! `hack/kind` as it stands, on a node: its scripts, manifests, world and values, kubectl, helm, the images, and the
//! scenarios of `make e2e` on the chart's Pods. Simulated are only kind, whose cluster this is, and the builds.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::binaries::executable;
use e2e::node::images::{ARMSIM, HYPERLINK, target_dir};
use e2e::node::{self, Cluster};
use e2e::process::Program;
use e2e::run_dir::RunDir;
use e2e::{eventually, repository};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};
use serde_json::Value;

/// How long a script may take.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn scenarios_run_on_the_pods_of_the_scripts_of_kind() {
    node::scenario(&[HYPERLINK, ARMSIM], async |cluster| {
        let machine = Machine::new(cluster).await?;
        machine.script("up", &[]).await?;
        let ran = machine.script("run", &["E2E_ONLY=plain,hand-over"]).await?;
        for passed in ["plain: passed", "hand-over: passed", "takes away what bears the prefix"] {
            ensure!(ran.contains(passed), "{ran}");
        }
        // Once more, over itself.
        machine.script("install", &[]).await?;
        machine.script("down", &[]).await?;
        ensure!(!machine.path("cache/hyperlink/kind").exists(), "something is left");
        Ok(())
    });
}

/// Stand-ins for programs, for one cluster.
struct Machine<'a> {
    cluster: &'a Cluster,
    dir: RunDir,
}

impl<'a> Machine<'a> {
    async fn new(cluster: &'a Cluster) -> Result<Machine<'a>> {
        is_as_kind_makes_it(cluster).await?;
        let machine = Self {
            cluster,
            dir: RunDir::new("kind")?,
        };
        let kubeconfig = cluster.test_env().admin().path();
        let mut kubeconfig: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
        kubeconfig["contexts"][0]["name"] = "kind-hyperlink-e2e".into();
        std::fs::write(machine.path("kubeconfig"), kubeconfig.to_string())?;
        let release = machine.path("target/release");
        std::fs::create_dir_all(&release)?;
        symlink(executable("armsim")?, release.join("armsim"))?;
        symlink(target_dir().join("image"), machine.path("target/image"))?;
        machine.play()?;
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn play(&self) -> Result<()> {
        let (here, on_cluster) = (self.dir.path().display(), env!("CARGO_BIN_EXE_on-cluster"));
        let import = self
            .cluster
            .shell("ctr --namespace=k8s.io images import --all-platforms --digests");
        std::fs::create_dir(self.path("bin"))?;
        for (name, text) in [
            (
                "kind",
                format!(
                    "case \"$1 $2\" in\n\
                     'create cluster') cp '{here}/kubeconfig' \"$6\" ;;\n\
                     'load image-archive') {import} \"$3\" ;;\n\
                     esac"
                ),
            ),
            // The images and the programs are there.
            ("cargo", String::new()),
            (
                "make",
                format!("[ \"$1\" = e2e ] || exit 0; shift\nexec env \"$@\" '{on_cluster}'"),
            ),
        ] {
            let file = self.path("bin").join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n"))?;
            std::fs::set_permissions(&file, Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Runs a script to its end; returns what it printed.
    async fn script(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let kubectl = self.cluster.kubectl()?;
        let mut path = OsString::from(self.path("bin"));
        for more in [
            kubectl.directory().as_os_str(),
            &std::env::var_os("PATH").unwrap_or_default(),
        ] {
            path.push(":");
            path.push(more);
        }
        let program = Program::new(repository().join("hack/kind").join(name))
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("KUBECACHEDIR", self.path("kubectl"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("HELM", self.cluster.installed().helm.program());
        let program = arguments.iter().fold(program, Program::arg);
        program.output(name, self.dir.path(), LONG).await
    }
}

/// Makes the cluster as kind makes one: without HyperShift's definitions, addresses for Services and Hyperlink's
/// images.
async fn is_as_kind_makes_it(cluster: &Cluster) -> Result<()> {
    for image in ["hyperlink", "armsim"] {
        let name = format!("localhost/{image}:{}", env!("CARGO_PKG_VERSION"));
        cluster.ctr(&["images", "rm", "--sync", &name])?;
    }
    cluster.test_env().end_cloud_controller();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.test_env().client()?);
    let all = Default::default();
    definitions.delete_collection(&DeleteParams::default(), &all).await?;
    eventually("there are no definitions", LONG, || async {
        let left = definitions.list(&all).await?.items;
        ensure!(left.is_empty(), "{} definitions", left.len());
        Ok(())
    })
    .await
}
