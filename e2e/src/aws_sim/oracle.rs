//! The simulator's control API, which reads and changes the simulated AWS without going through its services.

use anyhow::Result;
use jiff::Timestamp;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Identity;
use crate::control_api::ControlApi;
use crate::test_env::Reachable;

/// One call that reached AWS, as the journal has it.
#[derive(Clone, Debug, Deserialize)]
pub struct AwsCall {
    /// The call's number, which counts up by one.
    pub seq: u64,
    /// When the call arrived.
    pub time: Timestamp,
    /// Service and action: `/ec2/CreateVpcEndpoint`.
    pub path: String,
    /// The parameters, without secrets.
    pub query: String,
    /// ARN of the caller; empty if it is not known.
    pub principal: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// AWS's error code.
    #[serde(default)]
    pub code: Option<String>,
    /// Whether the call changed anything.
    pub changed: bool,
}

impl AwsCall {
    /// The action: `CreateVpcEndpoint`.
    pub fn action(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the call asks for a change, refused or not.
    pub fn is_write(&self) -> bool {
        const READS: [&str; 4] = ["Describe", "List", "Get", "Assume"];
        !READS.iter().any(|read| self.action().starts_with(read))
    }

    /// Whether the caller is this user, or a session of this role.
    pub fn is_of(&self, user: &Identity, role: &str) -> bool {
        let name = role.rsplit('/').next().unwrap_or(role);
        self.principal == user.arn() || self.principal.contains(&format!(":assumed-role/{name}/"))
    }

    /// Whether the caller's policies do not allow the call, or AWS does not know the caller.
    pub fn is_denied(&self) -> bool {
        const CODES: [&str; 5] = [
            "AccessDenied",
            "AuthFailure",
            "InvalidClientTokenId",
            "SignatureDoesNotMatch",
            "UnauthorizedOperation",
        ];
        self.code.as_deref().is_some_and(|code| CODES.contains(&code))
    }
}

/// Reads and changes AWS behind everybody's back, and knows every call.
#[derive(Clone, Debug)]
pub struct AwsOracle(ControlApi);

impl AwsOracle {
    pub(super) fn new(url: String) -> Self {
        Self(ControlApi::new(url))
    }

    /// Replaces everything that the simulator has.
    pub(super) async fn seed(&self, seed: &Value) -> Result<()> {
        self.send(Method::PUT, "/seed", Some(seed)).await
    }

    /// The URL of the simulator's control API.
    pub fn control_url(&self) -> &str {
        self.0.url()
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<()> {
        self.0.send(method, path, &[], body).await.map(drop)
    }

    /// Whether a worker in that VPC reaches a Service under that name, at port 443.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn reachable(&self, vpc: &str, name: &str) -> Result<Reachable> {
        self.reachable_at(vpc, name, 443).await
    }

    /// Whether a worker in that VPC reaches a Service under that name, at that port.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn reachable_at(&self, vpc: &str, name: &str, port: u16) -> Result<Reachable> {
        let port = port.to_string();
        let query = [("vpc", vpc), ("name", name), ("port", &port)];
        self.0.get("/reachable", &query).await
    }

    /// All resources whose ARN begins with `prefix`, as the simulator has them.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn resources(&self, prefix: &str) -> Result<Vec<Value>> {
        self.0.get("/resources", &[("prefix", prefix)]).await
    }

    /// All resources of one kind, as ARNs name it: `vpc-endpoint-service`, `loadbalancer`, …
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn resources_of(&self, kind: &str) -> Result<Vec<Value>> {
        let infix = format!(":{kind}/");
        let mut found = self.resources("arn:").await?;
        found.retain(|body| body["id"].as_str().is_some_and(|arn| arn.contains(&infix)));
        Ok(found)
    }

    /// Creates or replaces a resource.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn drift_put(&self, arn: &str, resource: &Value) -> Result<()> {
        self.send(Method::PUT, &format!("/resources/{arn}"), Some(resource))
            .await
    }

    /// Deletes a resource, whatever uses it.
    ///
    /// # Errors
    ///
    /// There is none of that ARN.
    pub async fn drift_delete(&self, arn: &str) -> Result<()> {
        self.send(Method::DELETE, &format!("/resources/{arn}"), None).await
    }

    /// The calls after the one numbered `since`.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn journal(&self, since: u64) -> Result<Vec<AwsCall>> {
        self.0.get("/journal", &[("since", &since.to_string())]).await
    }

    /// The number of the last call so far; 0 if there is none.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn last_call(&self) -> Result<u64> {
        Ok(self.journal(0).await?.last().map_or(0, |call| call.seq))
    }

    /// Sets the fault rules.
    ///
    /// # Errors
    ///
    /// The simulator refuses them.
    pub async fn faults(&self, rules: &Value) -> Result<()> {
        self.send(Method::PUT, "/faults", Some(rules)).await
    }

    /// Stops the simulated time, or lets it run again.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn freeze(&self, frozen: bool) -> Result<()> {
        self.send(Method::POST, "/clock", Some(&json!({"freeze": frozen})))
            .await
    }

    /// Advances the simulated time by so many seconds.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn advance(&self, seconds: f64) -> Result<()> {
        self.send(Method::POST, "/clock", Some(&json!({"advance_s": seconds})))
            .await
    }
}
