//! Role `cpo` on AWS: the custom resources of a control plane, and endpoints with security groups and records.

use std::sync::Arc;

use kube::Api;

use super::{AwsConnection, Prepared, context};
use crate::config::Config;
use crate::controllers::vpc_endpoint::{self, VpcEndpointController};
use crate::metrics::{Controller as Label, QuotasOfAws};
use crate::observer;
use crate::preview::{Object, RolePlan};
use crate::roles::shown::{observed_object, show_objects};
use crate::roles::{Foundation, custom_resource, dry_run_of};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, pages, twice};
use crate::scopes_file::ScopesFile;

const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-cpo-aws.yaml");
const RIGHTS_OF_MANY: &str = include_str!("../../../charts/hyperlink/files/role-cpo-many-aws.yaml");

pub(super) fn rights(config: &Config) -> Vec<&'static str> {
    let mut files = vec![RIGHTS];
    if config.scope.namespace.is_none() {
        files.push(RIGHTS_OF_MANY);
    }
    files
}

pub(super) async fn run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    let cx = Arc::new(context(foundation, aws, &prepared.account));
    show_objects(&cx, observed_object);
    let counted = Arc::clone(&cx);
    let metrics = &cx.runtime.metrics;
    metrics.count_quotas_of_aws_with(move || QuotasOfAws {
        endpoints_per_vpc: counted.cloud.client.most_endpoints_of_a_vpc(),
        route53_requests_per_second: counted.cloud.client.route53_requests_per_second(),
    });
    let runner = Runner::new(controller(foundation.config, aws), Arc::clone(&cx), Label::VpcEndpoint);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let (planes, again) = twice(scope.events(&cx.runtime.kube, pages()));
    let region = aws.settings.endpoints.region().clone();
    tokio::join!(
        observer::aws::run(cx, region, scope.clone(), planes),
        vpc_endpoint::watch::run(runner, scope, again)
    );
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
    dry_run_of(&controller(foundation.config, aws), &cx, &cr).await
}

fn controller(config: &Config, aws: &AwsConnection) -> VpcEndpointController {
    VpcEndpointController {
        region: aws.settings.endpoints.region().clone(),
        allowed: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
        serves_many: config.scope.namespace.is_none(),
    }
}
