//! A whole life of a cluster on AWS, and what each role asked for in it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{
    ACTIONS_NOT_SENT, AwsCall, CPO, CPO_ROLE, GUEST_ADMINISTRATOR, HO, HO_ROLE, OPTIONAL_ACTION, allowed_actions,
    shipped_policy,
};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::NAMESPACE;
use e2e::hyperlink::aws::lease;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::rights::{audit, granted_by, used_rights};
use e2e::{AwsEnv, eventually, scenario};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::SOON;
use crate::whole_life::{differences, take_over};

/// The Services that publish the host names of API and OAuth.
const EXTERNAL: [&str; 2] = ["kube-apiserver-private-external", "oauth-private-external"];

#[test]
fn rights_used_in_a_life_on_aws_are_the_rights_granted() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let cluster = whole_life(&env).await?;
        let audited = audit(env.control_plane())?;
        let journal = env.oracle().journal(0).await?;
        let mut wrong = Vec::new();
        for role in [Role::Ho, Role::Cpo] {
            let name = format!("{}-aws", role.as_str());
            let mut granted = granted_by(&name, &[])?;
            if role == Role::Cpo {
                // Never a request of its own, as on Azure.
                ensure!(granted.remove("hypershift.openshift.io/hostedcontrolplanes/finalizers update"));
            }
            let used = used_rights(&audited, &name)?;
            let used = used
                .into_iter()
                .map(|right| right.replace(&lease_of(role, &cluster), &format!("hyperlink-{name}")));
            wrong.extend(differences("Kubernetes", role, &used.collect(), &granted));
            let mut granted = allowed_actions(&shipped_policy(role.as_str())?)?;
            granted.retain(|action| !ACTIONS_NOT_SENT.contains(&action.as_str()));
            wrong.extend(differences("AWS", role, &used_actions(&journal, role)?, &granted));
        }
        ensure!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    });
}

/// What vouches for a control plane is read before AWS is called, so no role has to exist there.
#[test]
fn right_of_a_guest_side_for_many_on_aws_is_used() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.create_leases().await?;
        let cluster = AwsHostedCluster::new("one-of-many");
        let aws = json!({"roleARN": "arn:aws:iam::444455556666:role/none", "vpcIDs": [cluster.vpc()],
            "hostedZoneIDs": [cluster.zone()]});
        let entry = json!({"namespace": NAMESPACE, "names": [cluster.name()], "aws": aws});
        let file = env.dir().join("allow-scopes.json");
        std::fs::write(&file, json!({"hostedClusters": [entry]}).to_string())?;
        let flags = [("allow-scopes", &*file.to_string_lossy())];
        let cpo = Hyperlink::start_on_aws(&env, Role::Cpo, "cpo", &flags).await?;
        cluster.create_guest_network(&env).await?;
        cluster.create_namespaces(&env).await?;
        let owner = cluster.create_control_plane(&env).await?;
        cluster.create_services(&env, Some(&owner)).await?;
        let nobody = ("False", "HostedClusterNotFound");
        cluster
            .has_condition(&env, "AWSEndpointAvailable", nobody, SOON)
            .await?;
        cpo.stop().await?;
        let used = used_rights(&audit(env.control_plane())?, "cpo-aws")?;
        let of_many = "role-cpo-many-aws.yaml";
        let granted = granted_by("cpo-aws", &[of_many])?;
        let more = &granted - &granted_by("cpo-aws", &[])?;
        ensure!(
            used.is_subset(&granted) && more.is_subset(&used),
            "{more:?} of {used:?}"
        );
        Ok(())
    });
}

/// The actions that a role needed, tags of what it created included. Fails if a call was denied.
fn used_actions(journal: &[AwsCall], role: Role) -> Result<BTreeSet<String>> {
    let of_role = |call: &&AwsCall| match role {
        Role::Ho => call.is_of(&HO, HO_ROLE),
        Role::Cpo => call.is_of(&CPO, CPO_ROLE),
    };
    let mut used = BTreeSet::new();
    for call in journal.iter().filter(of_role) {
        let (service, action) = call.path.trim_start_matches('/').split_once('/').context("no action")?;
        if service == "sts" {
            continue;
        }
        let action = format!("{service}:{action}");
        ensure!(!call.is_denied() || action == OPTIONAL_ACTION, "{call:?}");
        if call.query.contains("TagSpecification") {
            used.insert("ec2:CreateTags".to_owned());
        }
        used.insert(action);
    }
    used.remove(OPTIONAL_ACTION);
    Ok(used)
}

/// The name of a role's lease: CPO serves one control plane.
fn lease_of(role: Role, cluster: &AwsHostedCluster) -> String {
    let namespace = cluster.control_plane_namespace();
    lease(role, (role == Role::Cpo).then_some(namespace.as_str()))
}

/// Starts a process of a role.
async fn start(env: &AwsEnv, role: Role, name: &str, cluster: &AwsHostedCluster) -> Result<Hyperlink> {
    let namespace = cluster.control_plane_namespace();
    let mut flags = vec![("resync", "1s"), ("record-resync", "1s")];
    if role == Role::Cpo {
        flags.push(("namespace", &namespace));
    }
    Hyperlink::start_on_aws(env, role, name, &flags).await
}

/// Creates a cluster with all that it can have, hands over, repairs and follows what was changed, and deletes it.
async fn whole_life(env: &AwsEnv) -> Result<AwsHostedCluster> {
    let cluster = AwsHostedCluster::new("whole").with_stale_api_server();
    let [first, second, _] = cluster.subnets();
    let platform = json!({"additionalAllowedPrincipals": [GUEST_ADMINISTRATOR.arn()]});
    let cluster = cluster.with_node_pools(&[&first]).with_platform(platform);
    let ho = start(env, Role::Ho, "ho", &cluster).await?;
    let cpo = start(env, Role::Cpo, "cpo", &cluster).await?;
    ho.leading(SOON).await?;
    cpo.leading(SOON).await?;
    cluster.create_guest_network(env).await?;
    cluster.create_objects(env).await?;
    cluster.becomes_available(env, SOON).await?;
    let second_ho = start(env, Role::Ho, "second-ho", &cluster).await?;
    take_over(env.client()?, ho, &lease_of(Role::Ho, &cluster)).await?;
    let second_cpo = start(env, Role::Cpo, "second-cpo", &cluster).await?;
    take_over(env.client()?, cpo, &lease_of(Role::Cpo, &cluster)).await?;

    is_in_karpenters_subnet(env, &cluster, &second).await?;
    has_a_stale_rule(env).await?;
    follow_host_names(env, &cluster).await?;
    obsolete_custom_resource_is_deleted(env, &cluster).await?;
    connect_somebody_else(env, &cluster).await?;
    cluster.delete(env, SOON).await?;
    second_ho.stop().await?;
    second_cpo.stop().await?;
    Ok(cluster)
}

/// Has Karpenter's operator name a subnet, and waits until the endpoint is in it.
async fn is_in_karpenters_subnet(env: &AwsEnv, cluster: &AwsHostedCluster, subnet: &str) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(env.client()?, &cluster.control_plane_namespace());
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "karpenter-subnets", "labels": {"hypershift.openshift.io/managed-by": "karpenter"}},
        "data": {"subnetIDs": json!([subnet]).to_string()}});
    let params = PatchParams::apply("karpenter").force();
    api.patch("karpenter-subnets", &params, &Patch::Apply(map)).await?;
    eventually("the endpoint is in Karpenter's subnet", SOON, || async {
        let found = env.oracle().resources_of("vpc-endpoint").await?;
        let found = json!(found).to_string();
        ensure!(found.contains(subnet), "{found}");
        Ok(())
    })
    .await
}

/// Opens the security group for another network as Hyperlink would, and waits until that is closed again.
async fn has_a_stale_rule(env: &AwsEnv) -> Result<()> {
    const STALE: &str = "10.9.0.0/16";
    let group = async || -> Result<Value> {
        let found = env.oracle().resources_of("security-group").await?;
        let mut own = found.into_iter().filter(|one| {
            one["name"]
                .as_str()
                .is_some_and(|name| name.ends_with("-vpce-private-router"))
        });
        own.next().context("no security group")
    };
    let arn = group().await?["id"].take();
    let id = arn
        .as_str()
        .and_then(|arn| arn.rsplit('/').next())
        .context("no id")?
        .to_owned();
    let parameters = [
        ("GroupId", id.as_str()),
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "443"),
        ("IpPermissions.1.ToPort", "443"),
        ("IpPermissions.1.IpRanges.1.CidrIp", STALE),
        ("IpPermissions.1.IpRanges.1.Description", "Control plane service"),
    ];
    let person = env.caller(GUEST_ADMINISTRATOR)?;
    person.ec2("AuthorizeSecurityGroupIngress", &parameters).await?.ok()?;
    eventually("the rule is gone", SOON, || async {
        let found = group().await?.to_string();
        ensure!(!found.contains(STALE), "{found}");
        Ok(())
    })
    .await
}

/// Somebody else changes where the host names lead, and Hyperlink repairs it. Then the control plane withdraws them.
async fn follow_host_names(env: &AwsEnv, cluster: &AwsHostedCluster) -> Result<()> {
    let client = env.client()?;
    let services: Api<Service> = Api::namespaced(client.clone(), &cluster.control_plane_namespace());
    for name in EXTERNAL {
        let leads_to = async || -> Result<Option<String>> {
            let service = services.get_opt(name).await?;
            Ok(service.and_then(|service| service.spec?.external_name))
        };
        let right = leads_to().await?.context("it leads nowhere")?;
        let wrong = Patch::Merge(json!({"spec": {"externalName": "192.0.2.1"}}));
        services.patch(name, &PatchParams::default(), &wrong).await?;
        eventually(&format!("{name} leads to {right} again"), SOON, || async {
            let now = leads_to().await?;
            ensure!(now.as_ref() == Some(&right), "{now:?}");
            Ok(())
        })
        .await?;
    }
    let api = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    let mut published = api.get(cluster.name()).await?.data["spec"]["services"].take();
    for service in published.as_array_mut().context("no services")? {
        service["servicePublishingStrategy"]["route"] = json!({});
    }
    let none = json!({"spec": {"services": published}});
    api.patch(cluster.name(), &PatchParams::default(), &Patch::Merge(none))
        .await?;
    eventually("no host name is published", SOON, || async {
        for name in EXTERNAL {
            ensure!(services.get_opt(name).await?.is_none(), "{name} is left");
        }
        Ok(())
    })
    .await
}

/// Creates the custom resource that an earlier version of HyperShift had, and waits until it is gone.
async fn obsolete_custom_resource_is_deleted(env: &AwsEnv, cluster: &AwsHostedCluster) -> Result<()> {
    let namespace = cluster.control_plane_namespace();
    let name = format!("router-{namespace}");
    let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"networkLoadBalancerName": "of-before"}});
    env.apply_yaml(&object.to_string()).await?;
    let api = cluster.custom_resources(&env.client()?);
    eventually(&format!("{name} is gone"), SOON, || async {
        let left = api.get_opt(&name).await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await
}

/// Connects another VPC's endpoint to the service, which stays when the cluster is deleted.
async fn connect_somebody_else(env: &AwsEnv, cluster: &AwsHostedCluster) -> Result<()> {
    let other = AwsHostedCluster::new("other");
    other.create_guest_network(env).await?;
    let found = cluster
        .get_custom_resource(&env.client()?)
        .await?
        .context("no custom resource")?;
    let name = found.data["status"]["endpointServiceName"]
        .as_str()
        .context("no name")?
        .to_owned();
    let (vpc, [subnet, ..]) = (other.vpc(), other.subnets());
    let parameters = [
        ("VpcEndpointType", "Interface"),
        ("VpcId", &vpc),
        ("ServiceName", &name),
        ("SubnetId.1", &subnet),
    ];
    let person = env.caller(GUEST_ADMINISTRATOR)?;
    person.ec2("CreateVpcEndpoint", &parameters).await?.ok().map(drop)
}
