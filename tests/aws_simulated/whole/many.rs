//! A process for many control planes: the operator's file says who may use what, and as whom.

use tokio::sync::watch;

use super::cluster::PLANE;
use super::*;
use crate::desired::{SECRET, ZONE};

/// The process' own identity, which may assume roles and do nothing else.
const BASE: &str = "arn:aws:iam::111122223333:user/base";
/// The role of the cluster, and that of another one, which trust it.
const ROLE: &str = "arn:aws:iam::444455556666:role/cpo";
const OTHER: &str = "arn:aws:iam::444455556666:role/other";

/// A cluster whose CPO role serves many, with the cluster's entry in the file.
struct Many {
    life: Life,
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

fn entry() -> Value {
    json!({"roleARN": ROLE, "vpcIDs": ["vpc-00000002"], "hostedZoneIDs": [ZONE]})
}

fn file(aws: &Value) -> Arc<AllowedScopes> {
    let file = json!({"hostedClusters": [{"namespace": "clusters", "names": ["example"], "aws": aws},
        {"namespace": "clusters", "names": ["other"], "aws": {"roleARN": OTHER, "vpcIDs": [], "hostedZoneIDs": []}}]});
    Arc::new(AllowedScopes::parse(&file.to_string()).unwrap())
}

impl Many {
    fn new(aws: &Value) -> Self {
        let file = watch::Sender::new(file(aws));
        let mut life = Life::with(with_roles);
        let caller = ("AKIABASE", MANAGEMENT);
        life.processes[1] = Process::calling_as(caller, Role::Cpo, &life.aws, &life.cluster);
        life.allowed = Some(file.subscribe());
        Self { life, file }
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
        self.life.wake();
        self.life.run_for(Duration::from_secs(600)).await;
        assert_eq!(self.verdict(), ("ScopeNotAllowed".to_owned(), message.to_owned()));
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
