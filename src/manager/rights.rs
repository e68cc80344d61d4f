//! Checks whether a role has all the rights that its files grant. It asks the API server from the start until nothing
//! is missing. Nothing waits for that, but the process is not ready before.
//!
//! The files are those that are shipped, so that exactly the rights are checked that an operator is to bind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Deserialize;

use crate::api::LedRole;
use crate::config::Config;
use crate::http::ReadinessItem;
use crate::roles;

const LEASE: &str = include_str!("../../charts/hyperlink/files/role-lease.yaml");

/// What is in other namespaces than the control planes, or in none: it is read everywhere, also with `--namespace`.
const EVERYWHERE: [&str; 5] = [
    "hostedclusters",
    "hostedclusters/status",
    "nodepools",
    "namespaces",
    "infrastructures",
];

/// The time between two checks of the rights in Kubernetes; an answer may take twice as long.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct RoleFile {
    rules: Vec<PolicyRule>,
}

/// The rights that a role needs, in the namespaces where it works.
///
/// # Errors
///
/// A file is not a valid role.
pub(super) fn rights(config: &Config, led: LedRole) -> anyhow::Result<Vec<ResourceAttributes>> {
    let scope = config.scope.namespace.as_deref();
    let mut all = Vec::new();
    for file in roles::rights(led.role, led.platform, config) {
        for rule in serde_saphyr::from_str::<RoleFile>(file)?.rules {
            let mut resources = rule.resources.iter().flatten();
            let everywhere = resources.any(|one| EVERYWHERE.contains(&one.as_str()));
            let within = scope.filter(|_| !everywhere);
            all.extend(of_rule(&rule, within));
        }
    }
    if let Some((file, namespace)) = roles::local_rights(led.role, config) {
        for rule in serde_saphyr::from_str::<RoleFile>(file)?.rules {
            all.extend(of_rule(&rule, Some(namespace)));
        }
    }
    let leases = super::leases(config, led);
    for lease in leases
        .into_iter()
        .flat_map(|leases| leases.common.into_iter().chain([leases.own]))
    {
        for mut rule in serde_saphyr::from_str::<RoleFile>(LEASE)?.rules {
            if let Some(names) = &mut rule.resource_names {
                *names = vec![lease.name.clone()];
            }
            all.extend(of_rule(&rule, Some(&lease.namespace)));
        }
    }
    Ok(all)
}

/// Each right that a rule grants, on each object that it names, in one namespace or in all.
fn of_rule(rule: &PolicyRule, namespace: Option<&str>) -> Vec<ResourceAttributes> {
    let names: Vec<_> = match &rule.resource_names {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    let mut all = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
                None => (resource.as_str(), None),
            };
            let asked = names
                .iter()
                .flat_map(|name| rule.verbs.iter().map(move |verb| (name, verb)));
            all.extend(asked.map(|(name, verb)| ResourceAttributes {
                group: Some(group.clone()),
                resource: Some(resource.to_owned()),
                subresource: subresource.clone(),
                verb: Some(verb.clone()),
                name: name.clone(),
                namespace: namespace.map(str::to_owned),
                ..ResourceAttributes::default()
            }));
        }
    }
    all
}

/// Asks until all rights are granted, and reports which are missing.
pub(super) async fn wait_for_rights(kube: Client, rights: Vec<ResourceAttributes>, item: ReadinessItem) {
    let mut missing = rights;
    while !missing.is_empty() {
        let answers = try_join_all(missing.iter().map(|right| is_granted(&kube, right)));
        match tokio::time::timeout(RETRY * 2, answers).await {
            Ok(Ok(granted)) => {
                let mut granted = granted.into_iter();
                missing.retain(|_| granted.next() == Some(false));
                if !missing.is_empty() {
                    item.waiting(&format!("missing: {}", listed(&missing)));
                }
            }
            Ok(Err(_)) | Err(_) => item.waiting("the API server does not say"),
        }
        if !missing.is_empty() {
            tokio::time::sleep(RETRY).await;
        }
    }
    item.ready_as("all");
}

async fn is_granted(kube: &Client, right: &ResourceAttributes) -> kube::Result<bool> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(kube.clone());
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(right.clone()),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The missing verbs and names of one resource in one namespace.
#[derive(Default)]
struct Missing<'a> {
    verbs: Vec<&'a str>,
    names: BTreeSet<&'a str>,
}

/// `hostedclusters/status patch; services get (oauth-openshift, private-router) in clusters-example`
fn listed(rights: &[ResourceAttributes]) -> String {
    let mut missing: BTreeMap<(String, &str), Missing<'_>> = BTreeMap::new();
    for right in rights {
        let resource = right.resource.as_deref().unwrap_or_default();
        let resource = match &right.subresource {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        };
        let namespace = right.namespace.as_deref().unwrap_or_default();
        let of_these = missing.entry((resource, namespace)).or_default();
        let verb = right.verb.as_deref().filter(|verb| !of_these.verbs.contains(verb));
        of_these.verbs.extend(verb);
        of_these.names.extend(right.name.as_deref());
    }
    let all = missing
        .into_iter()
        .map(|((resource, namespace), Missing { verbs, names })| {
            let mut text = format!("{resource} {}", verbs.join(", "));
            if !names.is_empty() {
                text += &format!(" ({})", Vec::from_iter(names).join(", "));
            }
            if !namespace.is_empty() {
                text += &format!(" in {namespace}");
            }
            text
        });
    all.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::iter;

    use crate::api::markers::SERVICES;
    use crate::api::{Platform, Role};
    use crate::config::{self, Environment, RunSettings};
    use crate::observer::azure::external_services;

    use super::*;

    fn configured(flags: &[(&str, &str)]) -> Config {
        let flags = flags.iter().map(|(flag, value)| format!("--{flag}={value}"));
        let variables = [
            ("AZURE_CLIENT_ID", "client"),
            ("AZURE_TENANT_ID", "tenant"),
            ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
            ("AZURE_SUBSCRIPTION_ID", "11111111-2222-4333-8444-555555555555"),
            ("AZURE_RESOURCE_GROUP", "group"),
            ("POD_NAMESPACE", "hyperlink"),
        ];
        let environment = Environment::of(&variables);
        let settings: RunSettings = config::parse(iter::once("run".to_owned()).chain(flags), &environment).unwrap();
        settings.resolve(&environment).unwrap()
    }

    fn on_azure(role: Role) -> LedRole {
        LedRole::on(role, Platform::Azure)
    }

    fn namespaces(config: &Config, role: Role, resource: &str) -> Vec<Option<String>> {
        let all = rights(config, on_azure(role)).unwrap();
        let of_it = all
            .into_iter()
            .filter(|right| right.resource.as_deref() == Some(resource));
        let mut namespaces: Vec<_> = of_it.map(|right| right.namespace).collect();
        namespaces.dedup();
        namespaces
    }

    #[test]
    fn rights_are_asked_for_where_the_role_works() {
        let all = configured(&[("role", "ho")]);
        assert_eq!(namespaces(&all, Role::Ho, "services"), [None]);
        assert_eq!(namespaces(&all, Role::Ho, "leases"), [Some("hyperlink".into())]);
        let one = configured(&[("role", "ho"), ("namespace", "clusters-one")]);
        assert_eq!(namespaces(&one, Role::Ho, "services"), [Some("clusters-one".into())]);
        assert_eq!(namespaces(&one, Role::Ho, "hostedclusters"), [None]);
        assert_eq!(namespaces(&one, Role::Ho, "leases"), [Some("hyperlink".into())]);
    }

    #[test]
    fn node_pools_are_read_everywhere() {
        let one = configured(&[("role", "ho"), ("namespace", "clusters-one")]);
        let led = LedRole::on(Role::Ho, Platform::Aws);
        let all = rights(&one, led).unwrap().into_iter();
        let elsewhere = all.filter(|right| right.namespace.is_none());
        let resources: BTreeSet<String> = elsewhere.filter_map(|right| right.resource).collect();
        let expected = ["hostedclusters", "infrastructures", "nodepools"].map(str::to_owned);
        assert_eq!(resources, BTreeSet::from(expected));
    }

    #[test]
    fn right_to_sum_up_conditions_is_needed_with_the_setting_alone() {
        let writes_status = |flags: &[(&str, &str)], platform: Platform| {
            let all = rights(&configured(flags), LedRole::on(Role::Ho, platform)).unwrap();
            all.iter().any(|right| {
                right.resource.as_deref() == Some("hostedclusters") && right.subresource.as_deref() == Some("status")
            })
        };
        for platform in [Platform::Azure, Platform::Aws] {
            assert!(!writes_status(&[("role", "ho")], platform));
            assert!(writes_status(
                &[("role", "ho"), ("aggregate-conditions", "true")],
                platform
            ));
        }
    }

    #[test]
    fn hosted_clusters_are_read_by_a_cpo_of_all_namespaces_alone() {
        let on = |config: &Config, platform: Platform| {
            let all = rights(config, LedRole::on(Role::Cpo, platform)).unwrap().into_iter();
            let of_clusters = all.filter(|right| right.resource.as_deref() == Some("hostedclusters"));
            of_clusters.filter_map(|right| right.verb).collect::<Vec<_>>()
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hostedClusters: []").unwrap();
        let path = file.path().to_str().unwrap();
        let many = configured(&[("role", "cpo"), ("allow-scopes", path)]);
        assert_eq!(namespaces(&many, Role::Cpo, "hostedclusters"), [None]);
        assert_eq!(on(&many, Platform::Azure), ["get", "list", "watch"]);
        assert_eq!(on(&many, Platform::Aws), ["get"], "by the name in the file");
        let one = configured(&[("role", "cpo"), ("namespace", "clusters-one"), ("allow-scopes", path)]);
        for platform in Platform::ALL {
            assert!(on(&one, platform).is_empty());
        }
    }

    #[test]
    fn missing_rights_are_listed_by_resource_and_namespace() {
        let config = configured(&[("role", "cpo"), ("namespace", "clusters-one")]);
        let all = rights(&config, on_azure(Role::Cpo)).unwrap();
        let text = listed(&all);
        assert!(
            text.contains("hostedcontrolplanes/finalizers update in clusters-one; "),
            "{text}"
        );
        assert!(
            text.contains("leases get, watch, patch, create (hyperlink-cpo-clusters-one) in hyperlink"),
            "{text}"
        );
    }

    #[test]
    fn every_name_is_asked_for_and_of_leases_the_own_one_alone() {
        let names = |config: &Config, role: Role, resource: &str, verb: &str| -> Vec<Option<String>> {
            let all = rights(config, on_azure(role)).unwrap().into_iter();
            let of_it =
                all.filter(|right| right.resource.as_deref() == Some(resource) && right.verb.as_deref() == Some(verb));
            of_it.map(|right| right.name).collect()
        };
        let all = configured(&[("role", "ho")]);
        let services = SERVICES.map(|name| Some(name.to_owned()));
        assert_eq!(names(&all, Role::Ho, "services", "get"), services);
        assert_eq!(
            names(&all, Role::Ho, "leases", "patch"),
            [Some("hyperlink-ho".to_owned())]
        );
        assert_eq!(names(&all, Role::Ho, "leases", "create"), [None]);
        let one = configured(&[("role", "cpo"), ("namespace", "clusters-one")]);
        let written = external_services::ALL.map(|external| Some(external.name.to_owned()));
        assert_eq!(names(&one, Role::Cpo, "services", "patch"), written);
        assert_eq!(names(&one, Role::Cpo, "services", "delete"), written);
    }
}
