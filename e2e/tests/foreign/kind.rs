//! `hack/kind` on the test control plane. Its scripts, kubectl, helm, the manifests, the images' programs and the
//! scenarios are real. Simulated are kind, and what needs a node: containers are processes, and a pod's way to a
//! Service is loopback.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::azure_sim::Preset;
use e2e::binaries::executable;
use e2e::helm::Helm;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pod::Pod;
use e2e::process::{Process, Program};
use e2e::run_dir::RunDir;
use e2e::shared_env::control;
use e2e::{ControlPlane, TestEnv, eventually, repository, scenario};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Pod as PodObject, PodTemplateSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use serde::Deserialize;
use serde_json::Value;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(300);
/// Interval at which deleted pods are looked for.
const SYNC: Duration = Duration::from_millis(200);

/// Where the scripts install the chart.
const NAMESPACE: &str = "hle2e-kind-hyperlink";
const ARMSIM: &str = "armsim";
/// The tenant that `hack/kind/env` names.
const TENANT: &str = "22222222-2222-4222-8222-222222222222";

/// A machine with stand-ins for kind and make, and a cluster that has nothing yet.
struct Machine {
    control_plane: ControlPlane,
    helm: Helm,
    dir: RunDir,
}

/// Where the simulator listens.
#[derive(Deserialize)]
struct Addresses {
    arm: String,
    control: String,
}

impl Machine {
    async fn new(kubectl: &Path) -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(control_plane.client()?);
        definitions
            .delete_collection(&DeleteParams::default(), &Default::default())
            .await?;
        eventually("the cluster is empty", LONG, || async {
            let left = definitions.list(&Default::default()).await?.items;
            ensure!(left.is_empty(), "{} definitions", left.len());
            Ok(())
        })
        .await?;
        let helm = Helm::new(Some(control_plane.kubeconfig_path()))?;
        let dir = RunDir::new("kind")?;
        let mut kubeconfig: Value = serde_json::from_slice(&std::fs::read(control_plane.kubeconfig_path())?)?;
        kubeconfig["contexts"][0]["name"] = "kind-hyperlink-e2e".into();
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig.to_string())?;
        let release = dir.path().join("target/release");
        std::fs::create_dir_all(&release)?;
        std::os::unix::fs::symlink(executable("armsim")?, release.join("armsim"))?;
        let machine = Self {
            control_plane,
            helm,
            dir,
        };
        machine.play(kubectl)?;
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the stand-ins for programs. Each records its calls.
    fn play(&self, kubectl: &Path) -> Result<()> {
        let here = self.dir.path().display();
        let arm = format!("$(cat '{here}/arm')");
        let (kubectl, on_cluster) = (kubectl.display(), env!("CARGO_BIN_EXE_on-cluster"));
        let helm = self.helm.program().display();
        std::fs::create_dir(self.path("bin"))?;
        for (name, text) in [
            ("kind", format!("[ \"$1\" != create ] || cp '{here}/kubeconfig' \"$6\"")),
            ("cargo", String::new()),
            (
                "make",
                format!(
                    "[ \"$1\" = e2e ] || exit 0; shift\n\
                 exec env \"$@\" HYPERLINK_ARM_ENDPOINT={arm} AZURE_AUTHORITY_HOST={arm} '{on_cluster}'"
                ),
            ),
            // A rollout is over when the simulator is up; what is forwarded to is on loopback already.
            (
                "kubectl",
                format!(
                    "case \"$*\" in\n\
                 *' rollout '*) until [ -s '{here}/control' ]; do sleep 0.1; done; exit ;;\n\
                 *' port-forward '*) echo $$ >'{here}/forward'\n\
                 echo \"Forwarding from $(sed s,http://,, '{here}/control') -> 8080\"; exec sleep 1000 ;;\n\
                 esac\n\
                 exec '{kubectl}' \"$@\""
                ),
            ),
            // Nothing reports that a Deployment is ready.
            (
                "helm",
                format!(
                    "for one; do shift; [ \"$one\" = --wait ] || set -- \"$@\" \"$one\"; done\n\
                 exec '{helm}' \"$@\" --set settings.armEndpoint={arm} --set settings.authority={arm}"
                ),
            ),
        ] {
            let file = self.path("bin").join(name);
            std::fs::write(
                &file,
                format!("#!/bin/sh\necho \"{name} $*\" >>'{here}/calls'\n{text}\n"),
            )?;
            std::fs::set_permissions(&file, Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Runs a script to its end.
    async fn script(&self, name: &str, arguments: &[&str]) -> Result<()> {
        let mut path = OsString::from(self.path("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let program = Program::new(repository().join("hack/kind").join(name))
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("KUBECACHEDIR", self.path("kubectl"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("HELM", self.path("bin/helm"));
        let program = arguments.iter().fold(program, Program::arg);
        program.output(name, self.dir.path(), LONG).await.map(drop)
    }

    /// The pods of the Deployment, as soon as there is one.
    async fn template(&self, namespace: &str, deployment: &str) -> Result<(i32, PodTemplateSpec)> {
        let deployments: Api<Deployment> = Api::namespaced(self.control_plane.client()?, namespace);
        eventually(&format!("{deployment} is installed"), LONG, || async {
            let spec = deployments.get(deployment).await?.spec.context("no spec")?;
            Ok((spec.replicas.unwrap_or(1), spec.template))
        })
        .await
    }

    /// Makes a pod, which the namespace's policy has to admit.
    async fn admit(&self, namespace: &str, name: &str, template: &PodTemplateSpec) -> Result<()> {
        let mut pod = PodObject {
            metadata: template.metadata.clone().unwrap_or_default(),
            spec: template.spec.clone(),
            ..PodObject::default()
        };
        pod.metadata.name = Some(name.to_owned());
        let pods: Api<PodObject> = Api::namespaced(self.control_plane.client()?, namespace);
        pods.create(&PostParams::default(), &pod).await?;
        Ok(())
    }

    /// Simulates the nodes, without end: runs the pods of the manifest and of both releases, and stops deleted ones.
    async fn nodes(&self) -> Result<()> {
        let _simulator = self.simulator().await?;
        let mut running = Vec::new();
        for role in [Role::Ho, Role::Cpo] {
            let deployment = format!("hyperlink-{}", role.as_str());
            let (replicas, template) = self.template(NAMESPACE, &deployment).await?;
            uses_the_image("hyperlink", &template)?;
            for replica in 0..replicas {
                let name = format!("{deployment}-{replica}");
                self.admit(NAMESPACE, &name, &template).await?;
                let dir = self.dir.path();
                let pod = Pod::of(&self.control_plane, NAMESPACE, &deployment, &name, dir, TENANT).await?;
                running.push((name, pod.start(role, dir).await?));
            }
        }
        let pods: Api<PodObject> = Api::namespaced(self.control_plane.client()?, NAMESPACE);
        loop {
            let mut remaining: Vec<(String, Hyperlink)> = Vec::new();
            for (name, process) in running {
                if pods.get_opt(&name).await?.is_some() {
                    process.process().check()?;
                    remaining.push((name, process));
                } else {
                    process.stop().await?;
                }
            }
            running = remaining;
            tokio::time::sleep(SYNC).await;
        }
    }

    /// The containers of the manifest's pod, with its ServiceAccount.
    async fn simulator(&self) -> Result<[Process; 2]> {
        let (_, template) = self.template(ARMSIM, ARMSIM).await?;
        uses_the_image(ARMSIM, &template)?;
        self.admit(ARMSIM, ARMSIM, &template).await?;
        let spec = template.spec.context("no spec")?;
        let [serve, cloud_controller] = spec.containers.as_slice() else {
            bail!("not two containers");
        };
        let authority = self.path("cache/hyperlink/kind/armsim");
        let authority = authority.to_string_lossy();
        let local = [
            ("dir", &*authority),
            ("listen", "127.0.0.1:0"),
            ("control", "127.0.0.1:0"),
        ];
        let simulator = container(serve, &local)?.spawn("armsim", self.dir.path())?;
        let addresses: Addresses = simulator
            .until("the simulator is up", LONG, async || {
                Ok(serde_json::from_str(&std::fs::read_to_string(simulator.out())?)?)
            })
            .await?;
        let access = self.control_plane.service_account(ARMSIM, ARMSIM).await?;
        let kubeconfig = access.path().to_string_lossy();
        let local = [("kubeconfig", &*kubeconfig), ("control", &addresses.control)];
        let cloud_controller = container(cloud_controller, &local)?.spawn("cloud-controller", self.dir.path())?;
        std::fs::write(self.path("arm"), &addresses.arm)?;
        std::fs::write(self.path("control"), &addresses.control)?;
        Ok([simulator, cloud_controller])
    }

    /// Fails if the script's way to the simulator has outlived the script.
    fn nothing_is_forwarded(&self) -> Result<()> {
        let forward = std::fs::read_to_string(self.path("forward"))?;
        let running = Path::new("/proc").join(forward.trim()).join("cmdline");
        let running = std::fs::read_to_string(running).unwrap_or_default();
        ensure!(!running.contains("sleep"), "a port is still forwarded");
        Ok(())
    }
}

/// A container's program with its arguments, except those that differ on this machine.
fn container(container: &Container, local: &[(&str, &str)]) -> Result<Program> {
    let mut program = Program::new(executable(ARMSIM)?).without_our_environment();
    for argument in container.args.iter().flatten() {
        let (flag, _) = argument.split_once('=').unwrap_or((argument, ""));
        let elsewhere = local.iter().find(|(name, _)| flag.strip_prefix("--") == Some(*name));
        program = match elsewhere {
            Some((name, value)) => program.flag(name, value),
            None => program.arg(argument),
        };
    }
    Ok(program)
}

/// Each of the pod's containers has the image that `hack/image/build` calls so.
fn uses_the_image(program: &str, template: &PodTemplateSpec) -> Result<()> {
    let built = format!("localhost/{program}:{}", env!("CARGO_PKG_VERSION"));
    for container in template.spec.iter().flat_map(|spec| &spec.containers) {
        let (image, policy) = (container.image.as_deref(), container.image_pull_policy.as_deref());
        ensure!(
            image == Some(&built) && policy == Some("Never"),
            "{image:?}, {policy:?}"
        );
    }
    Ok(())
}

fn found(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(tool))
        .find(|file| file.is_file())
}

#[test]
fn scenarios_run_on_the_pods_that_the_scripts_install() {
    scenario(async {
        let (Some(kubectl), Some(_)) = (found("kubectl"), found("curl")) else {
            e2e::scenario::skipped("hack/kind takes kubectl and curl, and one of them is not here");
            return Ok(());
        };
        let machine = Machine::new(&kubectl).await?;
        let scripts = async {
            machine.script("up", &[]).await?;
            eventually("the script has tidied up", LONG, || async {
                machine.nothing_is_forwarded()
            })
            .await?;
            machine.script("run", &["E2E_ONLY=plain,hand-over"]).await?;
            let ran = std::fs::read_to_string(machine.path("run.out"))?;
            for passed in ["plain: passed", "hand-over: passed", "takes away what bears the prefix"] {
                ensure!(ran.contains(passed), "{ran}");
            }
            // A changed chart over the old one.
            machine.script("install", &[]).await?;
            machine.script("down", &[]).await
        };
        tokio::select! {
            ran = scripts => ran?,
            ended = machine.nodes() => ended?,
        }
        ensure!(!machine.path("cache/hyperlink/kind").exists(), "something is left");
        asked_for_what_there_is(
            &std::fs::read_to_string(machine.path("calls"))?,
            &machine.path("target"),
        )
    });
}

/// The images that are loaded are those that were built, and there is one cluster.
fn asked_for_what_there_is(calls: &str, target: &Path) -> Result<()> {
    let asked = |start: &str| {
        let found: Vec<_> = calls.lines().filter_map(|line| line.strip_prefix(start)).collect();
        found
    };
    let [built] = asked("make image IMAGES=")[..] else {
        bail!("{calls}");
    };
    let images = target.join("image");
    let loaded: Vec<_> = built
        .split(' ')
        .map(|name| format!("{} --name hyperlink-e2e", images.join(format!("{name}.tar")).display()))
        .collect();
    ensure!(asked("kind load image-archive ") == loaded, "{calls}");
    let file = "hack/kind/cluster.yaml";
    let created = asked("kind create cluster --config ");
    ensure!(created.len() == 1 && created[0].starts_with(file), "{calls}");
    let cluster: Value = serde_saphyr::from_str(&std::fs::read_to_string(repository().join(file))?)?;
    ensure!(cluster["name"] == "hyperlink-e2e", "{cluster}");
    let deleted = asked("kind delete cluster --name ");
    ensure!(
        deleted.len() == 1 && deleted[0].starts_with("hyperlink-e2e "),
        "{calls}"
    );
    Ok(())
}

#[test]
fn manifests_and_world_of_kind_are_accepted() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let read = |file: &str| std::fs::read_to_string(repository().join("hack/kind").join(file));
        let manifest = read("armsim.yaml")?;
        let objects = test_env.apply_yaml(&manifest).await?;
        ensure!(objects.len() == 7, "{}", objects.len());
        let world: Value = serde_json::from_str(&read("world.json")?)?;
        control(&test_env, reqwest::Method::PUT, "/seed", world).await?;
        // What the manifest names is in the world.
        let named = manifest.lines().filter_map(|line| line.split_once("=/subscriptions/"));
        let named: Vec<_> = named
            .map(|(_, id)| format!("/subscriptions/{id}").to_lowercase())
            .collect();
        ensure!(named.len() == 2, "{named:?}");
        let mut ids = Vec::new();
        for resource in test_env.oracle().resources("/subscriptions").await? {
            let subnets = resource["properties"]["subnets"].as_array().into_iter().flatten();
            let found = std::iter::once(&resource)
                .chain(subnets)
                .filter_map(|one| one["id"].as_str());
            ids.extend(found.map(str::to_lowercase));
        }
        for id in named {
            ensure!(ids.contains(&id), "{id} is not in {ids:?}");
        }
        Ok(())
    });
}
