//! HyperShift's operator on AWS: endpoint service, principals, and the subnets of the workers.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

use super::{Clients, Parameters, UNDIVIDED, accept, publish, status_of};
use crate::aws_env::INFRASTRUCTURE;
use crate::aws_sim::{all_inner, inner};
use crate::go_controllers::ho::MANAGER;
use crate::go_controllers::object::{CLUSTER_ANNOTATION, has_finalizer, is_deleting, text, update, update_finalizer};
use crate::go_controllers::queue::GoReconciler;
use crate::go_controllers::{Next, queue};
use crate::hosted_cluster::NAMESPACE;

const FINALIZER: &str = "hypershift.openshift.io/hypershift-operator-finalizer";
const AVAILABLE: &str = "AWSEndpointServiceAvailable";
/// How long a deletion waits for connections.
const CONNECTED: Next = Next::After(Duration::from_secs(5));
/// The states of connections that are rejected, in lower case.
const ACTIONABLE: [&str; 3] = ["pendingacceptance", "pending", "available"];

pub(crate) struct Operator {
    clients: Clients,
}

impl Operator {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients }
    }

    /// Reconciles on changes of custom resources and NodePools.
    pub(crate) async fn run(&self) -> Result<()> {
        let own = queue::changes(self.clients.custom_resources()).map(|cr| cr.name_any());
        let pools = self.clients.cluster.api(&self.clients.kube, "NodePool", NAMESPACE);
        let list = self.clients.custom_resources();
        let of_pools = queue::changes(pools).then(move |_| {
            let list = list.clone();
            async move {
                let all = list.list(&ListParams::default()).await;
                all.map_or_else(|_| Vec::new(), |all| all.iter().map(ResourceExt::name_any).collect())
            }
        });
        let events = stream::select(own, of_pools.flat_map(stream::iter)).boxed();
        queue::work(events, UNDIVIDED, self).await
    }
}

impl GoReconciler for Operator {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let api = self.clients.custom_resources();
        let Some(cr) = api.get_opt(name).await? else {
            return Ok(Next::Event);
        };
        if is_deleting(&cr) {
            if has_finalizer(&cr, FINALIZER) {
                if !self.delete(&cr).await? {
                    return Ok(CONNECTED);
                }
                update_finalizer(&api, &cr, FINALIZER, false, MANAGER).await?;
            }
            return Ok(Next::Event);
        }
        if !has_finalizer(&cr, FINALIZER) {
            update_finalizer(&api, &cr, FINALIZER, true, MANAGER).await?;
            return Ok(Next::Event);
        }
        let cr = self.annotated(&api, cr).await?;
        let mut status = status_of(&cr);
        let outcome = self.service(&cr, &mut status).await;
        publish(&api, &cr, AVAILABLE, status, outcome, MANAGER).await?;
        Ok(self.clients.drift())
    }
}

impl Operator {
    /// Has the annotation and the subnets on the custom resource.
    async fn annotated(&self, api: &Api<DynamicObject>, cr: DynamicObject) -> Result<DynamicObject> {
        let control_plane = self.clients.control_plane().await?;
        let cluster = control_plane.annotations().get(CLUSTER_ANNOTATION);
        let cluster = cluster.context("no annotation")?.clone();
        let mut whole = cr.clone();
        whole.annotations_mut().insert(CLUSTER_ANNOTATION.to_owned(), cluster);
        whole.data["spec"]["subnetIDs"] = self.subnets().await?.into();
        if whole == cr {
            return Ok(cr);
        }
        update(api, &whole, MANAGER).await
    }

    async fn subnets(&self) -> Result<Vec<String>> {
        let pools = self.clients.cluster.api(&self.clients.kube, "NodePool", NAMESPACE);
        let pools = pools.list(&ListParams::default()).await?;
        let of_cluster = pools
            .iter()
            .filter(|pool| text(pool, "/spec/clusterName") == self.clients.cluster.name());
        let subnets: BTreeSet<_> = of_cluster
            .map(|pool| text(pool, "/spec/platform/aws/subnet/id"))
            .collect();
        Ok(subnets.into_iter().map(str::to_owned).collect())
    }

    async fn service(&self, cr: &DynamicObject, status: &mut Value) -> Result<()> {
        let recorded = text(cr, "/status/endpointServiceName");
        let known = match recorded {
            "" => None,
            name => {
                let parameters = Parameters::default().with_filters(&[("service-name", name)]);
                let action = "DescribeVpcEndpointServiceConfigurations";
                let found = self.clients.accepted(action, &parameters).await?;
                found.text("serviceId").map(str::to_owned)
            }
        };
        let (id, name) = match known {
            Some(id) => (id, recorded.to_owned()),
            None => self.create(cr).await?,
        };
        status["endpointServiceName"] = name.into();
        self.allow(&id).await
    }

    /// Creates the endpoint service, or adopts that of the load balancer; returns id and name.
    async fn create(&self, cr: &DynamicObject) -> Result<(String, String)> {
        let name = text(cr, "/spec/networkLoadBalancerName");
        let parameters = [("Names.member.1", name)];
        let found = self.clients.aws.load_balancing("DescribeLoadBalancers", &parameters);
        let found = accept(found.await?)?;
        ensure!(
            found.text("Code") == Some("active"),
            "load balancer {name} is not active"
        );
        let arn = found.text("LoadBalancerArn").context("no ARN")?;
        let tag = format!("kubernetes.io/cluster/{INFRASTRUCTURE}");
        let parameters = Parameters::default()
            .with_tags("vpc-endpoint-service", cr, &[(&tag, "owned")])
            .with("NetworkLoadBalancerArn.1", arn)
            .with("AcceptanceRequired", "false");
        let answer = self
            .clients
            .ec2("CreateVpcEndpointServiceConfiguration", &parameters)
            .await?;
        if answer.code.as_deref() == Some("InvalidParameter") {
            return self.adopt(arn).await;
        }
        let answer = accept(answer)?;
        id_and_name(&answer.body)
    }

    /// The endpoint service that has the load balancer.
    async fn adopt(&self, balancer: &str) -> Result<(String, String)> {
        let all = Parameters::default();
        let all = self
            .clients
            .accepted("DescribeVpcEndpointServiceConfigurations", &all)
            .await?;
        let mut each = all.body.split("<serviceType>");
        id_and_name(each.find(|one| one.contains(balancer)).context("no service to adopt")?)
    }

    /// Lets the role and the additional principals connect, and nobody else.
    async fn allow(&self, id: &str) -> Result<()> {
        let control_plane = self.clients.control_plane().await?;
        let role = text(&control_plane, "/spec/platform/aws/rolesRef/controlPlaneOperatorARN");
        let (account, path) = role.split_once(":role/").context("no role")?;
        let role = format!("{account}:role/{}", path.rsplit('/').next().unwrap_or(path));
        let parameters = Parameters::default().with("ServiceId", id);
        let found = self
            .clients
            .accepted("DescribeVpcEndpointServicePermissions", &parameters)
            .await?;
        let allowed = all_inner(&found.body, "principal");
        let additional = control_plane.data["spec"]["platform"]["aws"]["additionalAllowedPrincipals"].as_array();
        let additional = additional.into_iter().flatten().filter_map(Value::as_str);
        let desired: BTreeSet<&str> = additional.chain([role.as_str()]).collect();
        let allowed: BTreeSet<&str> = allowed.into_iter().collect();
        if allowed == desired {
            return Ok(());
        }
        let parameters = parameters
            .with_all("RemoveAllowedPrincipals", allowed.difference(&desired).copied())
            .with_all("AddAllowedPrincipals", desired.difference(&allowed).copied());
        let changed = self
            .clients
            .accepted("ModifyVpcEndpointServicePermissions", &parameters);
        changed.await.map(drop)
    }

    /// Deletes the endpoint service that the status names; whether it is gone.
    async fn delete(&self, cr: &DynamicObject) -> Result<bool> {
        let Some(id) = text(cr, "/status/endpointServiceName")
            .rsplit('.')
            .next()
            .filter(|id| !id.is_empty())
        else {
            return Ok(true);
        };
        let parameters = Parameters::default().with("ServiceId.1", id);
        let answer = self
            .clients
            .accepted("DeleteVpcEndpointServiceConfigurations", &parameters)
            .await?;
        match inner(&answer.body, "code") {
            None | Some("InvalidVpcEndpointService.NotFound") => Ok(true),
            Some("ExistingVpcEndpointConnections") => self.reject(id).await.map(|()| false),
            Some(code) => bail!("{code}"),
        }
    }

    async fn reject(&self, id: &str) -> Result<()> {
        let parameters = Parameters::default().with_filters(&[("service-id", id)]);
        let found = self
            .clients
            .accepted("DescribeVpcEndpointConnections", &parameters)
            .await?;
        let (ids, states) = (
            all_inner(&found.body, "vpcEndpointId"),
            all_inner(&found.body, "vpcEndpointState"),
        );
        let all = ids.into_iter().zip(states);
        let actionable = all.filter(|(_, state)| ACTIONABLE.contains(&state.to_lowercase().as_str()));
        let actionable: Vec<_> = actionable.map(|(id, _)| id).collect();
        if actionable.is_empty() {
            return Ok(());
        }
        let parameters = Parameters::default().with("ServiceId", id);
        let parameters = parameters.with_all("VpcEndpointId", actionable);
        self.clients
            .accepted("RejectVpcEndpointConnections", &parameters)
            .await
            .map(drop)
    }
}

fn id_and_name(service: &str) -> Result<(String, String)> {
    let part = |element: &str| inner(service, element).map(str::to_owned).context("no id");
    Ok((part("serviceId")?, part("serviceName")?))
}
