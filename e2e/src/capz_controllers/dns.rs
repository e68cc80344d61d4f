//! The DNS operator: it makes private zones, their links to VNets and A records from the annotations of workload
//! clusters, so that the API server of a workload cluster has a name in the VNet of the management cluster, and the
//! gateway of the management cluster names in the VNets of its workload clusters.

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use serde_json::{Value, json};

use super::azure_cluster::AzureCluster;
use super::reference::{API_SERVER_IP, MANAGEMENT_INGRESS_IP};
use super::{Reconcile, controller};
use crate::CapzEnv;
use crate::capz_cluster::{AZURE_CLUSTER, BASE_DOMAIN, CapzCluster, api, resource};
use crate::capz_env::DNS_CLIENT;
use crate::go_controllers::GoOperator;
use crate::go_controllers::arm::Arm;

/// A running DNS operator. Dropping this value stops it at once.
#[derive(Debug)]
pub struct DnsOperator(GoOperator);

impl DnsOperator {
    /// Starts it for the workload clusters of these namespaces that a management cluster has.
    ///
    /// # Errors
    ///
    /// Azure issues no token.
    pub async fn start(env: &CapzEnv, management: &CapzCluster, namespaces: &[&str]) -> Result<Self> {
        let zones = Arc::new(Zones {
            arm: env.arm(DNS_CLIENT).await?,
            management: management.clone(),
        });
        let client = env.client()?;
        let controllers = namespaces.iter().map(|namespace| {
            let azure_clusters = api(&client, namespace, AZURE_CLUSTER);
            controller(azure_clusters, resource(AZURE_CLUSTER), Arc::clone(&zones))
        });
        Ok(Self(GoOperator::of(controllers.collect())))
    }

    /// Stops it, and fails if it has ended before.
    ///
    /// # Errors
    ///
    /// A controller failed or panicked.
    pub async fn stop(self) -> Result<()> {
        self.0.stop().await
    }
}

struct Zones {
    arm: Arm,
    management: CapzCluster,
}

/// A record in a zone that is linked to a VNet.
struct Record {
    zone: String,
    name: &'static str,
    vnet: String,
}

impl Reconcile for Zones {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action> {
        let management = &self.management;
        let is_management = object.namespace().as_deref() == Some(management.namespace());
        if is_management && object.name_any() == management.name() {
            return Ok(Action::await_change());
        }
        let cluster = AzureCluster::of(object)?;
        let api_server = Record {
            zone: management.network_id("privateDnsZones", &format!("{}.{BASE_DOMAIN}", object.name_any())),
            name: "api",
            vnet: management.vnet(),
        };
        let gateway = Record {
            zone: cluster.network_id("privateDnsZones", &management.zone_name()),
            name: "*",
            vnet: cluster.vnet(),
        };
        let is_deleting = object.metadata.deletion_timestamp.is_some();
        for (record, annotation) in [(api_server, API_SERVER_IP), (gateway, MANAGEMENT_INGRESS_IP)] {
            match object.annotations().get(annotation).filter(|_| !is_deleting) {
                Some(address) => self.write(&record, address).await?,
                None => self.delete(&record).await?,
            }
        }
        Ok(Action::await_change())
    }
}

impl Zones {
    async fn write(&self, record: &Record, address: &str) -> Result<()> {
        let id = format!("{}/A/{}", record.zone, record.name);
        let found = self.arm.get(&id).await?;
        if found.is_some_and(|found| found["properties"]["aRecords"][0]["ipv4Address"] == address) {
            return Ok(());
        }
        let location = json!({"location": "global"});
        self.create(&record.zone, &location).await?;
        let vnet_name = record.vnet.rsplit('/').next().context("a VNet's id")?;
        let link = json!({"location": "global", "properties": {
            "virtualNetwork": {"id": record.vnet}, "registrationEnabled": false}});
        let link_id = format!("{}/virtualNetworkLinks/{vnet_name}", record.zone);
        self.create(&link_id, &link).await?;
        let body = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": address}]}});
        self.arm.put(&id, &body).await.map(drop)
    }

    /// Creates what is not there, or has failed. What takes longer than a call waits goes on in Azure.
    async fn create(&self, id: &str, body: &Value) -> Result<()> {
        let found = self.arm.get(id).await?;
        match found.is_some_and(|found| found["properties"]["provisioningState"] != "Failed") {
            true => Ok(()),
            false => self.arm.put(id, body).await.map(drop),
        }
    }

    /// Deletes the record. The zone stays, without which a delete of the record is not found.
    async fn delete(&self, record: &Record) -> Result<()> {
        self.arm.delete(&format!("{}/A/{}", record.zone, record.name)).await
    }
}
