//! Calls to the simulator's control API, as the cloud controller needs them.

use http::Method;
use serde_json::{Value, json};
use simulator::cloud_controller::{ControlClient, ControlError, query};

/// The control API at one address.
pub(crate) struct Control(ControlClient);

impl Control {
    pub(crate) fn new(base: &str) -> Self {
        Self(ControlClient::new(base))
    }

    /// All resources whose id starts like this.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Value>, ControlError> {
        self.0.list(prefix).await
    }

    /// The resource of this id and nothing below it.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Value>, ControlError> {
        let is_it = |resource: &Value| {
            resource["id"]
                .as_str()
                .is_some_and(|found| found.eq_ignore_ascii_case(id))
        };
        Ok(self.list(id).await?.into_iter().find(is_it))
    }

    /// Creates or replaces a resource.
    pub(crate) async fn put(&self, id: &str, resource: &Value) -> Result<(), ControlError> {
        self.0
            .call(Method::PUT, &format!("/resources{id}"), Some(resource))
            .await
            .map(drop)
    }

    /// Sets what stands behind a frontend; nothing when `name` is absent.
    pub(crate) async fn stand_behind(
        &self,
        load_balancer: &str,
        frontend: &str,
        name: Option<&str>,
    ) -> Result<(), ControlError> {
        let Some(name) = name else {
            let path = format!(
                "/services?{}",
                query(&[("load_balancer", load_balancer), ("frontend", frontend)])
            );
            return self.0.call(Method::DELETE, &path, None).await.map(drop);
        };
        let body = json!({"load_balancer": load_balancer, "frontend": frontend, "name": name});
        self.0.call(Method::PUT, "/services", Some(&body)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::{Options, Server, cloud_controller::frontend};

    const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

    async fn seeded() -> (Server, Control) {
        let server = Server::start(Options::default()).await.unwrap();
        let control = Control::new(&server.control);
        let seed = json!({
            "tenants": [{"id": "t"}],
            "subscriptions": [{"id": "s", "tenant": "t"}],
            "resources": [
                {"id": "/subscriptions/s/resourceGroups/rg", "location": "westus2"},
                {"id": format!("{NETWORK}/virtualNetworks/v"), "location": "westus2",
                    "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
                {"id": format!("{NETWORK}/virtualNetworks/v/subnets/lb"), "properties": {"addressPrefix": "10.0.0.0/29"}},
                {"id": format!("{NETWORK}/loadBalancers/ilb"), "location": "westus2", "sku": {"name": "Standard"}, "properties": {}},
            ],
        });
        control.0.call(Method::PUT, "/seed", Some(&seed)).await.unwrap();
        (server, control)
    }

    #[tokio::test]
    async fn frontends_get_different_addresses_and_keep_them() {
        let (_server, control) = seeded().await;
        let (id, subnet) = (
            format!("{NETWORK}/loadBalancers/ilb"),
            format!("{NETWORK}/virtualNetworks/v/subnets/lb"),
        );
        for name in ["aone", "atwo"] {
            let mut balancer = control.get(&id.to_lowercase()).await.unwrap().unwrap();
            assert!(frontend::add(&mut balancer, name, &subnet));
            control.put(&id, &balancer).await.unwrap();
        }
        let mut balancer = control.get(&id).await.unwrap().unwrap();
        assert_eq!(frontend::address(&balancer, "aone"), Some("10.0.0.4"));
        assert_eq!(frontend::address(&balancer, "atwo"), Some("10.0.0.5"));
        assert!(frontend::remove(&mut balancer, "aone"));
        control.put(&id, &balancer).await.unwrap();
        let balancer = control.get(&id).await.unwrap().unwrap();
        assert_eq!(frontend::address(&balancer, "aone"), None);
        assert_eq!(frontend::address(&balancer, "atwo"), Some("10.0.0.5"));
    }

    #[tokio::test]
    async fn service_stands_behind_its_frontend_until_taken_away() {
        let (server, control) = seeded().await;
        let behind = || {
            server.with_azure(|azure, _| {
                azure
                    .services()
                    .iter()
                    .map(|service| service.name.clone())
                    .collect::<Vec<_>>()
            })
        };
        control.stand_behind("/lb", "aone", Some("ns/one")).await.unwrap();
        control.stand_behind("/LB", "AONE", Some("ns/two")).await.unwrap();
        assert_eq!(behind(), ["ns/two"]);
        control.stand_behind("/lb", "aone", None).await.unwrap();
        assert!(behind().is_empty());
    }

    #[tokio::test]
    async fn refusal_and_silence_are_distinguished() {
        let (server, control) = seeded().await;
        let refused = control.put("/nonsense", &json!({})).await.unwrap_err();
        assert!(
            matches!(refused, ControlError::Refused(StatusCode::BAD_REQUEST, _)),
            "{refused}"
        );
        server.stop().await.unwrap();
        assert!(matches!(
            control.get("/x").await.unwrap_err(),
            ControlError::Unreachable(_)
        ));
    }
}
