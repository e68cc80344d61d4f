//! The control plane that all other tests use is a real one, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::crds::Platform;
use e2e::process::is_running;
use e2e::run_dir::KEEP;
use e2e::{ControlPlane, eventually, scenario};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);

#[test]
fn it_answers_with_the_version_it_was_built_from() {
    scenario(async {
        let version = ControlPlane::shared().await?.client()?.apiserver_version().await?;
        ensure!(version.git_version.starts_with("v1.3"), "{}", version.git_version);
        Ok(())
    });
}

#[test]
fn crds_of_hypershift_are_established() {
    scenario(async {
        let crds: Api<CustomResourceDefinition> = Api::all(ControlPlane::shared().await?.client()?);
        for kind in ["azureprivatelinkservices", "hostedclusters", "hostedcontrolplanes"] {
            let crd = crds.get(&format!("{kind}.hypershift.openshift.io")).await?;
            let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
            ensure!(
                conditions
                    .iter()
                    .any(|one| one.type_ == "Established" && one.status == "True"),
                "{kind}"
            );
        }
        Ok(())
    });
}

#[test]
fn samples_of_hypershift_are_accepted() {
    let Some(samples) = e2e::reference::directory("hypershift-crds/samples") else {
        return e2e::scenario::skipped("no sample objects of HyperShift");
    };
    scenario(async move {
        let control_plane = ControlPlane::shared().await?;
        let text = std::fs::read_to_string(samples.join("hostedcontrolplane-private.yaml"))?;
        let text = text.replace("clusters-example", "samples-are-accepted");
        ensure!(control_plane.apply_yaml(&text).await?.len() == 2);
        let broken = text.replace("topology: Private", "topology: Sideways");
        let refused = control_plane.apply_yaml(&broken).await;
        ensure!(format!("{:#}", refused.unwrap_err()).contains("Sideways"));
        Ok(())
    });
}

#[test]
fn deleted_namespace_is_deleted_with_its_objects() {
    scenario(async {
        let control_plane = ControlPlane::shared().await?;
        let name = "goes-with-what-is-in-it";
        control_plane
            .apply_yaml(&format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n---\n\
                 {{apiVersion: v1, kind: ConfigMap, metadata: {{name: inside, namespace: {name}}}}}"
            ))
            .await?;
        let client = control_plane.client()?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let inside: Api<ConfigMap> = Api::namespaced(client, name);
        inside.get("inside").await?;
        namespaces.delete(name, &DeleteParams::default()).await?;
        eventually("the namespace is gone", SOON, || async {
            let left = namespaces.get_opt(name).await?;
            left.map_or(Ok(()), |left| Err(anyhow::anyhow!("{:?}", left.status)))
        })
        .await?;
        ensure!(inside.get_opt("inside").await?.is_none());
        Ok(())
    });
}

#[test]
fn dependents_of_a_deleted_owner_are_collected() {
    scenario(async {
        let control_plane = ControlPlane::shared().await?;
        let namespace = "dependents-are-collected";
        control_plane.service_account(namespace, "unused").await?;
        let maps: Api<ConfigMap> = Api::namespaced(control_plane.client()?, namespace);
        let create = async |value| {
            anyhow::Ok(
                maps.create(&PostParams::default(), &serde_json::from_value(value)?)
                    .await?,
            )
        };
        let owner = create(json!({"metadata": {"name": "owner"}})).await?;
        create(json!({"metadata": {"name": "dependent", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]}}))
        .await?;
        maps.delete("owner", &DeleteParams::default()).await?;
        eventually("the dependent is gone", SOON, || async {
            ensure!(maps.get_opt("dependent").await?.is_none(), "it is there");
            Ok(())
        })
        .await
    });
}

#[test]
fn service_account_without_roles_is_refused() {
    scenario(async {
        let control_plane = ControlPlane::shared().await?;
        let access = control_plane.service_account("without-roles", "nobody").await?;
        let services: Api<Service> = Api::namespaced(access.client()?, "without-roles");
        let refused = services.list(&ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = refused else {
            panic!("{refused}")
        };
        ensure!(status.code == 403, "{status:?}");
        ensure!(
            status.message.contains("system:serviceaccount:without-roles:nobody"),
            "{status:?}"
        );
        let audit = std::fs::read_to_string(control_plane.audit_log())?;
        let entry = audit
            .lines()
            .find(|line| line.contains("system:serviceaccount:without-roles:nobody"));
        let entry: serde_json::Value = serde_json::from_str(entry.context("not in the audit log")?)?;
        ensure!(
            entry["responseStatus"]["code"] == 403 && entry["objectRef"]["resource"] == "services",
            "{entry}"
        );
        Ok(())
    });
}

#[test]
fn client_that_trusts_another_authority_gets_no_connection() {
    scenario(async {
        let control_plane = ControlPlane::shared().await?;
        let strangers = tempfile::tempdir()?;
        let stranger = e2e::pki::Authority::new(strangers.path())?;
        let path = strangers.path().join("kubeconfig");
        let access = e2e::kubeconfig::Access::write(&path, control_plane.server(), stranger.pem(), "x", "x").await?;
        let error = access.client()?.apiserver_version().await.unwrap_err();
        ensure!(format!("{error:?}").contains("InvalidCertificate"), "{error:?}");
        Ok(())
    });
}

#[test]
fn next_test_finds_nothing_of_the_one_before() {
    scenario(async {
        let lent = ControlPlane::lent(Platform::Azure).await?;
        let pids = lent.pids();
        let before = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "before"}});
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "held", "namespace": "before", "finalizers": ["example.com/held"]}});
        lent.apply_yaml(&format!("{before}\n---\n{held}")).await?;
        drop(lent);

        let lent = ControlPlane::lent(Platform::Azure).await?;
        ensure!(lent.pids() == pids, "another control plane");
        ensure!(!std::fs::read_to_string(lent.audit_log())?.contains("\"held\""));
        let client = lent.client()?;
        ensure!(Api::<Namespace>::all(client.clone()).get_opt("before").await?.is_none());
        let left = Api::<ConfigMap>::all(client.clone())
            .list(&ListParams::default())
            .await?;
        ensure!(left.iter().all(|one| one.metadata.name.as_deref() != Some("held")));

        e2e::crds::serve_hosted_clusters(&client, false).await?;
        drop((client, lent));
        ensure!(
            ControlPlane::lent(Platform::Azure).await?.pids() != pids,
            "its CRDs have changed"
        );
        Ok(())
    });
}

#[test]
fn control_plane_of_a_test_that_panics_ends_and_its_logs_stay() {
    scenario(async {
        let others_mark = ControlPlane::shared().await?.dir().join(KEEP);
        let marked_before = others_mark.exists();
        let control_plane = ControlPlane::start().await?;
        let (pids, dir) = (control_plane.pids(), control_plane.dir().to_owned());
        ensure!(pids.len() == 3 && pids.iter().all(|pid| is_running(*pid)));
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _owned = control_plane;
            panic!("on purpose");
        }));
        ensure!(panicked.is_err());
        ensure!(!pids.iter().any(|pid| is_running(*pid)));
        ensure!(dir.join("kube-apiserver.log").exists());
        std::fs::remove_dir_all(dir)?;
        // A panic keeps all logs of the process; this panic was no failure.
        if !marked_before {
            std::fs::remove_file(others_mark)?;
        }
        Ok(())
    });
}

#[test]
fn control_plane_of_a_killed_process_ends_and_its_files_go() {
    scenario(async {
        let mut parent = Command::new(env!("CARGO_BIN_EXE_testenv"))
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(parent.stdout.take().context("no output")?).read_line(&mut line)?;
        let dir = std::path::Path::new(line.trim())
            .parent()
            .context("no path")?
            .to_owned();
        let children = children_of(parent.id())?;
        let killed = parent.kill().and_then(|()| parent.wait());
        // Three programs and the janitor of their directory.
        ensure!(children.len() == 4, "{children:?}");
        killed?;
        eventually("the children are gone", SOON, || async {
            ensure!(!children.iter().any(|pid| is_running(*pid)), "they run");
            Ok(())
        })
        .await?;
        eventually("the files are gone", SOON, || async {
            ensure!(!dir.exists(), "{} exists", dir.display());
            Ok(())
        })
        .await
    });
}

fn children_of(parent: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name in brackets: the state, then the parent.
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
        if fields.split(' ').nth(1) == Some(&parent.to_string()) {
            children.push(pid);
        }
    }
    Ok(children)
}
