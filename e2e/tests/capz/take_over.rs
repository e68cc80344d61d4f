//! What the operator that Hyperlink replaces leaves behind.

use anyhow::{Context, ensure};
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_controllers::{
    API_SERVER_IP, CONDITION, Capz, DnsOperator, FINALIZER, LEASE, MANAGEMENT_INGRESS_IP, ReferenceOperator, Settings,
};
use e2e::capz_env::{WORKLOAD, situation};
use e2e::eventually;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt};

use crate::{SOON, becomes_true};

#[test]
fn reference_connects_a_private_cluster_both_ways() {
    situation(|env| async move {
        let namespace = "reference";
        let management = CapzCluster::management(namespace, "reference-mc", LoadBalancer::Internal);
        let workload = CapzCluster::workload(namespace, "reference-wc", LoadBalancer::Internal);
        management.create(env).await?;
        management.create_gateway(env, &[WORKLOAD]).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &[namespace], Settings::FORK).await?;
        let dns = DnsOperator::start(env, &management, &[namespace]).await?;
        becomes_true(env, &workload, "PrivateLinksReady").await?;

        let reference = ReferenceOperator::new(env, &management).await?;
        reference.renew_lease(env, namespace, "reference-1").await?;
        reference.serve(env, &workload).await?;
        let object = workload.get(env).await?;
        ensure!(object.finalizers().iter().any(|one| one == FINALIZER));
        for annotation in [API_SERVER_IP, MANAGEMENT_INGRESS_IP] {
            object
                .annotations()
                .get(annotation)
                .with_context(|| format!("no {annotation}"))?;
        }
        workload.has_true(env, CONDITION).await?;
        for (vnet, host) in [
            (management.vnet(), workload.api_host()),
            (workload.vnet(), management.gateway_host()),
        ] {
            eventually(&format!("{host} is reachable"), SOON, || async {
                let reachable = env.oracle().reachable(&vnet, &host).await?;
                ensure!(reachable.ok, "{reachable:?}");
                Ok(())
            })
            .await?;
        }
        let leases: Api<Lease> = Api::namespaced(env.client()?, namespace);
        let holder = leases.get(LEASE).await?.spec.and_then(|spec| spec.holder_identity);
        ensure!(holder.as_deref() == Some("reference-1"), "{holder:?}");
        reference.delete_lease(env, namespace).await?;
        dns.stop().await?;
        capz.stop().await
    });
}
