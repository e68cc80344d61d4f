//! ARM as the Go controllers call it: every write is sent as it is and waited for to its end.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::test_env::{Azure, Credential};
use crate::wait::patient;

/// The versions that HyperShift's SDK packages speak.
const NETWORK: &str = "2023-11-01";
const PRIVATE_DNS: &str = "2024-06-01";

/// How often the SDK polls where Azure does not say.
const POLL: Duration = Duration::from_secs(30);
/// `PollTimeout` of the reference.
const POLL_TIMEOUT: Duration = Duration::from_mins(5);
/// `azureAPITimeout` of the guest's side, for one call with its retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The SDK tries again so often, what is busy or out of order.
const RETRIES: u32 = 3;
const RETRIED: [u16; 6] = [408, 429, 500, 502, 503, 504];
/// What it waits then where Azure does not say, doubled each time.
const RETRY: Duration = Duration::from_millis(800);
/// Between the parts of a refusal's text.
const SEPARATOR: &str = "--------------------------------------------------------------------------------";

/// ARM's refusal.
#[derive(Debug)]
pub struct Refused {
    /// Method and URL, without the query.
    pub request: String,
    /// HTTP status.
    pub status: u16,
    /// ARM's code.
    pub code: String,
    /// What was answered.
    pub body: Value,
    /// What Azure asks to wait.
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

/// ARM with the token of one identity.
#[derive(Clone, Debug)]
pub struct Arm {
    http: reqwest::Client,
    base: String,
    token: String,
    /// Divides the SDK's and the reference's own times; Azure's are kept.
    speed: u32,
}

impl Arm {
    /// Gets a token, which lasts longer than any test.
    ///
    /// # Errors
    ///
    /// The authority refuses.
    pub async fn connect(azure: &Azure, credential: &Credential, speed: u32) -> Result<Self> {
        let ca_file = azure.ca_file.as_ref().context("a simulator with its CA")?;
        let ca = reqwest::Certificate::from_pem(&std::fs::read(ca_file)?)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([ca])
            .user_agent("azsdk-go-hypershift-cpo")
            .build()?;
        let mut form = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("scope", format!("{}/.default", azure.audience)),
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
        let url = format!("{}/{}/oauth2/v2.0/token", azure.authority, azure.tenant);
        let answer: Value = http.post(url).form(&form).send().await?.json().await?;
        let token = answer["access_token"].as_str();
        let token = token.with_context(|| format!("no token: {answer}"))?.to_owned();
        let base = azure.arm.clone();
        Ok(Self {
            http,
            base,
            token,
            speed,
        })
    }

    /// Reads a resource; none if there is none.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn get(&self, id: &str) -> Result<Option<Value>> {
        self.get_expanded(id, "").await
    }

    /// Reads a resource with more of it, as `$expand=networkInterfaces`.
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

    /// All resources of a list.
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

    /// Writes a resource, and waits for the end where there is an operation. Gives what ARM then holds, never expanded.
    ///
    /// # Errors
    ///
    /// ARM refuses, or the operation fails or does not end.
    pub async fn put(&self, id: &str, body: &Value) -> Result<Value> {
        let answer = self.send(Method::PUT, &self.url(id, ""), Some(body)).await?;
        if answer.poll.is_none() {
            return Ok(answer.body);
        }
        self.done(answer).await?;
        self.get(id)
            .await?
            .with_context(|| format!("{id} is not there after its PUT"))
    }

    /// Writes a resource by one request, whatever becomes of it.
    ///
    /// # Errors
    ///
    /// ARM refuses.
    pub async fn put_once(&self, id: &str, body: &Value) -> Result<()> {
        self.send(Method::PUT, &self.url(id, ""), Some(body)).await.map(drop)
    }

    /// Removes a resource and waits for the end; one that is gone already is gone.
    ///
    /// # Errors
    ///
    /// ARM refuses, or the operation fails or does not end.
    pub async fn delete(&self, id: &str) -> Result<()> {
        match self.send(Method::DELETE, &self.url(id, ""), None).await {
            Ok(answer) => self.done(answer).await,
            Err(error) if not_found(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn url(&self, id: &str, expand: &str) -> String {
        let private_dns = id.contains("/privateDnsZones/");
        let version = if private_dns { PRIVATE_DNS } else { NETWORK };
        format!("{}{}?api-version={version}{expand}", self.base, id.replace('*', "%2A"))
    }

    async fn done(&self, answer: Answer) -> Result<()> {
        let Some((url, has_status)) = answer.poll else {
            return Ok(());
        };
        let ends = async {
            let mut wait = answer.retry_after;
            loop {
                tokio::time::sleep(wait.unwrap_or(POLL / self.speed)).await;
                let seen = self.send(Method::GET, &url, None).await?;
                match seen.body["status"].as_str() {
                    Some("Succeeded") => return Ok(()),
                    Some("Failed" | "Canceled") => bail!("operation {url}: {}", seen.body),
                    _ if !has_status && seen.status != 202 => return Ok(()),
                    _ => wait = seen.retry_after,
                }
            }
        };
        tokio::time::timeout(patient(POLL_TIMEOUT / self.speed), ends)
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
    /// Where to ask for the end, and whether the answer there has a status of its own.
    poll: Option<(String, bool)>,
    retry_after: Option<Duration>,
}

/// `IsAzureNotFoundError`.
pub fn not_found(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.status == 404)
}

/// `ClassifyAzureError`: when to come again, in the reference's time, and the beginning of the message.
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
