//! What identities may do in the simulated Azure, and whose tokens were asked for.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::CapzEnv;

/// A client that has asked for a token, in which tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct TokenRequest {
    /// The tenant, as the request has it.
    pub tenant: String,
    /// The client, as the request has it.
    pub client_id: String,
}

impl TokenRequest {
    /// A request of this client in this tenant.
    pub fn new(tenant: &str, client_id: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            client_id: client_id.to_owned(),
        }
    }
}

impl CapzEnv {
    /// Takes these actions from the identity of this client id; all identities have whatever else they had at first.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn deny(&self, client: &str, denied: &[&str]) -> Result<()> {
        let mut roles = self.roles.clone();
        for role in roles.iter_mut().filter(|role| role["object_id"] == client) {
            if let Some(actions) = role["actions"].as_array_mut() {
                actions.retain(|action| !denied.iter().any(|one| action == one));
            }
        }
        self.assign(roles).await
    }

    /// Gives all identities what they had at first.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn grant_all(&self) -> Result<()> {
        self.assign(self.roles.clone()).await
    }

    async fn assign(&self, roles: Vec<Value>) -> Result<()> {
        let roles = Value::from(roles);
        let answer = self.control().send(reqwest::Method::PUT, "/roles", &[], Some(&roles));
        answer.await.map(drop)
    }

    /// All that has asked for tokens since the start, the stand-ins of controllers included.
    ///
    /// # Errors
    ///
    /// The simulator does not answer.
    pub async fn token_requests(&self) -> Result<BTreeSet<TokenRequest>> {
        self.control().get("/tokens", &[]).await
    }
}
