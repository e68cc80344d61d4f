//! A process for many control planes: the operator's file says who may use what, and as whom.

use rstest::rstest;
use tokio::sync::watch;

use super::cluster::{HOSTED, PLANE};
use super::*;
use crate::desired::{SECRET, ZONE};

/// The process' own identity, which may assume roles and do nothing else.
const BASE: &str = "arn:aws:iam::111122223333:user/base";
/// The role of the cluster, and that of another one, which trust it.
const ROLE: &str = "arn:aws:iam::444455556666:role/cpo";
const OTHER: &str = "arn:aws:iam::444455556666:role/other";

/// A cluster whose CPO role serves many, with the cluster's entry in the file.
pub(super) struct Many {
    pub(super) life: Life,
    file: watch::Sender<Arc<AllowedScopes>>,
}

fn with_roles(seed: &mut Value) {
    let assumes = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]});
    let base = json!({"name": "base", "access_key_id": "AKIABASE", "secret_access_key": SECRET, "policies": [assumes]});
    seed["accounts"][0]["users"].as_array_mut().unwrap().push(base);
    let policies = seed["accounts"][1]["users"][0]["policies"].clone();
    let role = |name: &str| json!({"name": name, "trusted": [BASE], "policies": policies});
    seed["accounts"][1]["roles"] = json!([role("cpo"), role("other")]);
}

pub(super) fn entry() -> Value {
    json!({"roleARN": ROLE, "vpcIDs": ["vpc-00000002"], "hostedZoneIDs": [ZONE]})
}

fn file(aws: &Value) -> Arc<AllowedScopes> {
    let file = json!({"hostedClusters": [{"namespace": "clusters", "names": ["example"], "aws": aws},
        {"namespace": "clusters", "names": ["other"], "aws": {"roleARN": OTHER, "vpcIDs": [], "hostedZoneIDs": []}}]});
    Arc::new(AllowedScopes::parse(&file.to_string()).unwrap())
}

impl Many {
    pub(super) fn new(aws: &Value) -> Self {
        Self::with(aws, |_| {})
    }

    /// With a changed seed.
    pub(super) fn with(aws: &Value, change: impl FnOnce(&mut Value)) -> Self {
        let file = watch::Sender::new(file(aws));
        let mut life = Life::with(|seed| {
            with_roles(seed);
            change(seed);
        });
        let caller = ("AKIABASE", MANAGEMENT);
        life.processes[1] = Process::calling_as(caller, Role::Cpo, &life.aws, &life.cluster);
        life.allowed = Some(file.subscribe());
        Self { life, file }
    }

    /// Ends the process of the CPO role, and starts another one with the same identity.
    pub(super) fn restart_cpo(&mut self) {
        let life = &mut self.life;
        let caller = ("AKIABASE", MANAGEMENT);
        life.processes[1] = Process::calling_as(caller, Role::Cpo, &life.aws, &life.cluster);
    }

    fn allow(&mut self, aws: &Value) {
        self.file.send_replace(file(aws));
        self.life.wake();
    }

    /// Who has called AWS for the CPO role, and what.
    fn calls(&self) -> Vec<(String, String)> {
        let journal = self.life.aws.journal().into_iter();
        let calls = journal.map(|entry| (entry.principal, entry.path));
        calls.filter(|(principal, _)| !principal.contains("user/ho")).collect()
    }

    /// Reason and message of the CPO role's condition.
    fn verdict(&self) -> (String, String) {
        let cr = self.life.cluster.get(CR).unwrap();
        let mut all = cr["status"]["conditions"].as_array().into_iter().flatten();
        let found = all.find(|one| one["type"] == "AWSEndpointAvailable").unwrap();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (text("reason"), text("message"))
    }

    async fn is_refused(&mut self, message: &str) {
        self.is_refused_for("ScopeNotAllowed", message).await;
    }

    async fn is_refused_for(&mut self, reason: &str, message: &str) {
        self.life.wake();
        self.life.run_for(Duration::from_secs(600)).await;
        assert_eq!(self.verdict(), (reason.to_owned(), message.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn role_of_the_file_makes_the_path_and_deletes_it() {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    assert!(many.life.is_reachable());
    many.life.deleted().await;
    assert_eq!(many.life.remains(), empty);
    let calls = many.calls();
    let of_base: Vec<_> = calls.iter().filter(|(principal, _)| principal == BASE).collect();
    assert!(of_base.iter().all(|(_, path)| path == "/sts/AssumeRole"), "{of_base:?}");
    assert_eq!(of_base.len(), 1, "one session for both services: {of_base:?}");
    let is_of_role = |principal: &str| principal == BASE || principal.contains(":assumed-role/cpo/");
    assert!(calls.iter().all(|(principal, _)| is_of_role(principal)), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn role_of_another_tenant_is_not_assumed() {
    let mut many = Many::new(&entry());
    let shared = json!({"localZoneID": ZONE, "rolesRef": {"controlPlaneARN": OTHER, "ingressARN": OTHER}});
    many.life
        .cluster
        .forge(PLANE, &json!({"spec": {"platform": {"aws": {"sharedVPC": shared}}}}));
    let lack = format!("roleARN is not {OTHER}");
    let field = "platform.aws.sharedVPC.rolesRef.controlPlaneARN";
    many.is_refused(&format!("{field} is outside of the allowed scopes; {lack}"))
        .await;
    assert_eq!(many.calls(), []);
    let finalizers = many.life.cr().unwrap().metadata.finalizers.unwrap_or_default();
    assert!(
        !finalizers.iter().any(|one| one.contains("control-plane-operator")),
        "{finalizers:?}"
    );
}

const DISAGREE: &str = "HostedCluster and HostedControlPlane disagree on the cluster";

#[rstest]
#[case::ids_of_another(json!({"spec": {"clusterID": "0f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a12", "infraID": "victim"}}))]
#[case::name_of_another(json!({"metadata": {"name": "other"}}))]
#[case::cluster_of_another(json!({"metadata": {"annotations": {"hypershift.openshift.io/cluster": "clusters/other"}}}))]
#[tokio::test(start_paused = true)]
async fn forged_control_plane_gets_nothing(#[case] forgery: Value) {
    let mut many = Many::new(&entry());
    many.life.cluster.forge(PLANE, &forgery);
    many.is_refused_for("IdentityMismatch", DISAGREE).await;
    assert_eq!(many.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn one_of_several_control_planes_gets_nothing() {
    let mut many = Many::new(&entry());
    let plane = many.life.cluster.get(PLANE).unwrap();
    many.life
        .cluster
        .put("clusters-example/hostedcontrolplanes/forged", plane);
    let several = "the namespace has several HostedControlPlanes";
    many.is_refused_for("HostedControlPlaneNotFound", several).await;
    assert_eq!(many.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn control_plane_waits_for_the_hosted_cluster_that_vouches_for_it() {
    let mut many = Many::new(&entry());
    let hosted = many.life.cluster.get(HOSTED).unwrap();
    many.life.cluster.remove(HOSTED);
    let nobody = "HostedCluster clusters/example does not exist";
    many.is_refused_for("HostedClusterNotFound", nobody).await;
    assert_eq!(many.calls(), []);
    many.life.cluster.put(HOSTED, hosted);
    many.life.until_available().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_continues_though_the_hosted_cluster_is_gone() {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    many.life.cluster.remove(HOSTED);
    many.life.deleted().await;
    assert_eq!(many.life.remains(), empty);
}

#[tokio::test(start_paused = true)]
async fn forged_ids_at_the_deletion_leave_nothing_of_the_cluster() {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    many.life
        .cluster
        .forge(PLANE, &json!({"spec": {"clusterID": "forged", "infraID": "forged"}}));
    many.life.deleted().await;
    assert_eq!(many.life.remains(), empty);
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_while_the_file_does_not_allow_it() {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    let mut narrower = entry();
    narrower["vpcIDs"] = json!([]);
    many.allow(&narrower);
    many.life.aws.clear_journal();
    many.life.cluster.remove(PLANE);
    many.life.cluster.delete_at(CR, &Timestamp::now().to_string());
    many.is_refused("what was recorded is outside of the allowed scopes; vpcIDs lacks vpc-00000002")
        .await;
    assert_eq!(many.calls(), []);
    assert!(many.life.remains().len() > empty.len());
    many.allow(&entry());
    many.life.run_for(Duration::from_secs(7_200)).await;
    assert!(many.life.cr().is_none());
    assert_eq!(many.life.remains(), empty);
}

#[tokio::test(start_paused = true)]
async fn role_that_is_replaced_takes_over_what_the_former_made() {
    let mut many = Many::new(&entry());
    many.life.until_available().await;
    many.life.aws.clear_journal();
    let mut replaced = entry();
    replaced["roleARN"] = json!(OTHER);
    many.allow(&replaced);
    many.life.run_for(Duration::from_secs(600)).await;
    assert!(many.life.is_available() && many.life.is_reachable());
    let calls = many.calls();
    assert!(
        calls
            .iter()
            .any(|(principal, _)| principal.contains(":assumed-role/other/"))
    );
    assert!(
        !calls
            .iter()
            .any(|(principal, _)| principal.contains(":assumed-role/cpo/")),
        "{calls:?}"
    );
    assert_eq!(many.life.aws.writes(), [""; 0]);
}
