//! `hyperlink plan` beside the running roles: it only reads, and reports what they would do.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::aws_sim::{ADMINISTRATOR, CPO, GUEST, HO_TWIN};
use e2e::hyperlink::aws::plan;
use e2e::hyperlink::{Planned, Role};
use e2e::scenario;
use serde_json::{Value, json};

use crate::both::Both;

/// A ServiceAccount that may only read what plans are made of. What is denied fails the plan.
async fn reader(both: &Both) -> Result<e2e::kubeconfig::Access> {
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]});
    let hypershift = [
        "awsendpointservices",
        "hostedclusters",
        "hostedcontrolplanes",
        "nodepools",
    ];
    let rules = [
        rule("hypershift.openshift.io", &hypershift),
        rule("", &["services", "configmaps"]),
        rule("config.openshift.io", &["infrastructures"]),
    ];
    both.env.control_plane().account_with("planner", &json!(rules)).await
}

/// Plans with an identity that nobody else has in AWS's journal.
async fn planned(both: &Both, kubeconfig: &Path, role: Role, more: &[&str]) -> Result<Planned> {
    let namespace = both.cluster.control_plane_namespace();
    let object = format!("{namespace}/private-router");
    let files = both.env.credentials();
    let (file, scope) = match role {
        Role::Ho => (&files.ho_twin, &[][..]),
        Role::Cpo => (&files.cpo, &["--namespace", namespace.as_str()][..]),
    };
    let arguments = [&[object.as_str(), "--role", role.as_str()][..], scope, more].concat();
    plan(&both.env, kubeconfig, file, &arguments).await
}

/// Kind and verb of each step that is not to keep something.
async fn pending(both: &Both, kubeconfig: &Path, role: Role) -> Result<Vec<(String, String)>> {
    let planned = planned(both, kubeconfig, role, &["-o", "json"]).await?;
    ensure!(planned.code == Some(2), "{planned:?}");
    let output: Value = serde_json::from_str(&planned.out)?;
    let steps = output["roles"][0]["steps"].as_array().context("no steps")?.iter();
    let pending = steps.filter(|step| step["verb"] != "keep");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(pending.map(|step| (text(&step["kind"]), text(&step["verb"]))).collect())
}

#[test]
fn plan_is_empty_without_drift_and_names_what_has_drifted() {
    scenario(async {
        let both = Both::start("planned", "1h").await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        let access = reader(&both).await?;
        for role in [Role::Ho, Role::Cpo] {
            let undrifted = planned(&both, access.path(), role, &[]).await?;
            ensure!(undrifted.code == Some(0), "{undrifted:?}");
            ensure!(undrifted.out.contains("nothing to do"), "{undrifted:?}");
        }

        let service = both.only("vpc-endpoint-service").await?;
        let service = service["id"].as_str().and_then(|arn| arn.rsplit('/').next());
        let principal = format!("arn:aws:iam::{GUEST}:role/control-plane-operator");
        let removed = [
            ("ServiceId", service.context("no id")?),
            ("RemoveAllowedPrincipals.1", &principal),
        ];
        let person = both.env.caller(ADMINISTRATOR)?;
        person
            .ec2("ModifyVpcEndpointServicePermissions", &removed)
            .await?
            .ok()?;
        let mut zone = both.env.oracle().resources(&both.cluster.zone_arn()).await?.remove(0);
        zone["records"] = json!([]);
        both.env.oracle().drift_put(&both.cluster.zone_arn(), &zone).await?;
        let put = |kind: &str| vec![(kind.to_owned(), "put".to_owned())];
        let steps = pending(&both, access.path(), Role::Ho).await?;
        ensure!(steps == put("allowed_principals"), "{steps:?}");
        let steps = pending(&both, access.path(), Role::Cpo).await?;
        ensure!(steps == put("records"), "{steps:?}");

        let calls = both.env.oracle().journal(0).await?;
        for planner in [HO_TWIN, CPO] {
            let own: Vec<_> = calls.iter().filter(|call| call.principal == planner.arn()).collect();
            ensure!(!own.is_empty(), "the journal knows nothing of {}", planner.name);
            ensure!(own.iter().all(|call| !call.is_write() && !call.is_denied()), "{own:?}");
        }
        both.stop().await
    });
}
