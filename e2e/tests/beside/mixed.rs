//! One side is Hyperlink's, the other HyperShift's, for a whole life.

use crate::site::{ends, situation};

#[test]
fn our_management_side_with_their_guest_side() {
    situation(async |site| {
        let cluster = site.cluster("our-ho");
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        // Theirs puts back, with the lists that it has read, what ours has said before.
        site.all_hold(&cluster).await?;
        site.goes(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}

#[test]
fn their_management_side_with_our_guest_side() {
    situation(async |site| {
        let cluster = site.their_cluster("our-cpo").await?;
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.go_ho(&cluster).await?, site.cpo(&cluster).await?);
        site.heals(&cluster).await?;
        site.all_hold(&cluster).await?;
        // The reference never removes a NAT subnet.
        site.goes(&cluster, &[&cluster.own_nat_subnet(&site.ground)]).await?;
        ho.stop().await?;
        ends(cpo).await
    });
}
