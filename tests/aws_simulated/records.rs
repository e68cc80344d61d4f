//! Foreign records beside the cluster's own, and how records and their names are compared.

use std::time::Duration;

use hyperlink::aws::kinds::records::{Records, ReleasedRecords};
use hyperlink::aws::kinds::vpc_endpoint::dns_name;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::{Owned, Resource};
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{API, APPS, GUEST, ZONE, records, scope};
use crate::life::Path;
use crate::process::Process;
use crate::strangers::{record_values, released_records, set_record, zone};

const FOREIGN: &str = "mine.example.com";
const OTHER_ENDPOINT: &str = "vpce-9-abc.vpce-svc-9.us-east-1.vpce.amazonaws.com";

fn batches(path: &Path) -> usize {
    let writes = path.aws.writes();
    writes.iter().filter(|call| call.contains("Change")).count()
}

#[tokio::test(start_paused = true)]
async fn own_record_beside_a_foreign_one_is_repaired() {
    let path = Path::made().await;
    let target = dns_name(&path.endpoint).unwrap().to_owned();
    set_record(&path.aws, API, FOREIGN);
    set_record(&path.aws, APPS, OTHER_ENDPOINT);
    path.aws.clear_journal();
    let (cpo, desired) = (Process::cpo(&path.aws), records(&target));
    for _ in 0..5 {
        // A zone takes no change for a moment after one.
        sleep(Duration::from_secs(5)).await;
        let (step, _) = cpo
            .reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
        assert!(step.ready().is_none(), "as desired, it is said: {step:?}");
    }
    assert_eq!(record_values(&path.aws, APPS), [target.as_str()]);
    assert_eq!(record_values(&path.aws, API), [FOREIGN]);
    assert_eq!(batches(&path), 1);
    cpo.forget(&desired.slot);
    let (step, _) = cpo
        .reconcile(&desired, |observed| ensure_present(&desired, observed))
        .await;
    assert!(step.left(), "the foreign one is reported: {step:?}");
}

#[tokio::test(start_paused = true)]
async fn own_record_beside_a_foreign_one_is_created() {
    let path = Path::made().await;
    let target = dns_name(&path.endpoint).unwrap().to_owned();
    let released = released_records(&path);
    path.cpo.released(&released, None).await;
    set_record(&path.aws, API, FOREIGN);
    let (cpo, desired) = (Process::cpo(&path.aws), records(&target));
    for _ in 0..5 {
        cpo.reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
    }
    assert_eq!(record_values(&path.aws, APPS), [target.as_str()]);
    assert_eq!(record_values(&path.aws, API), [FOREIGN]);
}

#[tokio::test(start_paused = true)]
async fn own_record_beside_a_foreign_one_is_deleted() {
    let path = Path::made().await;
    set_record(&path.aws, API, FOREIGN);
    path.aws.clear_journal();
    let cpo = Process::cpo(&path.aws);
    let is_left = cpo.released(&released_records(&path), None).await;
    assert!(is_left, "the foreign one is reported");
    assert_eq!(record_values(&path.aws, APPS), Vec::<String>::new());
    assert_eq!(record_values(&path.aws, API), [FOREIGN]);
    assert_eq!(batches(&path), 1);
}

/// A CNAME stands alone: Route 53 refuses the whole batch for one beside it.
#[tokio::test(start_paused = true)]
async fn own_record_beside_one_of_another_type_is_created() {
    let path = Path::made().await;
    let target = dns_name(&path.endpoint).unwrap().to_owned();
    path.cpo.released(&released_records(&path), None).await;
    path.aws.change(zone(&path.aws), |zone| {
        let address = json!({"name": API, "type": "A", "ttl": 60, "values": ["10.0.0.9"]});
        zone["records"].as_array_mut().unwrap().push(address);
    });
    let (cpo, desired) = (Process::cpo(&path.aws), records(&target));
    for _ in 0..5 {
        cpo.reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
    }
    assert_eq!(record_values(&path.aws, APPS), [target.as_str()]);
    assert!(record_values(&path.aws, API).is_empty());
}

/// Somebody writes between the read and the write.
#[tokio::test(start_paused = true)]
async fn foreign_record_that_came_after_the_read_is_not_overwritten() {
    let path = Path::made().await;
    let cpo = Process::cpo(&path.aws);
    cpo.released(&released_records(&path), None).await;
    let desired = records(dns_name(&path.endpoint).unwrap());
    let cpo = Process::cpo(&path.aws);
    let (step, _) = cpo
        .reconcile(&desired, |observed| {
            let step = ensure_present(&desired, observed);
            set_record(&path.aws, API, "mine.example.com");
            step
        })
        .await;
    assert_eq!(step.found, None, "no record was there: the write is for new ones");
    assert_eq!(record_values(&path.aws, API), ["mine.example.com"]);
}

#[test]
fn record_without_values_is_foreign() {
    let desired = records("x");
    let released = ReleasedRecords {
        slot: desired.slot.clone(),
        endpoint_names: vec!["vpce-1.vpce.amazonaws.com".to_owned()],
        endpoint_ids: Vec::new(),
        service_ids: Vec::new(),
    };
    let alias = json!({"Records": {API: {"Type": "CNAME", "TTL": null, "Values": []}}});
    assert!(desired.foreign(&alias).contains(API), "the other name is put");
    assert!(desired.body(Some(&alias))["Records"].get(API).is_none());
    assert!(!released.is_owned(&alias), "an alias of somebody else's");
}

async fn writes_at_rest(desired: &Records, path: &Path) -> Vec<String> {
    let cpo = Process::cpo(&path.aws);
    cpo.present(desired).await;
    path.aws.clear_journal();
    for _ in 0..8 {
        sleep(Duration::from_secs(400)).await;
        cpo.forget(&desired.slot);
        cpo.present(desired).await;
    }
    let journal = path.aws.journal().into_iter();
    journal
        .map(|entry| entry.path)
        .filter(|call| call.contains("Change"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn names_in_upper_case_are_not_written_for_ever() {
    let path = Path::made().await;
    let target = dns_name(&path.endpoint).unwrap().to_owned();
    let upper_names = Records {
        slot: Slot::records(&scope(GUEST), ZONE, &["API.example.hypershift.local", APPS]),
        ..records(&target)
    };
    assert_eq!(writes_at_rest(&upper_names, &path).await, Vec::<String>::new(), "names");
}

#[tokio::test(start_paused = true)]
async fn target_in_upper_case_is_not_written_for_ever() {
    let path = Path::made().await;
    let target = dns_name(&path.endpoint).unwrap().to_owned();
    let upper_target = records(&target.to_uppercase());
    assert_eq!(
        writes_at_rest(&upper_target, &path).await,
        Vec::<String>::new(),
        "target"
    );
}

#[test]
fn other_names_of_records_are_another_slot() {
    let one = Slot::records(&scope(GUEST), ZONE, &["a,b.example"]);
    let two = Slot::records(&scope(GUEST), ZONE, &["a", "b.example"]);
    assert_ne!(one, two);
    let none = Slot::records(&scope(GUEST), ZONE, &[]);
    assert_eq!(none.record_names().count(), 0);
}
