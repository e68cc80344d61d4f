//! One private cluster's life on the real executable: it comes up, is kept, heals and goes.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{Ground, roles, scenario};
use rstest::rstest;

const SOON: Duration = Duration::from_secs(60);

#[rstest]
#[case::plain("plain", false, false)]
#[case::with_base_domain("based", true, false)]
#[case::with_a_given_nat_subnet("given", false, true)]
#[case::with_both("both", true, true)]
fn private_cluster_lives_and_goes(#[case] name: &str, #[case] base_domain: bool, #[case] nat_subnet: bool) {
    scenario(async {
        let ground = Ground::local(Preset::Fast).await?;
        let before = ground.resource_ids().await?;
        let mut cluster = HostedCluster::new(&ground, name);
        if base_domain {
            cluster = cluster.with_base_domain("apps.example.com");
        }
        if nat_subnet {
            let id = ground.create_nat_subnet("given").await?;
            cluster = cluster.with_nat_subnet(&id);
        }
        let ho = Hyperlink::start(&ground, Role::Ho, "ho", &[("resync", "2s")]).await?;
        let cpo = Hyperlink::start(&ground, Role::Cpo, "cpo", &[("resync", "2s"), ("record-resync", "2s")]).await?;

        cluster.create(&ground).await?;
        cluster.becomes_available(&ground, SOON).await?;
        cluster.becomes_reachable(&ground, SOON).await?;

        let own = cluster.own_nat_subnet(&ground);
        ensure!(
            ground.resource_ids().await?.contains(&own.to_lowercase()) != nat_subnet,
            "{own}"
        );

        ground.oracle().drift_delete(&cluster.endpoint()).await?;
        cluster.becomes_reachable(&ground, SOON).await?;

        cluster.delete(&ground, SOON).await?;
        ho.stop().await?;
        cpo.stop().await?;
        // HyperShift's and the administrator's own things stay; the load balancer's frontend goes.
        let left = ground.resource_ids().await?;
        let network = [cluster.resource_group(), cluster.vnet(), cluster.subnet()].map(|id| id.to_lowercase());
        let given = nat_subnet.then(|| format!("{}/subnets/given", ground.azure().management_vnet).to_lowercase());
        let expected: BTreeSet<_> = before.into_iter().chain(network).chain(given).collect();
        let extra: Vec<_> = left.difference(&expected).collect();
        ensure!(extra.is_empty(), "left behind: {extra:?}");
        rights_used_are_rights_granted(&ground)
    });
}

/// Least privilege, measured: nothing was refused, and nothing is granted that was not needed.
fn rights_used_are_rights_granted(ground: &Ground) -> Result<()> {
    for role in ["ho", "cpo"] {
        let (used, refused) = roles::used_and_refused(ground.control_plane(), role)?;
        ensure!(refused.is_empty(), "{role} was refused {refused:?}");
        let granted = roles::granted(role)?;
        // Asked by an admission plugin, when an owner reference blocks the owner's deletion, and
        // never by a request of its own.
        let unseen = (
            "hypershift.openshift.io".into(),
            "hostedcontrolplanes/finalizers".into(),
            "update".into(),
        );
        let needless: Vec<_> = granted.difference(&used).filter(|right| **right != unseen).collect();
        ensure!(needless.is_empty(), "{role} never used {needless:?}");
    }
    Ok(())
}
