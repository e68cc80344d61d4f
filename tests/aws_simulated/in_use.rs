//! A security group that cannot be deleted yet, and what others do to it meanwhile.

use std::time::Duration;

use hyperlink::engine::plan::{Outcome, ensure_absent};
use serde_json::json;

use crate::desired::{security_group, vpc_endpoint};
use crate::life::Path;
use crate::lost::groups;

/// A path without its endpoint, whose group was refused to be deleted once.
async fn refused_once() -> Path {
    let path = Path::made().await;
    let endpoint = vpc_endpoint(path.service_name(), "", &[]);
    path.cpo.absent(&endpoint).await;
    path.aws.clear_journal();
    let group = security_group();
    let (_, outcome) = path
        .cpo
        .reconcile(&group, |observed| ensure_absent(&group, observed))
        .await;
    let refused = matches!(&outcome, Outcome::Failed(error) if error.code == "DependencyViolation");
    assert!(refused, "{outcome:?}");
    path
}

#[tokio::test(start_paused = true)]
async fn refused_deletion_is_repeated_without_a_read() {
    let path = refused_once().await;
    path.cpo.absent(&security_group()).await;
    let reads = path.aws.actions();
    let reads = reads
        .iter()
        .filter(|call| call.contains("DescribeSecurityGroups"))
        .count();
    assert_eq!((reads, groups(&path.aws).len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn group_that_others_delete_meanwhile_is_gone() {
    let path = refused_once().await;
    let (now, group) = (path.aws.now(), groups(&path.aws).remove(0));
    path.aws.aws().delete_resource(now, group["id"].as_str().unwrap());
    path.cpo.released(&security_group(), None).await;
    assert!(groups(&path.aws).is_empty());
}

/// HyperShift's own controller deletes it and creates it again.
#[tokio::test(start_paused = true)]
async fn group_that_others_create_again_meanwhile_is_deleted() {
    let path = refused_once().await;
    let (now, mut group) = (path.aws.now(), groups(&path.aws).remove(0));
    let id = group["id"].as_str().unwrap().to_owned();
    path.aws.aws().delete_resource(now, &id);
    let (start, _) = id.rsplit_once('/').unwrap();
    let other = format!("{start}/sg-0aaaaaaaaaaaaaaaa");
    group["id"] = json!(other);
    path.aws.aws().put_resource(now, &other, group).unwrap();
    path.cpo.absent(&security_group()).await;
    assert!(groups(&path.aws).is_empty());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(path.aws.elapsed() < 900, "{} s", path.aws.elapsed());
}
