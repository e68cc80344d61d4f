//! A zone that others have come to use stays when the cluster is deleted, without the cluster's own records and links.

use anyhow::ensure;
use serde_json::json;

use e2e::shared_env::{SOON, situation};

#[test]
fn zone_with_records_of_others_stays_for_them() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("recorded").await?;
        let zone = cluster.zones().remove(1);
        let theirs = format!("{zone}/A/www");
        let record = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
        shared_env.test_env.oracle().drift_put(&theirs, &record).await?;
        let before = shared_env.observed(&theirs).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(
            shared_env.observed(&theirs).await? == before,
            "their record was changed"
        );
        let all = shared_env.observed(&zone).await?;
        ensure!(
            !all.contains("api-recorded") && !all.contains("virtualNetworkLinks/"),
            "ours is left: {all}"
        );
        shared_env.nothing_is_left_of(&cluster, &[&zone]).await
    });
}

#[test]
fn zone_with_links_of_others_stays_for_them() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("linked").await?;
        let zone = cluster.zones().remove(0);
        let location = &shared_env.test_env.azure().location;
        let vnet = format!("{}-other", cluster.vnet());
        let network = json!({"location": location,
            "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}, "subnets": []}});
        shared_env.test_env.oracle().drift_put(&vnet, &network).await?;
        let theirs = format!("{zone}/virtualNetworkLinks/theirs");
        let link = json!({"location": "global", "properties": {
            "virtualNetwork": {"id": vnet}, "registrationEnabled": false}});
        shared_env.test_env.oracle().drift_put(&theirs, &link).await?;
        let before = shared_env.observed(&theirs).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(shared_env.observed(&theirs).await? == before, "their link was changed");
        let all = shared_env.observed(&zone).await?;
        ensure!(
            !all.contains("private-router-vnet-link") && !all.contains("/A/"),
            "ours is left: {all}"
        );
        shared_env.nothing_is_left_of(&cluster, &[&zone, &vnet]).await
    });
}
