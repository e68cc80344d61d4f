//! The environment without Hyperlink: CAPZ makes Private Link Services and private endpoints, the DNS operator names,
//! and what a person writes in place of Hyperlink makes a path.

use anyhow::ensure;
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer, PrivateLink};
use e2e::capz_controllers::{
    API_SERVER_IP, Capz, DnsOperator, MANAGEMENT_INGRESS_IP, Settings, gateway_entry, link_entry,
};
use e2e::capz_env::{MANAGEMENT, WORKLOAD, situation};
use e2e::scenario::{scenario, skipped};
use e2e::{CapzEnv, crds, eventually};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;

use crate::{SOON, becomes_true, endpoint_becomes, is_gone};

#[test]
fn links_become_private_link_services() {
    situation(|env| async move {
        let cluster = CapzCluster::workload("services", "services", LoadBalancer::Internal).with_links(2);
        cluster.create(env).await?;
        let capz = Capz::start(env, &["services"], Settings::FORK).await?;
        becomes_true(env, &cluster, "PrivateLinksReady").await?;
        for link in cluster.links() {
            let found = env.oracle().resources(&cluster.link_service(link.name())).await?;
            let services: Vec<_> = found.iter().filter(|one| one["name"] == link.name()).collect();
            ensure!(services.len() == 1, "{found:?}");
            ensure!(services[0]["properties"]["visibility"]["subscriptions"] == json!([MANAGEMENT]));
        }
        capz.stop().await
    });
}

#[test]
fn link_that_azure_refuses_is_not_ready() {
    situation(|env| async move {
        let link = PrivateLink::new("unseen").allowing(&[]).approving(&[MANAGEMENT]);
        let cluster = CapzCluster::workload("refused", "refused", LoadBalancer::Internal).with_private_links(&[link]);
        cluster.create(env).await?;
        let capz = Capz::start(env, &["refused"], Settings::FORK).await?;
        eventually("the condition is False", SOON, || async {
            let found = cluster.conditions(env, "PrivateLinksReady").await?;
            ensure!(found.iter().any(|one| one["status"] == "False"), "{found:?}");
            Ok(())
        })
        .await?;
        capz.stop().await
    });
}

#[test]
fn entry_by_hand_makes_the_api_server_reachable() {
    situation(|env| async move {
        let namespaces = ["by-hand-mc", "by-hand-wc"];
        let management = CapzCluster::management(namespaces[0], "by-hand-mc", LoadBalancer::Public);
        let workload = CapzCluster::workload(namespaces[1], "by-hand-wc", LoadBalancer::Internal);
        management.create(env).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &namespaces, Settings::FORK).await?;
        let dns = DnsOperator::start(env, &management, &namespaces).await?;
        becomes_true(env, &workload, "PrivateLinksReady").await?;

        let entry = link_entry(&management, &workload, workload.links()[0].name());
        management.add_entry(env, &entry).await?;
        let name = entry["name"].as_str().unwrap();
        let address = endpoint_becomes(env, &management, name, "Approved").await?;
        becomes_true(env, &management, "PrivateEndpointsReady").await?;

        let host = workload.api_host();
        let before = env.oracle().reachable(&management.vnet(), &host).await?;
        ensure!(!before.ok, "{before:?}");
        workload.annotate(env, API_SERVER_IP, Some(&address)).await?;
        eventually("the API server is reachable", SOON, || async {
            let reachable = env.oracle().reachable(&management.vnet(), &host).await?;
            ensure!(reachable.ok, "{reachable:?}");
            let last = reachable.path.last().map(|hop| hop.id.clone());
            ensure!(last == Some(workload.api_service()), "{last:?}");
            Ok(())
        })
        .await?;
        workload.annotate(env, API_SERVER_IP, None).await?;
        eventually("the name is gone", SOON, || async {
            let reachable = env.oracle().reachable(&management.vnet(), &host).await?;
            ensure!(!reachable.ok, "{reachable:?}");
            Ok(())
        })
        .await?;
        dns.stop().await?;
        capz.stop().await
    });
}

#[test]
fn cluster_has_an_identity_of_each_type() {
    situation(|env| async move {
        let types = [
            (IdentityType::WorkloadIdentity, "federated"),
            (IdentityType::UserAssignedMsi, "managed"),
            (IdentityType::ServicePrincipal, "secret"),
            (IdentityType::ServicePrincipalCertificate, "certificate"),
        ];
        let secrets: Api<Secret> = Api::namespaced(env.client()?, "identities");
        for (identity, name) in types {
            let cluster = CapzCluster::management("identities", name, LoadBalancer::Public);
            let cluster = cluster.with_identity_type(identity);
            cluster.create_objects(env).await?;
            let found = cluster.identities(&env.client()?).get(name).await?;
            ensure!(found.data["spec"]["clientID"] == identity.client_id());
            let secret = secrets.get_opt(&cluster.secret_name()).await?;
            let named = found.data["spec"]["clientSecret"]["name"].is_string();
            ensure!(secret.is_some() == named, "{found:?}");
        }
        let reader = env.arm(IdentityType::ServicePrincipal.client_id()).await?;
        let cluster = CapzCluster::management("identities", "secret", LoadBalancer::Public);
        cluster.create_resources(env).await?;
        ensure!(reader.get(&cluster.endpoint("none")).await?.is_none());
        ensure!(reader.get(&cluster.vnet()).await.is_err(), "it may read networks");
        Ok(())
    });
}

#[test]
fn upstream_definition_hides_links() {
    scenario(async {
        let env = &CapzEnv::local(Preset::Fast).await?;
        let cluster = CapzCluster::workload("hidden", "hidden", LoadBalancer::Internal);
        cluster.create_objects(env).await?;
        let links = |object: &DynamicObject| {
            let balancer = &object.data["spec"]["networkSpec"]["apiServerLB"];
            balancer["privateLinks"].as_array().map_or(0, Vec::len)
        };
        ensure!(links(&cluster.get(env).await?) == 1);
        if !crds::capi::serve_links(&env.client()?, false).await? {
            skipped("no CRDs of CAPZ at hand");
            return Ok(());
        }
        eventually("the link is hidden", SOON, || async {
            let object = cluster.get(env).await?;
            ensure!(links(&object) == 0, "{:?}", object.data);
            Ok(())
        })
        .await
    });
}

#[test]
fn entry_by_hand_makes_the_gateway_reachable() {
    situation(|env| async move {
        let namespace = "gateway";
        let management = CapzCluster::management(namespace, "gateway-mc", LoadBalancer::Internal);
        let workload = CapzCluster::workload(namespace, "gateway-wc", LoadBalancer::Public);
        management.create(env).await?;
        management.create_gateway(env, &[WORKLOAD]).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &[namespace], Settings::FORK).await?;
        let dns = DnsOperator::start(env, &management, &[namespace]).await?;

        let entry = gateway_entry(&management, &workload);
        workload.add_entry(env, &entry).await?;
        let name = entry["name"].as_str().unwrap();
        let address = endpoint_becomes(env, &workload, name, "Approved").await?;
        workload.annotate(env, MANAGEMENT_INGRESS_IP, Some(&address)).await?;
        eventually("the gateway is reachable", SOON, || async {
            let reachable = env
                .oracle()
                .reachable(&workload.vnet(), &management.gateway_host())
                .await?;
            ensure!(reachable.ok, "{reachable:?}");
            Ok(())
        })
        .await?;
        dns.stop().await?;
        capz.stop().await
    });
}

#[test]
fn manual_connection_waits_for_a_decision() {
    situation(|env| async move {
        let namespace = "manual";
        let management = CapzCluster::management(namespace, "manual-mc", LoadBalancer::Public);
        let link = PrivateLink::new("manual-api-privatelink").approving(&[]);
        let workload =
            CapzCluster::workload(namespace, "manual-wc", LoadBalancer::Internal).with_private_links(&[link]);
        management.create(env).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &[namespace], Settings::FORK).await?;
        becomes_true(env, &workload, "PrivateLinksReady").await?;

        let mut entry = link_entry(&management, &workload, "manual-api-privatelink");
        entry["manualApproval"] = true.into();
        entry["privateLinkServiceConnections"][0]["requestMessage"] = "please".into();
        management.add_entry(env, &entry).await?;
        let name = entry["name"].as_str().unwrap();
        endpoint_becomes(env, &management, name, "Pending").await?;
        env.decide(&workload.link_service("manual-api-privatelink"), "Approved")
            .await?;
        endpoint_becomes(env, &management, name, "Approved").await?;
        capz.stop().await
    });
}

#[test]
fn cluster_and_what_capz_made_for_it_are_deleted() {
    situation(|env| async move {
        let cluster = CapzCluster::workload("deleted", "deleted", LoadBalancer::Internal);
        cluster.create(env).await?;
        let capz = Capz::start(env, &["deleted"], Settings::FORK).await?;
        becomes_true(env, &cluster, "PrivateLinksReady").await?;
        cluster.delete(env, SOON).await?;
        is_gone(env, &cluster.link_service(cluster.links()[0].name())).await?;
        capz.stop().await
    });
}
