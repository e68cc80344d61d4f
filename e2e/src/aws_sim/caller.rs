//! Signed calls to the simulated AWS, as a person or a foreign program makes them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use jiff::Timestamp;
use reqwest::Method;
use url::form_urlencoded::Serializer;

use super::{Identity, REGION};

/// What AWS answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// AWS's error code.
    pub code: Option<String>,
    /// The whole answer, XML.
    pub body: String,
}

impl Answer {
    /// The text of the first element of that name.
    pub fn text(&self, element: &str) -> Option<&str> {
        inner(&self.body, element)
    }

    /// The answer, unless AWS refused.
    ///
    /// # Errors
    ///
    /// AWS refused.
    pub fn ok(self) -> Result<Self> {
        ensure!(self.status == 200, "{}: {}", self.status, self.body);
        Ok(self)
    }
}

/// What is in the first element of that name.
pub(crate) fn inner<'a>(xml: &'a str, element: &str) -> Option<&'a str> {
    all_inner(xml, element).into_iter().next()
}

/// What is in each element of that name; they may not be nested in one another.
pub(crate) fn all_inner<'a>(xml: &'a str, element: &str) -> Vec<&'a str> {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let begun = xml.split(&begin).skip(1);
    begun
        .filter_map(|rest| rest.split_once(&end).map(|(text, _)| text))
        .collect()
}

/// The name of the sessions of all callers with a role.
pub const SESSION: &str = "e2e";

const STS_VERSION: &str = "2011-06-15";

/// Somebody with keys.
#[derive(Clone, Debug)]
pub struct Caller {
    endpoint: String,
    http: reqwest::Client,
    keys: Credentials,
}

impl Caller {
    /// A user with an access key.
    pub(crate) fn user(endpoint: &str, ca_file: &Path, identity: Identity) -> Result<Self> {
        Ok(Self {
            endpoint: endpoint.to_owned(),
            http: client(ca_file)?,
            keys: Credentials::new(identity.access_key_id, identity.secret(), None, None, "e2e"),
        })
    }

    /// A session of a role that this caller assumes.
    ///
    /// # Errors
    ///
    /// AWS refuses the session.
    pub(crate) async fn assume(&self, role: &str) -> Result<Self> {
        let form = form(
            "AssumeRole",
            STS_VERSION,
            &[("RoleArn", role), ("RoleSessionName", SESSION)],
        );
        let answer = self.send("sts", Method::POST, "/", form).await?.ok()?;
        Self::of_session(self.endpoint.clone(), self.http.clone(), &answer)
    }

    /// A session of a role, for a ServiceAccount's token.
    pub(crate) async fn role(endpoint: &str, ca_file: &Path, role: &str, token: &str) -> Result<Self> {
        let http = client(ca_file)?;
        let form = form(
            "AssumeRoleWithWebIdentity",
            STS_VERSION,
            &[
                ("RoleArn", role),
                ("RoleSessionName", SESSION),
                ("WebIdentityToken", token),
            ],
        );
        let request = http.post(format!("{endpoint}/")).body(form);
        let answer = send(request.header("content-type", FORM)).await?.ok()?;
        Self::of_session(endpoint.to_owned(), http, &answer)
    }

    fn of_session(endpoint: String, http: reqwest::Client, answer: &Answer) -> Result<Self> {
        let part = |element: &str| answer.text(element).context("a session without keys");
        let keys = Credentials::new(
            part("AccessKeyId")?,
            part("SecretAccessKey")?,
            Some(part("SessionToken")?.to_owned()),
            None,
            "e2e",
        );
        Ok(Self { endpoint, http, keys })
    }

    /// Calls an action of EC2, with parameters as on the wire: `("VpcId", …)`, `("Filter.1.Name", …)`.
    ///
    /// # Errors
    ///
    /// No answer. A refusal is an answer.
    pub async fn ec2(&self, action: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        self.send("ec2", Method::POST, "/", ec2_form(action, parameters)).await
    }

    /// Calls an action of Elastic Load Balancing.
    ///
    /// # Errors
    ///
    /// As [`Caller::ec2`].
    pub async fn load_balancing(&self, action: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        let form = form(action, "2015-12-01", parameters);
        self.send("elasticloadbalancing", Method::POST, "/", form).await
    }

    /// Sends a request to Route 53; `path` is below the API's version: `/hostedzone`.
    ///
    /// # Errors
    ///
    /// As [`Caller::ec2`].
    pub async fn route53(&self, method: Method, path: &str, body: &str) -> Result<Answer> {
        let path = format!("/2013-04-01{path}");
        self.send("route53", method, &path, body.to_owned()).await
    }

    async fn send(&self, service: &str, method: Method, path: &str, body: String) -> Result<Answer> {
        let uri = format!("{}{path}", self.endpoint);
        let (parts, body) = self.signed(service, &method, path, body)?.into_parts();
        send(self.http.request(method, uri).headers(parts.headers).body(body)).await
    }

    /// A signed request; `path` has the API's version.
    pub(crate) fn signed(
        &self,
        service: &str,
        method: &Method,
        path: &str,
        body: String,
    ) -> Result<http::Request<String>> {
        let uri = format!("{}{path}", self.endpoint);
        let mut request = http::Request::builder()
            .method(method.as_str())
            .uri(&uri)
            .header("content-type", FORM)
            .body(body.clone())?;
        let identity = self.keys.clone().into();
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(REGION)
            .name(service)
            .time(Timestamp::now().into())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let headers = [("content-type", FORM)].into_iter();
        let signable = SignableRequest::new(method.as_str(), &uri, headers, SignableBody::Bytes(body.as_bytes()))?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// The body of a call of EC2.
pub(crate) fn ec2_form(action: &str, parameters: &[(&str, &str)]) -> String {
    form(action, "2016-11-15", parameters)
}

fn form(action: &str, version: &str, parameters: &[(&str, &str)]) -> String {
    let common = [("Action", action), ("Version", version)];
    let all = common.iter().chain(parameters);
    Serializer::new(String::new()).extend_pairs(all).finish()
}

fn client(ca_file: &Path) -> Result<reqwest::Client> {
    let ca = reqwest::Certificate::from_pem(&std::fs::read(ca_file)?)?;
    Ok(reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build()?)
}

async fn send(request: reqwest::RequestBuilder) -> Result<Answer> {
    let answer = request.send().await?;
    let (status, body) = (answer.status().as_u16(), answer.text().await?);
    let mut answer = Answer {
        status,
        code: None,
        body,
    };
    answer.code = answer.text("Code").map(str::to_owned).filter(|_| status != 200);
    Ok(answer)
}
