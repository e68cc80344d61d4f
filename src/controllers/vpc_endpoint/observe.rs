//! Reads the inputs of the CPO role on AWS from Kubernetes.

use jiff::Timestamp;
use kube::ResourceExt;

use super::VpcEndpointController;
use super::inputs::{Guest, Vouched, VpcEndpointInputs};
use super::plan::owned_group;
use crate::api::hypershift::ClusterSpec;
use crate::api::markers::CPO_INTENT;
use crate::api::{AWSEndpointService, ClusterRef, HostedCluster, HostedControlPlane};
use crate::aws::region::Region;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::hypershift::aws::identity::on_aws;
use crate::hypershift::aws::ids::{is_id, service_id};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::claims::Claims;
use crate::hypershift::identity::{IDENTITY_RETRY, Identity};
use crate::hypershift::{identity, intent, owner};
use crate::runtime::call::ReconcileError;

/// What Kubernetes shows around a custom resource.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AWSEndpointService,
    controller: &VpcEndpointController,
) -> Result<VpcEndpointInputs, ReconcileError> {
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::only_control_plane(&cx.runtime.kube, &namespace).await?;
    let found = control_plane.as_ref().ok();
    let recorded: Option<CpoIntent> = intent::read(cr.annotations().get(CPO_INTENT));
    let claimed = found.map(ResourceExt::name_any).filter(|_| !controller.serves_many);
    let access = match &controller.allowed {
        Some(allowed) => allowed.borrow().on_aws(&namespace, claimed.as_deref()),
        None => Access::AsNamed(cx.cloud.client.own().to_owned()),
    };
    let vouched = match controller.voucher_of(&namespace) {
        Some(cluster) => {
            let hosted = owner::hosted_cluster_named(&cx.runtime.kube, &cluster).await?;
            let known = recorded.as_ref().map(CpoIntent::identity);
            vouched(cr, (&cluster, hosted.as_ref()), found, known)
        }
        None => Vouched::default(),
    };
    let guest = match &control_plane {
        Ok(found) => Guest::of(found, &access, &controller.region),
        Err(problem) => Err(problem.clone()),
    };
    let slot = guest.as_ref().ok();
    let slot = slot.and_then(|guest| endpoint_slot(cr, guest, &controller.region));
    if let Some(slot) = &slot {
        note_recorded(cx, cr, slot, recorded.as_ref());
    }
    if let Ok(guest) = &guest {
        note_shown_group(cx, cr, guest);
    }
    let paused = found.and_then(|found| identity::paused(&found.spec, Timestamp::now()));
    Ok(VpcEndpointInputs {
        access,
        guest,
        vouched,
        refused_subnets: slot
            .map(|slot| cx.cloud.client.refused_subnets(&slot))
            .unwrap_or_default(),
        is_unwanted: found.is_some_and(|found| is_unwanted(found, paused.is_some())),
        paused,
        paused_until: found.and_then(|found| found.spec.paused_until.clone()),
    })
}

/// What the HostedCluster that the operator's file names shows of the cluster; `known` is the one that was recorded.
fn vouched(
    cr: &AWSEndpointService,
    (cluster, hosted): (&ClusterRef, Option<&HostedCluster>),
    found: Option<&HostedControlPlane>,
    known: Option<Identity>,
) -> Vouched {
    let of_spec = |name: String, spec: &ClusterSpec| identity::of_spec(&name, spec).ok();
    let refusal = found.and_then(|plane| {
        let namespace = cr.namespace().unwrap_or_default();
        // Each entry has a role, VPCs and zones of its own: no other HostedCluster can take anything by the same ids.
        let no_claims = Claims::default();
        identity::vouched_for(cluster, &namespace, hosted, Some(plane), &no_claims, on_aws).err()
    });
    let of_plane = found.and_then(|plane| of_spec(plane.name_any(), &plane.spec));
    let own = identity::own_cluster(cr, hosted, of_plane.or(known).as_ref());
    Vouched {
        // No event tells when the HostedCluster changes.
        refusal: refusal.map(|problem| problem.requeue_after(IDENTITY_RETRY)),
        identity: own.and_then(|hosted| of_spec(hosted.name_any(), &hosted.spec)),
    }
}

/// Whether the path is not desired any more. A pause holds up everything but a deletion.
fn is_unwanted(found: &HostedControlPlane, is_paused: bool) -> bool {
    let is_public = || found.spec.aws().is_some_and(|aws| aws.access().is_public_only());
    found.metadata.deletion_timestamp.is_some() || (!is_paused && is_public())
}

/// The slot of the endpoint to the endpoint service that the status shows.
fn endpoint_slot(cr: &AWSEndpointService, guest: &Guest, region: &Region) -> Option<Slot> {
    let service = cr.status.as_ref()?.endpoint_service_name.as_deref();
    let service = service.filter(|name| service_id(name, region).is_some())?;
    Some(Slot::vpc_endpoint(&guest.account, &guest.vpc, service))
}

/// Notes which endpoint the status or the intent names: AWS is asked about it by this id, too.
fn note_recorded(cx: &Context, cr: &AWSEndpointService, slot: &Slot, recorded: Option<&CpoIntent>) {
    let status = cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.as_deref());
    let endpoint = recorded
        .and_then(CpoIntent::endpoint_id)
        .or(shown.filter(|id| is_id("vpce", id)));
    if let Some(id) = endpoint {
        cx.cloud.client.note_recorded(slot, id);
    }
}

/// Notes which security group the status shows: AWS is asked about it by this id, too.
fn note_shown_group(cx: &Context, cr: &AWSEndpointService, guest: &Guest) {
    let status = cr.status.as_ref();
    let shown = status.and_then(|status| status.security_group_id.as_deref());
    if let Some(id) = shown.filter(|id| is_id("sg", id)) {
        let group = owned_group(&guest.identity, (&guest.account, &guest.vpc), cr);
        cx.cloud.client.note_recorded(&group.slot, id);
    }
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &VpcEndpointInputs) -> String {
    let mut compared = inputs.clone();
    // The time until the pause ends; `paused_until` says when that is.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    format!("{compared:?}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::Reason;
    use crate::api::markers::CLUSTER_ANNOTATION;
    use crate::controllers::vpc_endpoint::samples::Sample;

    const MONDAY: &str = "2026-01-05T00:00:00Z";
    const TUESDAY: &str = "2026-01-06T00:00:00Z";

    fn spec(id: &str) -> Value {
        json!({"clusterID": id, "infraID": format!("infra-{id}"), "platform": {"type": "AWS", "aws": {}}})
    }

    fn cluster(id: &str, created: &str) -> HostedCluster {
        let metadata = json!({"name": "example", "namespace": "clusters", "creationTimestamp": created});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec(id)})).unwrap()
    }

    fn plane(name: &str, of: &str, id: &str) -> HostedControlPlane {
        let metadata = json!({"name": name, "namespace": "clusters-example", "annotations": {CLUSTER_ANNOTATION: of}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec(id)})).unwrap()
    }

    /// What a HostedCluster shows of a custom resource made on Tuesday.
    fn shown(hosted: Option<&HostedCluster>, found: Option<&HostedControlPlane>, known: Option<&str>) -> Vouched {
        let mut cr = Sample::new().cr;
        cr.metadata.creation_timestamp = serde_json::from_value(json!(TUESDAY)).unwrap();
        let known = known.map(|id| Identity {
            name: "example".to_owned(),
            cluster_id: id.to_owned(),
            infra_id: format!("infra-{id}"),
        });
        let file = ClusterRef {
            namespace: "clusters".to_owned(),
            name: "example".to_owned(),
        };
        vouched(&cr, (&file, hosted), found, known)
    }

    #[rstest]
    #[case::confirmed(Some("id"), plane("example", "clusters/example", "id"), None)]
    #[case::no_cluster(
        None,
        plane("example", "clusters/example", "id"),
        Some(Reason::HostedClusterNotFound)
    )]
    #[case::other_ids(
        Some("id"),
        plane("example", "clusters/example", "other"),
        Some(Reason::IdentityMismatch)
    )]
    #[case::other_name(Some("id"), plane("other", "clusters/example", "id"), Some(Reason::IdentityMismatch))]
    #[case::of_another(Some("id"), plane("example", "clusters/other", "id"), Some(Reason::IdentityMismatch))]
    fn hosted_cluster_of_the_file_has_to_confirm_the_control_plane(
        #[case] id: Option<&str>,
        #[case] found: HostedControlPlane,
        #[case] expected: Option<Reason>,
    ) {
        let hosted = id.map(|id| cluster(id, MONDAY));
        let refusal = shown(hosted.as_ref(), Some(&found), None).refusal;
        assert_eq!(refusal.as_ref().map(|problem| problem.reason), expected);
        assert!(refusal.is_none_or(|problem| problem.requeue_after == Some(IDENTITY_RETRY)));
    }

    #[rstest]
    #[case::older_than_the_custom_resource(MONDAY, None, true)]
    #[case::successor("2026-01-07T00:00:00Z", Some("before"), false)]
    #[case::restored_later("2026-01-07T00:00:00Z", Some("id"), true)]
    fn deletion_is_of_the_cluster_that_the_hosted_cluster_shows(
        #[case] created: &str,
        #[case] recorded: Option<&str>,
        #[case] counts: bool,
    ) {
        let identity = shown(Some(&cluster("id", created)), None, recorded).identity;
        let expected = counts.then_some("id".to_owned());
        assert_eq!(identity.map(|identity| identity.cluster_id), expected);
    }

    #[rstest]
    #[case::private("Private", false, false, false)]
    #[case::public("Public", false, false, true)]
    #[case::unknown("Moon", false, false, false)]
    #[case::public_and_paused("Public", false, true, false)]
    #[case::deleted_and_paused("Private", true, true, true)]
    fn path_is_desired_until_it_is_public_or_deleted(
        #[case] access: &str,
        #[case] is_deleting: bool,
        #[case] is_paused: bool,
        #[case] expected: bool,
    ) {
        let deleted = is_deleting.then_some("2026-01-01T00:00:00Z");
        let found = serde_json::from_value(json!({
            "metadata": {"name": "example", "deletionTimestamp": deleted},
            "spec": {"platform": {"type": "AWS", "aws": {"endpointAccess": access}}}}));
        assert_eq!(is_unwanted(&found.unwrap(), is_paused), expected);
    }
}
