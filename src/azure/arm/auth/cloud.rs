//! Where ARM and its token endpoint are. Decides which addresses may be configured at all.

use url::{Host, Url};

/// One Azure cloud: the only ARM host that gets a token, the authority that issues it, and the token's audience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureCloud {
    endpoint: Url,
    authority: Url,
    audience: String,
}

/// Why an address or a name does not make a cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// No such cloud.
    #[error(
        "unknown cloud {0:?}; use AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud, or give endpoint, authority and audience"
    )]
    UnknownName(String),
    /// Not an absolute http or https URL.
    #[error("the {part} {given:?} is not a URL of the form https://host[:port]")]
    NotAnOrigin {
        /// `ARM endpoint` or `authority`.
        part: &'static str,
        /// What was given; empty when it holds a password.
        given: String,
    },
    /// Tokens would travel in the clear.
    #[error("the ARM endpoint {0} is plain http; use https (http is for loopback only)")]
    PlainHttp(Url),
    /// The client secret would travel in the clear.
    #[error("the authority {0} is plain http; use https")]
    PlainHttpAuthority(Url),
    /// No audience, or one with characters that no audience has.
    #[error(
        "the audience {0:?} is not usable; give the resource that tokens are for, such as https://management.core.windows.net/"
    )]
    Audience(String),
}

impl AzureCloud {
    /// The cloud named `AzurePublicCloud`.
    pub fn public() -> Self {
        Self::known(
            "https://management.azure.com",
            "https://login.microsoftonline.com/",
            "https://management.core.windows.net/",
        )
    }

    /// The cloud named `AzureUSGovernmentCloud`.
    pub fn us_government() -> Self {
        Self::known(
            "https://management.usgovcloudapi.net",
            "https://login.microsoftonline.us/",
            "https://management.core.usgovcloudapi.net/",
        )
    }

    /// The cloud named `AzureChinaCloud`.
    pub fn china() -> Self {
        Self::known(
            "https://management.chinacloudapi.cn",
            "https://login.chinacloudapi.cn/",
            "https://management.core.chinacloudapi.cn/",
        )
    }

    /// The cloud of that name, as in `AZURE_CLOUD_NAME` and the HostedControlPlane; case does not matter.
    pub fn by_name(name: &str) -> Result<Self, CloudError> {
        match name.to_ascii_lowercase().as_str() {
            "azurepubliccloud" => Ok(Self::public()),
            "azureusgovernmentcloud" => Ok(Self::us_government()),
            "azurechinacloud" => Ok(Self::china()),
            _ => Err(CloudError::UnknownName(name.to_owned())),
        }
    }

    /// A cloud given by its addresses: air-gapped ones, simulators.
    ///
    /// `endpoint` and `authority` are origins (`https://host[:port]`). The endpoint may be http on loopback; the
    /// authority may not.
    pub fn custom(endpoint: &str, authority: &str, audience: &str) -> Result<Self, CloudError> {
        let endpoint = origin("ARM endpoint", endpoint)?;
        if endpoint.scheme() == "http" && !is_loopback(&endpoint) {
            return Err(CloudError::PlainHttp(endpoint));
        }
        let authority = origin("authority", authority)?;
        if authority.scheme() == "http" {
            return Err(CloudError::PlainHttpAuthority(authority));
        }
        let usable = |c: char| c.is_ascii_alphanumeric() || "-._~:/".contains(c);
        if audience.is_empty() || !audience.chars().all(usable) {
            return Err(CloudError::Audience(audience.to_owned()));
        }
        Ok(Self {
            endpoint,
            authority,
            audience: audience.to_owned(),
        })
    }

    /// Where ARM is: scheme, host and port, no path.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Where tokens are issued; always https.
    pub fn authority(&self) -> &Url {
        &self.authority
    }

    /// The audience of the tokens.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// The scope to request a token for. The audiences of the known clouds end in a slash, and clients send the double
    /// slash that follows from it.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    #[expect(
        clippy::expect_used,
        reason = "called with the constants above only; a test builds each"
    )]
    fn known(endpoint: &str, authority: &str, audience: &str) -> Self {
        Self::custom(endpoint, authority, audience).expect("a known cloud")
    }
}

fn origin(part: &'static str, given: &str) -> Result<Url, CloudError> {
    let url = Url::parse(given).map_err(|_| not_an_origin(part, given))?;
    if !url.username().is_empty() || url.password().is_some() {
        // What was given holds a secret.
        return Err(not_an_origin(part, ""));
    }
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if plain {
        Ok(url)
    } else {
        Err(not_an_origin(part, given))
    }
}

fn not_an_origin(part: &'static str, given: &str) -> CloudError {
    CloudError::NotAnOrigin {
        part,
        given: given.to_owned(),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = "https://login.example";
    const AUDIENCE: &str = "https://management.example";

    #[test]
    fn known_clouds_keep_the_double_slash_in_the_scope() {
        let scopes = ["AzurePublicCloud", "azureusgovernmentcloud", "AZURECHINACLOUD"]
            .map(|name| AzureCloud::by_name(name).unwrap().scope());
        assert_eq!(
            scopes,
            [
                "https://management.core.windows.net//.default",
                "https://management.core.usgovcloudapi.net//.default",
                "https://management.core.chinacloudapi.cn//.default",
            ]
        );
    }

    #[test]
    fn unknown_cloud_is_refused_by_name() {
        let refused = AzureCloud::by_name("AzureStackCloud").unwrap_err();
        assert_eq!(refused, CloudError::UnknownName("AzureStackCloud".into()));
    }

    #[test]
    fn custom_cloud_has_one_slash_in_the_scope() {
        let cloud = AzureCloud::custom("https://arm.example:8443", AUTHORITY, AUDIENCE).unwrap();
        assert_eq!(cloud.scope(), "https://management.example/.default");
        assert_eq!(cloud.endpoint().port(), Some(8443));
    }

    #[rstest::rstest]
    #[case("http://127.0.0.1:8080")]
    #[case("http://127.8.8.8")]
    #[case("http://[::1]:1")]
    #[case("http://localhost:8080/")]
    fn plain_http_on_loopback_is_accepted(#[case] endpoint: &str) {
        assert!(AzureCloud::custom(endpoint, AUTHORITY, AUDIENCE).is_ok());
    }

    #[rstest::rstest]
    #[case("http://management.azure.com")]
    #[case("http://10.0.0.1")]
    #[case("http://0.0.0.0")]
    #[case("http://localhost.example")]
    #[case("http://127.0.0.1.example")]
    fn plain_http_elsewhere_is_refused(#[case] endpoint: &str) {
        let refused = AzureCloud::custom(endpoint, AUTHORITY, AUDIENCE).unwrap_err();
        assert!(matches!(refused, CloudError::PlainHttp(_)), "{refused}");
    }

    #[test]
    fn plain_http_authority_is_refused_even_on_loopback() {
        let refused = AzureCloud::custom("https://arm.example", "http://127.0.0.1", AUDIENCE);
        assert!(matches!(refused, Err(CloudError::PlainHttpAuthority(_))));
    }

    #[rstest::rstest]
    #[case("management.azure.com")]
    #[case("ftp://arm.example")]
    #[case("https://arm.example/base")]
    #[case("https://arm.example?x=1")]
    #[case("")]
    fn what_is_no_origin_is_refused(#[case] endpoint: &str) {
        let refused = AzureCloud::custom(endpoint, AUTHORITY, AUDIENCE).unwrap_err();
        assert!(matches!(refused, CloudError::NotAnOrigin { .. }));
    }

    #[test]
    fn password_in_an_address_is_refused_and_not_shown() {
        let refused = AzureCloud::custom("https://me:hunter2@arm.example", AUTHORITY, AUDIENCE);
        assert!(!format!("{:?}", refused.unwrap_err()).contains("hunter2"));
    }

    #[test]
    fn unusable_audience_is_refused() {
        for audience in ["", "https://a b", "x\n"] {
            let refused = AzureCloud::custom("https://arm.example", AUTHORITY, audience);
            assert!(matches!(refused, Err(CloudError::Audience(_))));
        }
    }
}
