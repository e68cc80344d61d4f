//! Everything that happens to a path happens once, with each answer of AWS that its documentation leaves open.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use rstest::rstest;

use super::cluster::{HOSTED, PLANE};
use super::many::{Many, entry};
use super::*;
use crate::lost::groups;
use crate::sim::fault;
use crate::strangers::live;

/// The other answer of each switch.
fn other_answers() -> Value {
    json!({
        "describe_lag_s": 40.0,
        "tag_lag_s": 40.0,
        "spent_token_is_refused": false,
        "deleting_blocks_delete": false,
        "zone_swap_is_refused": false,
        "subnets_are_required": true,
        "authorize_is_atomic": false,
        "connection_filter_is_refused": false,
        "gone_principal_shows_id": false,
        "ec2_expired_code": "ExpiredToken",
        "batch_error_has_messages": true,
        "zone_busy_s": 20.0,
        "rejected_listed_s": 0.0,
    })
}

#[test]
fn every_switch_has_another_answer() {
    let usual = serde_json::to_value(awssim::Switches::default()).unwrap();
    let other = other_answers();
    let names = |all: &Value| all.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&usual), names(&other));
    for name in names(&usual) {
        assert_ne!(usual[&name], other[&name], "{name}");
    }
}

/// A role of the guest that was deleted after it was allowed to connect.
const GONE_ROLE: &str = "arn:aws:iam::444455556666:role/gone";

/// The two subnets of one zone, with ids of the right form.
const SWAPPED: [&str; 2] = ["subnet-00000001", "subnet-00000003"];

fn allow_gone_role(cluster: &Cluster) {
    let principals = json!([GONE_ROLE, format!("arn:aws:iam::{GUEST}:user/cpo")]);
    let platform = json!({"aws": {"additionalAllowedPrincipals": principals}});
    cluster.forge(HOSTED, &json!({"spec": {"platform": platform}}));
}

/// The subnet of the other zone.
const OF_OTHER_ZONE: &str = "subnet-00000002";
const POOL: &str = "clusters/nodepools/a";

/// A path, of which a role's process was killed in between.
struct Switched {
    many: Many,
    killed: Role,
}

impl Switched {
    fn new(switches: Value, killed: Role) -> Self {
        // Only where AWS shows its ARN: its unique id is a problem that stays.
        let shows_arn = switches["gone_principal_shows_id"] == json!(false);
        let change = |seed: &mut Value| {
            *seed = serde_json::from_str(&seed.to_string().replace("subnet-3", SWAPPED[1])).unwrap();
            seed["switches"] = switches;
        };
        let many = Many::with(&entry(), change);
        let mut pool = many.life.cluster.get(POOL).unwrap();
        pool["metadata"]["name"] = json!("b");
        pool["spec"]["platform"]["aws"]["subnet"]["id"] = json!(OF_OTHER_ZONE);
        many.life.cluster.put("clusters/nodepools/b", pool);
        if shows_arn {
            allow_gone_role(&many.life.cluster);
        }
        Self { many, killed }
    }

    fn kill(&mut self) {
        match self.killed {
            Role::Ho => self.many.life.restart(Role::Ho),
            Role::Cpo | Role::Capz => self.many.restart_cpo(),
        }
    }

    /// Reconciles for an hour, in which a process is killed and everything is read again; then the path is there.
    async fn recovers(&mut self, what: &str) {
        self.many.life.wake();
        for _ in 0..3 {
            self.many.life.reconcile_next().await;
        }
        self.kill();
        self.many.life.wake();
        self.many.life.run_for(Duration::from_secs(3_600)).await;
        let life = &self.many.life;
        let cr = life.cluster.get(CR).unwrap();
        assert!(life.is_available() && life.is_reachable(), "{what}: {cr:#}");
        for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
            assert_eq!(live(&life.aws, kind).len(), 1, "{what}: {kind}");
        }
    }

    fn endpoint(&self) -> Value {
        live(&self.many.life.aws, "vpc-endpoint").remove(0)
    }

    fn subnets(&self) -> BTreeSet<String> {
        serde_json::from_value(self.endpoint()["subnets"].clone()).unwrap()
    }

    async fn subnet_is_swapped(&mut self) {
        let subnet = json!({"spec": {"platform": {"aws": {"subnet": {"id": SWAPPED[1]}}}}});
        self.many.life.cluster.forge(POOL, &subnet);
        self.recovers("swap").await;
        assert_eq!(
            self.subnets(),
            BTreeSet::from([OF_OTHER_ZONE, SWAPPED[1]].map(str::to_owned))
        );
    }

    /// The first network's rule is there already.
    async fn network_is_added(&mut self) {
        let networks = json!([{"cidr": "10.0.0.0/16"}, {"cidr": "10.1.0.0/16"}, {"cidr": "fd00::/48"}]);
        for key in [HOSTED, PLANE] {
            let networking = json!({"spec": {"networking": {"machineNetwork": networks}}});
            self.many.life.cluster.forge(key, &networking);
        }
        self.recovers("network").await;
        let group = groups(&self.many.life.aws).remove(0);
        let sources: Vec<&Value> = group["ingress"].as_array().unwrap().iter().collect();
        let sources: BTreeSet<String> = sources.iter().map(|rule| rule["source"].to_string()).collect();
        assert_eq!(sources.len(), 3, "{group:#}");
    }

    /// AWS ends each session after ten minutes meanwhile.
    async fn drift_is_repaired(&mut self) {
        let life = &mut self.many.life;
        life.aws.set_sessions_behind(SignedDuration::from_mins(50));
        life.aws.clear_journal();
        life.run_for(Duration::from_secs(4_500)).await;
        let expected = life.aws.aws().switches().ec2_expired_code.clone();
        let journal = life.aws.journal();
        let expired = journal.iter().filter(|entry| entry.code.as_ref() == Some(&expected));
        let (expired, sessions) = (expired.count(), life.calls_of("AssumeRole").len());
        assert!(
            (1..=sessions).contains(&expired),
            "{expired} refused, {sessions} sessions"
        );
        assert!(life.is_available());
        life.aws.set_sessions_behind(SignedDuration::ZERO);
        let life = &self.many.life;
        life.aws.change(self.endpoint(), |body| {
            body["subnets"] = json!([]);
            body["groups"] = json!([]);
        });
        life.aws.change(life.hosted_zone(), |body| {
            for record in body["records"].as_array_mut().unwrap() {
                record["values"] = json!(["vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com"]);
            }
        });
        self.recovers("drift").await;
        assert_eq!(
            self.subnets(),
            BTreeSet::from([OF_OTHER_ZONE, SWAPPED[1]].map(str::to_owned))
        );
        assert_eq!(self.endpoint()["groups"].as_array().unwrap().len(), 1);
    }

    /// Its client token is spent.
    async fn endpoint_is_replaced(&mut self) {
        let before = self.endpoint();
        self.many.life.removed(&before);
        self.recovers("endpoint").await;
        assert_ne!(self.endpoint()["id"], before["id"]);
    }

    /// The records that a read shows are gone when they are to be deleted: AWS refuses the batch.
    async fn deleted(&mut self) {
        let life = &mut self.many.life;
        let zone = life.hosted_zone();
        life.cluster.delete_at(CR, &Timestamp::now().to_string());
        let shown = |record: &Value| {
            let text = |field: &str| record[field].as_str().unwrap().replace('*', "\\052");
            let value = record["values"][0].as_str().unwrap();
            let values =
                format!("<ResourceRecords><ResourceRecord><Value>{value}</Value></ResourceRecord></ResourceRecords>");
            format!(
                "<ResourceRecordSet><Name>{}</Name><Type>CNAME</Type><TTL>300</TTL>{values}</ResourceRecordSet>",
                text("name")
            )
        };
        let records: String = zone["records"].as_array().unwrap().iter().map(shown).collect();
        let body = format!(
            "<ListResourceRecordSetsResponse><ResourceRecordSets>{records}</ResourceRecordSets>\
             <IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>"
        );
        life.aws.change(zone, |body| body["records"] = json!([]));
        life.aws.set_faults(&fault(
            "/ListResourceRecordSets$",
            1,
            &json!({"status": 200, "body": body}),
        ));
        for _ in 0..3 {
            life.reconcile_next().await;
        }
        self.kill();
        self.many.life.wake();
        self.many.life.run_for(Duration::from_secs(7_200)).await;
        let life = &self.many.life;
        assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
        let actions = life.aws.actions();
        let is_refused = |action: &String| action.ends_with("/ChangeResourceRecordSets InvalidChangeBatch");
        assert!(actions.iter().any(is_refused), "{actions:#?}");
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn life_is_whole_with_either_answer_of_each_switch(
    #[values(
        "none",
        "describe_lag_s",
        "tag_lag_s",
        "spent_token_is_refused",
        "deleting_blocks_delete",
        "zone_swap_is_refused",
        "subnets_are_required",
        "authorize_is_atomic",
        "connection_filter_is_refused",
        "gone_principal_shows_id",
        "ec2_expired_code",
        "batch_error_has_messages",
        "zone_busy_s",
        "rejected_listed_s"
    )]
    switch: &str,
    #[values(Role::Ho, Role::Cpo)] killed: Role,
) {
    let other = other_answers();
    let switches = match other.get(switch) {
        Some(answer) => json!({ switch: answer }),
        None => json!({}),
    };
    let mut switched = Switched::new(switches, killed);
    let empty = switched.many.life.remains();
    switched.many.life.until_available().await;
    switched.subnet_is_swapped().await;
    switched.network_is_added().await;
    switched.drift_is_repaired().await;
    switched.endpoint_is_replaced().await;
    switched.many.life.aws.clear_journal();
    switched.many.life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(switched.many.life.aws.writes(), [""; 0], "at rest");
    let calls = switched.many.life.aws.journal().len();
    assert!(calls <= 60, "{calls} calls in an hour at rest");
    switched.many.life.aws.clear_journal();
    switched.deleted().await;
    let calls = switched.many.life.aws.journal().len();
    assert!(calls <= 60, "{calls} calls for the deletion");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(switched.many.life.remains(), empty);
}
