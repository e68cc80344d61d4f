//! Clusters that are deleted at an odd moment.

use super::*;

/// Each write is recorded before it is sent, so the next process finds it, at once or after the lease has expired.
#[rstest]
#[tokio::test(start_paused = true)]
async fn cluster_is_deleted_right_after_a_process_died_over_it(
    #[values(1, 2)] first: i64,
    #[values(0, 15)] pause: u64,
) {
    let empty = state(&Life::new().sim);
    for effects in (first..).step_by(2) {
        let Some(mut life) = Life::cut_short(effects).await else {
            assert!(effects > 15, "only {effects} effects until it is available");
            return;
        };
        sleep(Duration::from_secs(pause)).await;
        life.delete_cluster().await;
        // Even now a write is executed that was accepted before anything could be read of it.
        life.sim.let_operations_end().await;
        assert_eq!(state(&life.sim), empty, "dead after {effects} effects");
    }
}

/// The control plane is deleted with role `cpo`, and the garbage collector deletes the custom resource later.
#[tokio::test(start_paused = true)]
async fn what_was_gone_before_the_control_plane_is_read_again() {
    let life = Life::new();
    life.reconcile_management().await;
    life.sim.forget_calls();
    // Finalizers and intent are written, and the gate shuts before the first write to Azure.
    life.sim.valve.set(2);
    life.reconcile_at(1, life.cr().unwrap()).await;
    assert!(life.sim.valve.is_shut(), "{}", life.sim.calls());
    assert_eq!(life.writes("PUT"), BTreeMap::new());
    life.sim.valve.set(i64::MAX);
    let zone = format!("{GUEST}/privateDnsZones/example.hypershift.local");
    let zone = ResourceId::parse(&zone).unwrap();
    assert!(
        life.processes[1]
            .cx
            .cloud
            .observations
            .absent_for(&zone, Instant::now())
            .is_some()
    );
    // After that no earlier PUT could still take effect, but another writer creates the zone.
    sleep(Duration::from_secs(60)).await;
    let own = json!({"location": "global", "tags": {"hypershift.openshift.io_cluster-id": "x-id"}});
    life.sim.install(&zone, own);
    life.cluster
        .delete_at("hostedcontrolplanes/example", &Timestamp::now().to_string());
    while has_cpo_finalizer(&life.cr().unwrap()) {
        sleep(life.reconcile_guest().await.min(Duration::from_secs(300))).await;
    }
    assert_eq!(life.sim.shown(&zone), None);
}

/// Its finalizer was released while the first reconcile was in Azure: nothing is created any more.
#[tokio::test(start_paused = true)]
async fn control_plane_deleted_before_the_first_put_gets_no_endpoint() {
    let life = Life::new();
    while life
        .cr()
        .unwrap()
        .status
        .is_none_or(|status| status.private_link_service_alias.is_none())
    {
        sleep(life.reconcile_management().await).await;
    }
    life.sim.forget_calls();
    life.cluster
        .deleted_before_the_next_patch("hostedcontrolplanes/example");
    assert_eq!(life.reconcile_at(1, life.cr().unwrap()).await, None);
    assert!(has_cpo_finalizer(&life.cr().unwrap()));
    assert_eq!(life.writes("PUT"), BTreeMap::new());
}

fn has_cpo_finalizer(cr: &AzurePrivateLinkService) -> bool {
    let finalizers = cr.metadata.finalizers.iter().flatten();
    finalizers
        .into_iter()
        .any(|one| one == hyperlink::api::markers::CPO_FINALIZER)
}
