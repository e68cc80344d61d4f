//! The control-plane-operator's observer on AWS: it creates or updates the custom resource whenever the Service
//! changes.

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::{Clients, UNDIVIDED};
use crate::aws_cluster::{KUBE_API_SERVER, load_balancer_name};
use crate::go_controllers::cpo::{MANAGER, ROUTER};
use crate::go_controllers::object::{is_deleting, update};
use crate::go_controllers::queue::GoReconciler;
use crate::go_controllers::{Next, queue};

pub(crate) struct Observer {
    clients: Clients,
}

impl Observer {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients }
    }

    fn services(&self) -> Api<Service> {
        let namespace = self.clients.cluster.control_plane_namespace();
        Api::namespaced(self.clients.kube.clone(), &namespace)
    }

    pub(crate) async fn run(&self) -> Result<()> {
        let changes = queue::changes(self.services());
        let events = changes.filter(|service| {
            let observed = [ROUTER, KUBE_API_SERVER].contains(&service.name_any().as_str());
            async move { observed }
        });
        queue::work(queue::names(events), UNDIVIDED, self).await
    }
}

impl GoReconciler for Observer {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let Some(service) = self.services().get_opt(name).await? else {
            return Ok(Next::Event);
        };
        let control_plane = self.clients.control_plane().await?;
        if is_deleting(&control_plane) {
            return Ok(Next::Event);
        }
        let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()?.first()?.hostname.clone());
        let Some(host_name) = ingress else {
            return Ok(Next::Event);
        };
        self.create_or_update(name, &control_plane, &host_name).await?;
        Ok(Next::Event)
    }
}

impl Observer {
    async fn create_or_update(&self, name: &str, control_plane: &DynamicObject, host_name: &str) -> Result<()> {
        let api = self.clients.custom_resources();
        let found = api.get_opt(name).await?;
        let mut whole = found.clone().unwrap_or_else(|| {
            let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "AWSEndpointService");
            DynamicObject::new(name, &ApiResource::from_gvk(&kind)).data(json!({"spec": {}}))
        });
        whole.data["spec"]["networkLoadBalancerName"] = load_balancer_name(host_name).into();
        let tags = &control_plane.data["spec"]["platform"]["aws"]["resourceTags"];
        if tags.is_array() {
            whole.data["spec"]["resourceTags"] = tags.clone();
        }
        match found {
            None => {
                let params = PostParams {
                    field_manager: Some(MANAGER.to_owned()),
                    ..PostParams::default()
                };
                api.create(&params, &whole).await.map(drop)?;
            }
            Some(found) if found == whole => {}
            Some(_) => drop(update(&api, &whole, MANAGER).await?),
        }
        Ok(())
    }
}
