//! Where AWS's services are: one origin each, and the region that a request is signed for. Requests go nowhere else.

use url::{Host, Url};

use crate::region::{Partition, Region};

/// A service that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// EC2: endpoint services, endpoints, security groups, subnets.
    Ec2,
    /// Elastic Load Balancing, version 2.
    LoadBalancing,
    /// Route 53, one for all regions of a partition.
    Route53,
    /// The Security Token Service.
    Sts,
    /// The instance metadata service of the machine on which the process runs.
    InstanceMetadata,
}

impl Service {
    /// The name in the scope of signatures; also the value of the metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::LoadBalancing => "elasticloadbalancing",
            Self::Route53 => "route53",
            Self::Sts => "sts",
            Self::InstanceMetadata => "imds",
        }
    }

    /// The version of the service's API; empty where requests name none.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::LoadBalancing => "2015-12-01",
            Self::Route53 => "2013-04-01",
            Self::Sts => "2011-06-15",
            Self::InstanceMetadata => "",
        }
    }
}

/// Origins in place of AWS's own, as `AWS_ENDPOINT_URL_EC2` and its like give them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointOverrides {
    /// In place of EC2.
    pub ec2: Option<String>,
    /// In place of Elastic Load Balancing.
    pub elbv2: Option<String>,
    /// In place of Route 53.
    pub route53: Option<String>,
    /// In place of the Security Token Service.
    pub sts: Option<String>,
    /// In place of the instance metadata service.
    pub instance_metadata: Option<String>,
}

/// Why an origin cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not an absolute http or https URL without path.
    #[error("the endpoint of {service} {given:?} is not a URL of the form https://host[:port]")]
    NotAnOrigin {
        /// The service's label.
        service: &'static str,
        /// What was given; empty when it holds a password.
        given: String,
    },
    /// Session tokens would travel in the clear.
    #[error("the endpoint of {service} {given} is plain http; use https (http is for loopback only)")]
    PlainHttp {
        /// The service's label.
        service: &'static str,
        /// What was given.
        given: Url,
    },
}

/// The only origins that requests go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    region: Region,
    ec2: Url,
    elbv2: Url,
    route53: Url,
    sts: Url,
    instance_metadata: Url,
}

impl Endpoints {
    /// The services of a region. The Security Token Service is always the region's own, also for
    /// `sts_regional_endpoints = legacy`: its sessions are valid everywhere
    /// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-sts-regionalized-endpoints.html>).
    ///
    /// # Errors
    /// An override is no origin, or plain http to another machine.
    pub fn new(region: Region, overrides: &EndpointOverrides) -> Result<Self, EndpointError> {
        let (name, suffix) = (region.name(), region.partition().dns_suffix());
        let route53 = match region.partition() {
            Partition::Aws => "route53.amazonaws.com",
            Partition::China => "route53.amazonaws.com.cn",
            Partition::UsGov => "route53.us-gov.amazonaws.com",
        };
        let given = |service, given: &Option<String>, own: String| match given {
            Some(given) => origin(service, given),
            None => origin(service, &own),
        };
        Ok(Self {
            ec2: given(Service::Ec2, &overrides.ec2, format!("https://ec2.{name}.{suffix}"))?,
            elbv2: given(
                Service::LoadBalancing,
                &overrides.elbv2,
                format!("https://elasticloadbalancing.{name}.{suffix}"),
            )?,
            route53: given(Service::Route53, &overrides.route53, format!("https://{route53}"))?,
            sts: given(Service::Sts, &overrides.sts, format!("https://sts.{name}.{suffix}"))?,
            instance_metadata: given(
                Service::InstanceMetadata,
                &overrides.instance_metadata,
                "http://169.254.169.254".to_owned(),
            )?,
            region,
        })
    }

    /// The region whose services these are.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The origin of a service: scheme, host and port.
    pub fn origin(&self, service: Service) -> &Url {
        match service {
            Service::Ec2 => &self.ec2,
            Service::LoadBalancing => &self.elbv2,
            Service::Route53 => &self.route53,
            Service::Sts => &self.sts,
            Service::InstanceMetadata => &self.instance_metadata,
        }
    }

    /// Whether this URL is on the origin of a service.
    pub(crate) fn contains(&self, url: &Url) -> bool {
        let all = [
            &self.ec2,
            &self.elbv2,
            &self.route53,
            &self.sts,
            &self.instance_metadata,
        ];
        let plain = url.username().is_empty() && url.password().is_none();
        plain && all.iter().any(|origin| origin.origin() == url.origin())
    }

    /// The region that requests to a service are signed for.
    ///
    /// Source: <https://docs.aws.amazon.com/general/latest/gr/r53.html>
    pub(crate) fn signing_region(&self, service: Service) -> &str {
        match (service, self.region.partition()) {
            (Service::Route53, Partition::Aws) => "us-east-1",
            (Service::Route53, Partition::China) => "cn-northwest-1",
            (Service::Route53, Partition::UsGov) => "us-gov-west-1",
            _ => self.region.name(),
        }
    }
}

fn origin(service: Service, given: &str) -> Result<Url, EndpointError> {
    let refused = |given: &str| EndpointError::NotAnOrigin {
        service: service.label(),
        given: given.to_owned(),
    };
    let url = Url::parse(given).map_err(|_| refused(given))?;
    if !url.username().is_empty() || url.password().is_some() {
        // What was given holds a secret.
        return Err(refused(""));
    }
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if !plain {
        return Err(refused(given));
    }
    if url.scheme() == "http" && !stays_on_this_machine(service, &url) {
        let service = service.label();
        return Err(EndpointError::PlainHttp { service, given: url });
    }
    Ok(url)
}

/// Whether requests reach no other machine: loopback, and for instance metadata the link-local addresses of that.
///
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html>
fn stays_on_this_machine(service: Service, url: &Url) -> bool {
    const METADATA: [&str; 2] = ["169.254.169.254", "[fd00:ec2::254]"];
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_metadata = || url.host_str().is_some_and(|host| METADATA.contains(&host));
    loopback || (service == Service::InstanceMetadata && is_metadata())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ALL: [Service; 4] = [Service::Ec2, Service::LoadBalancing, Service::Route53, Service::Sts];

    fn endpoints(region: &str) -> Endpoints {
        Endpoints::new(Region::parse(region).unwrap(), &EndpointOverrides::default()).unwrap()
    }

    #[rstest]
    #[case("eu-west-1", [
        "https://ec2.eu-west-1.amazonaws.com/", "https://elasticloadbalancing.eu-west-1.amazonaws.com/",
        "https://route53.amazonaws.com/", "https://sts.eu-west-1.amazonaws.com/"], "us-east-1")]
    #[case("cn-north-1", [
        "https://ec2.cn-north-1.amazonaws.com.cn/", "https://elasticloadbalancing.cn-north-1.amazonaws.com.cn/",
        "https://route53.amazonaws.com.cn/", "https://sts.cn-north-1.amazonaws.com.cn/"], "cn-northwest-1")]
    #[case("us-gov-east-1", [
        "https://ec2.us-gov-east-1.amazonaws.com/", "https://elasticloadbalancing.us-gov-east-1.amazonaws.com/",
        "https://route53.us-gov.amazonaws.com/", "https://sts.us-gov-east-1.amazonaws.com/"], "us-gov-west-1")]
    fn each_partition_has_its_hosts_and_route_53_one_region(
        #[case] region: &str,
        #[case] hosts: [&str; 4],
        #[case] of_route53: &str,
    ) {
        let endpoints = endpoints(region);
        assert_eq!(ALL.map(|service| endpoints.origin(service).as_str()), hosts);
        let signed_for = ALL.map(|service| endpoints.signing_region(service));
        assert_eq!(signed_for, [region, region, of_route53, region]);
    }

    #[rstest]
    #[case("http://127.0.0.1:4566", true)]
    #[case("http://[::1]:1", true)]
    #[case("https://vpce-1.ec2.us-east-1.vpce.amazonaws.com", true)]
    #[case("http://ec2.us-east-1.amazonaws.com", false)]
    #[case("http://169.254.169.254", false)]
    #[case("http://localhost.example", false)]
    #[case("https://ec2.example/base", false)]
    #[case("ec2.example", false)]
    #[case("", false)]
    fn override_is_https_or_loopback(#[case] given: &str, #[case] usable: bool) {
        let overrides = EndpointOverrides {
            ec2: Some(given.to_owned()),
            ..EndpointOverrides::default()
        };
        let made = Endpoints::new(Region::parse("us-east-1").unwrap(), &overrides);
        assert_eq!(made.is_ok(), usable, "{made:?}");
    }

    #[test]
    fn password_in_an_endpoint_is_refused_and_not_shown() {
        let overrides = EndpointOverrides {
            sts: Some("https://me:hunter2@sts.example".into()),
            ..EndpointOverrides::default()
        };
        let error = Endpoints::new(Region::parse("us-east-1").unwrap(), &overrides).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[rstest]
    #[case("https://ec2.us-east-1.amazonaws.com/?Action=x", true)]
    #[case("https://ec2.us-east-1.amazonaws.com:444/", false)]
    #[case("http://ec2.us-east-1.amazonaws.com/", false)]
    #[case("https://me@ec2.us-east-1.amazonaws.com/", false)]
    #[case("https://ec2.us-east-2.amazonaws.com/", false)]
    fn only_these_origins_are_contained(#[case] url: &str, #[case] inside: bool) {
        assert_eq!(endpoints("us-east-1").contains(&Url::parse(url).unwrap()), inside);
    }
}
