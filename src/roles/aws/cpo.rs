//! Role `cpo` on AWS: endpoints, their security groups, and the records that lead to them.

use std::sync::Arc;

use kube::Api;

use super::{AwsConnection, Prepared, context};
use crate::controllers::vpc_endpoint::{self, VpcEndpointController};
use crate::metrics::Controller as Label;
use crate::preview::{Object, RolePlan};
use crate::roles::{Foundation, custom_resource, dry_run_of};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, pages};

pub(super) const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-cpo-aws.yaml");

pub(super) async fn run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    let cx = Arc::new(context(foundation, aws, &prepared.account));
    let runner = Runner::new(controller(aws), Arc::clone(&cx), Label::VpcEndpoint);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let planes = scope.events(&cx.runtime.kube, pages());
    vpc_endpoint::watch::run(runner, scope, planes).await;
    Ok(())
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let cx = context(foundation, aws, &prepared.account);
    let of_namespace = Api::namespaced(cx.runtime.kube.clone(), &object.namespace);
    let cr = custom_resource(&cx, object, &of_namespace).await?;
    dry_run_of(&controller(aws), &cx, &cr).await
}

fn controller(aws: &AwsConnection) -> VpcEndpointController {
    VpcEndpointController {
        region: aws.settings.endpoints.region().clone(),
    }
}
