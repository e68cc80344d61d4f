//! ARM as the Go controllers call it: they send every write unconditionally and wait until it has ended.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::test_env::{Azure, Credential};
use crate::wait::patient;

/// The api-versions that HyperShift's SDK packages use.
const NETWORK: &str = "2023-11-01";
const PRIVATE_DNS: &str = "2024-06-01";

/// How often the SDK polls where Azure sends no Retry-After.
const POLL: Duration = Duration::from_secs(30);
/// HyperShift's constant `PollTimeout`.
const POLL_TIMEOUT: Duration = Duration::from_mins(5);
/// The control-plane-operator's `azureAPITimeout`, for one call with its retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How many times the SDK repeats a call that was answered with a status of [`RETRIED`].
const RETRIES: u32 = 3;
const RETRIED: [u16; 6] = [408, 429, 500, 502, 503, 504];
/// What the SDK waits before a retry where Azure sends no Retry-After; it doubles each time.
const RETRY: Duration = Duration::from_millis(800);
/// The line between the parts of a refusal's text.
const SEPARATOR: &str = "--------------------------------------------------------------------------------";

/// ARM's refusal of a call.
#[derive(Debug)]
pub struct Refused {
    /// Method and URL, without the query.
    pub request: String,
    /// The answer's HTTP status.
    pub status: u16,
    /// ARM's error code, or empty.
    pub code: String,
    /// The answer's body.
    pub body: Value,
    /// The time that Azure asks to wait.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            request,
            status,
            code,
            body,
            ..
        } = self;
        let reason = http::StatusCode::from_u16(*status).ok();
        let reason = reason.and_then(|status| status.canonical_reason()).unwrap_or_default();
        writeln!(
            formatter,
            "{request}\n{SEPARATOR}\nRESPONSE {status}: {status} {reason}"
        )?;
        match code.as_str() {
            "" => writeln!(formatter, "ERROR CODE UNAVAILABLE")?,
            code => writeln!(formatter, "ERROR CODE: {code}")?,
        }
        write!(formatter, "{SEPARATOR}\n{body:#}\n{SEPARATOR}")
    }
}

impl std::error::Error for Refused {}

/// Where ARM and the issuer of its tokens are.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// Base URL of ARM.
    pub arm: &'a str,
    /// Base URL of the token issuer.
    pub authority: &'a str,
    /// Audience of the tokens.
    pub audience: &'a str,
    /// Certificate authority of both.
    pub ca_file: &'a Path,
    /// Tenant of the identity.
    pub tenant: &'a str,
}

/// ARM with the token of one identity.
#[derive(Clone, Debug)]
pub struct Arm {
    http: reqwest::Client,
    base: String,
    token: String,
    /// Divides the SDK's and HyperShift's own times; it does not change Azure's.
    speed: u32,
}

impl Arm {
    /// Requests a token, which is valid for longer than any test.
    ///
    /// # Errors
    ///
    /// The token issuer refuses.
    pub async fn connect(azure: &Azure, credential: &Credential, speed: u32) -> Result<Self> {
        let ca_file = azure.ca_file.as_ref().context("a simulator with its CA")?;
        let endpoint = Endpoint {
            arm: &azure.arm,
            authority: &azure.authority,
            audience: &azure.audience,
            ca_file,
            tenant: &azure.tenant,
        };
        Self::connect_to(&endpoint, credential, speed).await
    }

    /// Like [`Arm::connect`], where there is no environment for HyperShift.
    ///
    /// # Errors
    ///
    /// The token issuer refuses.
    pub async fn connect_to(endpoint: &Endpoint<'_>, credential: &Credential, speed: u32) -> Result<Self> {
        let ca = reqwest::Certificate::from_pem(&std::fs::read(endpoint.ca_file)?)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([ca])
            .user_agent("azsdk-go-hypershift-cpo")
            .build()?;
        let mut form = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("scope", format!("{}/.default", endpoint.audience)),
        ];
        match credential {
            Credential::SecretFile { path } => {
                let file: Value = serde_json::from_slice(&std::fs::read(path)?)?;
                let field = |name: &str| file[name].as_str().map(str::to_owned).context("a credentials file");
                form.extend([
                    ("client_id", field("clientId")?),
                    ("client_secret", field("clientSecret")?),
                ]);
            }
            Credential::WorkloadIdentity { client, token_file, .. } => form.extend([
                ("client_id", client.clone()),
                ("client_assertion", std::fs::read_to_string(token_file)?),
                (
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned(),
                ),
            ]),
        }
        let url = format!("{}/{}/oauth2/v2.0/token", endpoint.authority, endpoint.tenant);
        let answer: Value = http.post(url).form(&form).send().await?.json().await?;
        let token = answer["access_token"].as_str();
        let token = token.with_context(|| format!("no token: {answer}"))?.to_owned();
        let base = endpoint.arm.to_owned();
        Ok(Self {
            http,
            base,
            token,
            speed,
        })
    }

    /// Reads a resource; none if it does not exist.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn get(&self, id: &str) -> Result<Option<Value>> {
        self.get_expanded(id, "").await
    }

    /// Reads a resource with an expansion, such as `&$expand=networkInterfaces`; none if it does not exist.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn get_expanded(&self, id: &str, expand: &str) -> Result<Option<Value>> {
        match self.send(Method::GET, &self.url(id, expand), None).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) if not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads all pages of a list.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut next = Some(self.url(path, ""));
        let mut all = Vec::new();
        while let Some(url) = next {
            let mut page = self.send(Method::GET, &url, None).await?.body;
            next = page["nextLink"].as_str().map(str::to_owned);
            if let Value::Array(items) = page["value"].take() {
                all.extend(items);
            }
        }
        Ok(all)
    }

    /// Writes a resource, and waits until its operation has ended, if there is one. Returns what ARM then holds, never
    /// expanded.
    ///
    /// # Errors
    ///
    /// ARM refuses, or the operation fails or does not end.
    pub async fn put(&self, id: &str, body: &Value) -> Result<Value> {
        let answer = self.send(Method::PUT, &self.url(id, ""), Some(body)).await?;
        if answer.poll.is_none() {
            return Ok(answer.body);
        }
        self.wait_for_operation(answer).await?;
        self.get(id)
            .await?
            .with_context(|| format!("{id} is not there after its PUT"))
    }

    /// Writes a resource by one request and does not wait for an operation.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn put_once(&self, id: &str, body: &Value) -> Result<()> {
        self.send(Method::PUT, &self.url(id, ""), Some(body)).await.map(drop)
    }

    /// Deletes a resource and waits until the operation has ended. A missing resource is a success.
    ///
    /// # Errors
    ///
    /// ARM refuses, or the operation fails or does not end.
    pub async fn delete(&self, id: &str) -> Result<()> {
        match self.send(Method::DELETE, &self.url(id, ""), None).await {
            Ok(answer) => self.wait_for_operation(answer).await,
            Err(error) if not_found(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn url(&self, id: &str, expand: &str) -> String {
        let private_dns = id.contains("/privateDnsZones/");
        let version = if private_dns { PRIVATE_DNS } else { NETWORK };
        format!("{}{}?api-version={version}{expand}", self.base, id.replace('*', "%2A"))
    }

    async fn wait_for_operation(&self, answer: Answer) -> Result<()> {
        let Some((url, has_status)) = answer.poll else {
            return Ok(());
        };
        let polling = async {
            let mut wait = answer.retry_after;
            loop {
                tokio::time::sleep(wait.unwrap_or(POLL / self.speed)).await;
                let response = self.send(Method::GET, &url, None).await?;
                match response.body["status"].as_str() {
                    Some("Succeeded") => return Ok(()),
                    Some("Failed" | "Canceled") => bail!("operation {url}: {}", response.body),
                    _ if !has_status && response.status != 202 => return Ok(()),
                    _ => wait = response.retry_after,
                }
            }
        };
        tokio::time::timeout(patient(POLL_TIMEOUT / self.speed), polling)
            .await
            .context("context deadline exceeded")?
    }

    /// One call with the SDK's retries.
    async fn send(&self, method: Method, url: &str, body: Option<&Value>) -> Result<Answer> {
        let answered = async {
            let mut tries = 0;
            loop {
                let answer = self.send_once(&method, url, body).await;
                let Some(refused) = answer.as_ref().err().and_then(anyhow::Error::downcast_ref::<Refused>) else {
                    return answer;
                };
                if tries == RETRIES || !RETRIED.contains(&refused.status) {
                    return answer;
                }
                tokio::time::sleep(refused.retry_after.unwrap_or(RETRY * (1 << tries) / self.speed)).await;
                tries += 1;
            }
        };
        tokio::time::timeout(CALL_TIMEOUT, answered)
            .await
            .context("context deadline exceeded")?
    }

    async fn send_once(&self, method: &Method, url: &str, body: Option<&Value>) -> Result<Answer> {
        ensure!(url.starts_with(&self.base), "{url} is elsewhere");
        let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let header = |name: &str| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
        let retry_after = header("retry-after").and_then(|text| text.parse().ok());
        let retry_after = retry_after.map(Duration::from_secs);
        let operation = header("azure-asyncoperation").map(|url| (url, true));
        let location = || header("location").map(|url| (url, false)).filter(|_| status == 202);
        let poll = operation.or_else(location).filter(|_| *method != Method::GET);
        let text = answer.text().await?;
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({}));
        if status < 400 {
            return Ok(Answer {
                status,
                body,
                poll,
                retry_after,
            });
        }
        let code = body["error"]["code"].as_str().or(body["code"].as_str());
        let path = url.split('?').next().unwrap_or_default();
        Err(Refused {
            request: format!("{method} {path}"),
            status,
            code: code.unwrap_or_default().to_owned(),
            body,
            retry_after,
        }
        .into())
    }
}

struct Answer {
    status: u16,
    body: Value,
    /// The URL to poll, and whether the answer there has a `status` of its own.
    poll: Option<(String, bool)>,
    retry_after: Option<Duration>,
}

/// Whether ARM answered 404, like `IsAzureNotFoundError`.
pub fn not_found(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.status == 404)
}

/// Like `ClassifyAzureError`: when to requeue, before `speed` divides it, and the beginning of the message.
pub fn classify(error: &anyhow::Error) -> (Duration, String) {
    let Some(refused) = error.downcast_ref::<Refused>() else {
        return (Duration::from_mins(2), "Unexpected error".to_owned());
    };
    match refused.status {
        429 => (
            refused.retry_after.unwrap_or(Duration::from_mins(5)),
            "Azure API rate limit exceeded, retrying".to_owned(),
        ),
        403 => (
            Duration::from_mins(10),
            "Azure API permission denied, check service principal permissions".to_owned(),
        ),
        409 => (Duration::from_secs(30), "Azure resource conflict, retrying".to_owned()),
        status => (
            Duration::from_mins(2),
            format!("Azure API error (HTTP {status}): {}", refused.code),
        ),
    }
}
