//! A foreign record beside the cluster's own one.

use std::time::Duration;

use hyperlink::aws::kinds::vpc_endpoint::dns_name;
use hyperlink::engine::plan::ensure_present;
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{API, APPS, records};
use crate::life::Path;
use crate::sim::Process;
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
