//! What each role runs, a folder for each platform and in it a file for each role: the rights that it needs, its
//! controllers, its dry run. The names of a role are in `api/role`.

pub mod aws;
pub mod azure;
mod foundation;
mod shown;

use anyhow::{Context as _, ensure};
use kube::Api;
use kube::core::ApiResource;
use uuid::Uuid;

use crate::api::{LedRole, Platform, Role};
use crate::config::Config;
use crate::controllers::context::Context;
use crate::controllers::custom_resource::store::MOST;
use crate::controllers::driver::Driver;
use crate::controllers::reconciler::{CustomResourceReconciler, ServedResource};
use crate::http::ReadinessItem;
use crate::preview::{Object, RolePlan};
use crate::runtime::call::within;
use crate::runtime::watch::Scope;

use aws::AwsConnection;
use azure::AzureConnection;
pub use foundation::{Foundation, excluded};

/// How the cloud of a platform is reached.
#[derive(Clone)]
pub enum CloudConnection {
    /// Azure.
    Azure(AzureConnection),
    /// AWS.
    Aws(AwsConnection),
}

/// The same, with what a role has learned before it leads.
pub enum PreparedCloud {
    /// Azure.
    Azure(AzureConnection, azure::Prepared),
    /// AWS.
    Aws(AwsConnection, aws::Prepared),
}

/// What the controllers of a role work with.
pub struct Work<'a> {
    /// What they are built on.
    pub foundation: Foundation<'a>,
    /// Their cloud.
    pub cloud: PreparedCloud,
    /// What they watch, and until when.
    pub scope: Scope,
}

/// The resource that a role reconciles on a platform.
pub fn resource(LedRole { role, platform }: LedRole) -> ApiResource {
    match platform {
        Platform::Azure => azure::resource(role),
        Platform::Aws => aws::resource(),
    }
}

const RIGHTS_TO_SUM_UP: &str = include_str!("../../charts/hyperlink/files/role-ho-aggregate.yaml");

/// The shipped files with the rights that the role needs.
pub fn rights(role: Role, platform: Platform, config: &Config) -> Vec<&'static str> {
    let mut files = match platform {
        Platform::Azure => azure::rights(role, config),
        Platform::Aws => aws::rights(role, config),
    };
    if role == Role::Ho && config.aggregate_conditions {
        files.push(RIGHTS_TO_SUM_UP);
    }
    files
}

/// A shipped file with rights that the role needs in one namespace alone, and that namespace.
pub fn local_rights(role: Role, config: &Config) -> Option<(&'static str, &str)> {
    azure::capz::local_rights(config).filter(|_| role == Role::Capz)
}

/// Waits for what the role has to know before it leads, and reports what it waits for.
pub async fn prepare(role: Role, cloud: CloudConnection, kube: &kube::Client, item: &ReadinessItem) -> PreparedCloud {
    match cloud {
        CloudConnection::Azure(azure) => PreparedCloud::Azure(azure, azure::prepare(role, kube, item).await),
        CloudConnection::Aws(aws) => {
            let prepared = aws::prepare(role, &aws, kube, item).await;
            PreparedCloud::Aws(aws, prepared)
        }
    }
}

/// Runs the role's controllers until the scope's end.
///
/// # Errors
/// A setting of the role is missing.
pub async fn run(work: Work<'_>) -> anyhow::Result<()> {
    let Work {
        foundation,
        cloud,
        scope,
    } = work;
    match cloud {
        PreparedCloud::Azure(azure, prepared) => azure::run(&foundation, &azure, prepared, scope).await,
        PreparedCloud::Aws(aws, prepared) => aws::run(&foundation, &aws, prepared, scope).await,
    }
}

/// What a reconcile of this object by the role would do; a foundation that writes nothing is enough.
///
/// # Errors
/// A setting is missing, there is no such object, or the API server does not answer.
pub async fn dry_run(
    foundation: &Foundation<'_>,
    cloud: &CloudConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    match cloud {
        CloudConnection::Azure(azure) => azure::dry_run(foundation, azure, object).await,
        CloudConnection::Aws(aws) => aws::dry_run(foundation, aws, object).await,
    }
}

/// The custom resource of this name, if it is served. Those in `known` are known afterwards, itself among them.
async fn custom_resource<R: ServedResource>(cx: &Context<R>, object: &Object, known: &Api<R>) -> anyhow::Result<R> {
    let Object { namespace, name } = object;
    let api: Api<R> = Api::namespaced(cx.runtime.kube.clone(), namespace);
    let found = within(api.get_opt(name)).await?;
    let cr = found.with_context(|| format!("there is no {} {namespace}/{name}", R::kind(&())))?;
    cx.resources.read(known).await?;
    ensure!(
        cr.meta().deletion_timestamp.is_some() || cx.resources.serves(&cr),
        "{namespace}/{name} is not served: only the {MOST} oldest of a namespace are"
    );
    Ok(cr)
}

/// What a reconcile by this controller would do.
async fn dry_run_of<C: CustomResourceReconciler>(
    controller: &C,
    cx: &Context<C::Object>,
    cr: &C::Object,
) -> anyhow::Result<RolePlan> {
    let inputs = controller.inputs(cx, cr).await;
    let (inputs, _) = inputs.with_context(|| format!("role {}", cx.role))?;
    let preview = Driver::new(controller, cx, Uuid::new_v4(), &inputs).dry_run(cr).await;
    Ok(RolePlan::of(cr, &preview)?)
}
