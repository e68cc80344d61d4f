//! What each role runs, a file each: the rights that it needs, its controllers, its dry run. A new role is its file, which
//! a `mod` names, and a line in the registry below. Its names are in `api/role`.

mod cpo;
mod foundation;
mod ho;
mod management_cluster;
mod shown;

use anyhow::{Context as _, ensure};
use kube::Api;
use kube::core::ApiResource;
use uuid::Uuid;

use crate::api::Role;
use crate::config::Config;
use crate::controllers::azure::Preview;
use crate::controllers::context::Context;
use crate::controllers::custom_resource::store::MOST;
use crate::controllers::driver::Driver;
use crate::controllers::preview;
use crate::controllers::reconciler::{CloudOf, CustomResourceReconciler, ServedResource};
use crate::http::ReadinessItem;
use crate::preview::Object;
use crate::runtime::call::within;
use crate::runtime::watch::Scope;

pub use foundation::{Foundation, excluded};

/// What a role has learned before it leads.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The UID of the management cluster; empty for a role that does not need it.
    management_cluster: String,
}

/// What the controllers of a role work with.
pub struct Work<'a> {
    /// What they are built on.
    pub foundation: Foundation<'a>,
    /// What the role has learned.
    pub prepared: Prepared,
    /// What they watch, and until when.
    pub scope: Scope,
}

macro_rules! roles {
    ($($role:ident => $file:ident,)+) => {
        /// The custom resource that the role reconciles.
        pub fn resource(role: Role) -> ApiResource {
            match role {
                $(Role::$role => $file::resource(),)+
            }
        }

        /// The shipped files with the rights that the role needs.
        pub fn rights(role: Role, config: &Config) -> Vec<&'static str> {
            match role {
                $(Role::$role => $file::rights(config),)+
            }
        }

        /// Waits for what the role has to know before it leads, and reports what it waits for.
        pub async fn prepare(role: Role, kube: &kube::Client, item: &ReadinessItem) -> Prepared {
            match role {
                $(Role::$role => $file::prepare(kube, item).await,)+
            }
        }

        /// Runs the role's controllers until the scope's end.
        ///
        /// # Errors
        /// A setting of the role is missing.
        pub async fn run(role: Role, work: Work<'_>) -> anyhow::Result<()> {
            match role {
                $(Role::$role => $file::run(work).await,)+
            }
        }

        /// What a reconcile of this object by the role would do; a foundation that writes nothing is enough.
        ///
        /// # Errors
        /// A setting is missing, there is no such object, or the API server does not answer.
        pub async fn dry_run(foundation: &Foundation<'_>, object: &Object) -> anyhow::Result<Preview> {
            match foundation.role {
                $(Role::$role => $file::dry_run(foundation, object).await,)+
            }
        }
    };
}

roles! {
    Ho => ho,
    Cpo => cpo,
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
) -> anyhow::Result<preview::Preview<CloudOf<C>>> {
    let inputs = controller.inputs(cx, cr).await;
    let (inputs, _) = inputs.with_context(|| format!("role {}", cx.role))?;
    Ok(Driver::new(controller, cx, Uuid::new_v4(), &inputs).dry_run(cr).await)
}
