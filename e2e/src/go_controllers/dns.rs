//! The control-plane-operator's private DNS. Every reconcile writes everything again, with only its own tags, and reads
//! nothing.

use anyhow::Result;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;

use super::Next;
use super::cpo::{Operator, ROUTER, ReconcileContext};
use super::object::{Change, is_deleting, text};

const DNS: &str = "AzurePrivateDNSAvailable";

/// One zone of a custom resource.
struct Zone {
    id: String,
    link: String,
    records: Vec<String>,
}

impl Zone {
    fn internal(cr: &DynamicObject, domain: &str) -> Self {
        Self {
            id: format!("{}/privateDnsZones/{domain}", Operator::group(cr)),
            link: format!("{}-vnet-link", cr.name_any()),
            records: vec!["api".to_owned(), "*.apps".to_owned()],
        }
    }

    fn base_domain(cr: &DynamicObject, cluster: &str, has_sibling: bool) -> Option<Self> {
        let domain = text(cr, "/spec/baseDomain");
        let records = match (cr.name_any() == ROUTER, has_sibling) {
            (true, false) => vec![format!("api-{cluster}"), format!("oauth-{cluster}")],
            (true, true) => vec![format!("api-{cluster}")],
            (false, _) => vec![format!("oauth-{cluster}")],
        };
        (!domain.is_empty()).then(|| Self {
            id: Operator::base_domain_zone(cr),
            link: format!("{}-basedomain-vnet-link", cr.name_any()),
            records,
        })
    }

    fn link_id(&self) -> String {
        format!("{}/virtualNetworkLinks/{}", self.id, self.link)
    }

    fn record_ids(&self) -> impl Iterator<Item = String> {
        self.records.iter().map(|name| format!("{}/A/{name}", self.id))
    }
}

impl Operator {
    pub(super) fn base_domain_zone(cr: &DynamicObject) -> String {
        format!("{}/privateDnsZones/{}", Self::group(cr), text(cr, "/spec/baseDomain"))
    }

    /// Writes both zones; returns the requeue if one of them fails.
    pub(super) async fn zones(&self, cx: &mut ReconcileContext) -> Result<Option<Next>> {
        let domain = format!("{}.hypershift.local", cx.cluster);
        if cx.cr.name_any() == ROUTER {
            let zone = Zone::internal(&cx.cr, &domain);
            let message = "Private DNS zone and A records are available";
            let fields = [("privateDNSZoneID", zone.id.clone()), ("dnsZoneName", domain)];
            if let Some(next) = self.zone(cx, &zone, "", message, &fields).await? {
                return Ok(Some(next));
            }
        } else {
            let change = Change::of(&cx.cr).field("dnsZoneName", domain);
            cx.send(change).await?;
        }
        let sibling = self.has_sibling(&cx.cr).await?;
        let Some(zone) = Zone::base_domain(&cx.cr, &cx.cluster, sibling) else {
            return Ok(None);
        };
        let message = "Base domain private DNS zone and A records are available";
        let fields = [("baseDomainDNSZoneID", zone.id.clone())];
        self.zone(cx, &zone, "BaseDomain", message, &fields).await
    }

    async fn zone(
        &self,
        cx: &mut ReconcileContext,
        zone: &Zone,
        prefix: &str,
        message: &str,
        fields: &[(&str, String)],
    ) -> Result<Option<Next>> {
        if let Err((reason, error)) = self.write(cx, zone).await {
            return cx.failed(DNS, &format!("{prefix}{reason}"), &error).await.map(Some);
        }
        let change = Change::of(&cx.cr).condition(DNS, true, "AzureSuccess", message);
        let change = fields
            .iter()
            .fold(change, |change, (name, id)| change.field(name, id.as_str()));
        cx.send(change).await?;
        Ok(None)
    }

    async fn write(&self, cx: &ReconcileContext, zone: &Zone) -> Result<(), (&'static str, anyhow::Error)> {
        let arm = &self.clients.arm;
        let tags = |kind: &str| json!({"hypershift.openshift.io_resource-type": kind});
        let body = json!({"location": "global", "tags": tags("private-dns-zone")});
        let made = arm.put(&zone.id, &body).await;
        made.map_err(|error| ("DNSZoneCreationFailed", error))?;
        let network = text(&cx.cr, "/spec/guestVNetID");
        let body = json!({"location": "global", "tags": tags("vnet-link"), "properties": {
            "virtualNetwork": {"id": network}, "registrationEnabled": false}});
        match arm.put(&zone.link_id(), &body).await {
            Err(error) if format!("{error:#}").contains("already linked to the virtual network") => {}
            made => drop(made.map_err(|error| ("VNetLinkCreationFailed", error))?),
        }
        let address = text(&cx.cr, "/status/privateEndpointIP");
        let body = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": address}]}});
        for id in zone.record_ids() {
            let made = arm.put(&id, &body).await;
            made.map_err(|error| ("ARecordCreationFailed", error))?;
        }
        Ok(())
    }

    /// Whether another custom resource with the same base domain exists that is not being deleted.
    async fn has_sibling(&self, cr: &DynamicObject) -> Result<bool> {
        let domain = text(cr, "/spec/baseDomain");
        let all = self.clients.link_services().list(&ListParams::default()).await?;
        Ok(all.iter().any(|other| {
            other.name_any() != cr.name_any() && !is_deleting(other) && text(other, "/spec/baseDomain") == domain
        }))
    }

    /// Deletes both zones. It deletes the internal zone and the records of the base domain only if the status names the
    /// zone.
    pub(super) async fn delete_zones(&self, cr: &DynamicObject) -> Result<()> {
        let domain = text(cr, "/status/dnsZoneName");
        if !domain.is_empty() {
            self.delete_zone(&Zone::internal(cr, domain), true).await?;
        }
        let sibling = self.has_sibling(cr).await?;
        let cluster = domain.strip_suffix(".hypershift.local").unwrap_or_default();
        if let Some(mut zone) = Zone::base_domain(cr, cluster, sibling) {
            if cluster.is_empty() {
                zone.records.clear();
            }
            self.delete_zone(&zone, !sibling).await?;
        }
        Ok(())
    }

    async fn delete_zone(&self, zone: &Zone, whole: bool) -> Result<()> {
        let arm = &self.clients.arm;
        for id in zone.record_ids() {
            arm.delete(&id).await?;
        }
        arm.delete(&zone.link_id()).await?;
        if whole {
            arm.delete(&zone.id).await?;
        }
        Ok(())
    }
}
