//! What a path means: a resource, a list, an action or the state of an operation.

use http::Method;

use super::error::ArmError;
use super::id::ResourceId;
use crate::resources::View;

/// The two URLs of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationUrl {
    /// `Azure-AsyncOperation`.
    Status,
    /// `Location`.
    Result,
}

/// What a call addresses.
#[derive(Debug)]
pub(crate) enum Target {
    /// One resource.
    Resource { id: ResourceId, resource_type: String },
    /// All resources of a type below a scope.
    List { scope: ResourceId, resource_type: String },
    /// A POST to a resource's or scope's action.
    Action {
        id: ResourceId,
        resource_type: String,
        action: String,
    },
    /// An operation; `resource_type` is what its URL pretends to be.
    Operation {
        scope: ResourceId,
        id: String,
        url: OperationUrl,
        resource_type: &'static str,
    },
    /// What ARM itself answers about a scope.
    View { scope: ResourceId, view: View },
}

impl Target {
    /// The type addressed.
    pub(crate) fn resource_type(&self) -> &str {
        match self {
            Self::Resource { resource_type, .. }
            | Self::List { resource_type, .. }
            | Self::Action { resource_type, .. } => resource_type,
            Self::Operation { resource_type, .. } => resource_type,
            Self::View { view, .. } => view.resource_type(),
        }
    }

    /// The id or scope addressed.
    pub(crate) fn scope(&self) -> &ResourceId {
        match self {
            Self::Resource { id, .. } | Self::Action { id, .. } => id,
            Self::List { scope, .. } | Self::Operation { scope, .. } | Self::View { scope, .. } => scope,
        }
    }
}

/// Reads a path, percent-encoding and all.
pub(crate) fn route(method: &Method, path: &str) -> Result<Target, ArmError> {
    let invalid = || {
        ArmError::gateway(
            404,
            "InvalidResourcePath",
            format!("The request path '{path}' is not a valid resource path."),
        )
    };
    // Clients that leave a part of their path empty send `//`.
    let segments = path.strip_prefix('/').ok_or_else(invalid)?.split('/');
    let parts: Option<Vec<String>> = segments.filter(|segment| !segment.is_empty()).map(decode).collect();
    let parts = parts.ok_or_else(invalid)?;
    if let Some(operation) = operation(&parts) {
        return Ok(operation);
    }
    if let Some((scope, view)) = View::parse(method, &parts) {
        return Ok(Target::View { scope, view });
    }
    let whole = format!("/{}", parts.join("/"));
    if parts.len() % 2 == 0 {
        let id = ResourceId::parse(&whole).map_err(|_| invalid())?;
        let resource_type = id.resource_type();
        return Ok(Target::Resource { id, resource_type });
    }
    let (scope, last) = whole.rsplit_once('/').ok_or_else(invalid)?;
    // A list of a provider's types: the scope ends before `/providers/NAMESPACE`.
    let top = parts.len() >= 3 && parts[parts.len() - 3].eq_ignore_ascii_case("providers");
    let (scope, namespace) = if top {
        let cut: Vec<&str> = scope.rsplitn(3, '/').collect();
        (*cut.get(2).ok_or_else(invalid)?, cut.first().copied())
    } else {
        (scope, None)
    };
    let scope = ResourceId::parse(scope).map_err(|_| invalid())?;
    let listed = match namespace {
        Some(namespace) => format!("{namespace}/{last}"),
        None if scope.resource_type().starts_with("Microsoft.Resources/") => {
            format!("Microsoft.Resources/{last}")
        }
        None => format!("{}/{last}", scope.resource_type()),
    };
    if *method == Method::POST {
        let resource_type = scope.resource_type();
        return Ok(Target::Action {
            id: scope,
            resource_type,
            action: last.to_owned(),
        });
    }
    Ok(Target::List {
        scope,
        resource_type: listed,
    })
}

/// The polling URLs of Microsoft.Network, private DNS and ARM.
fn operation(parts: &[String]) -> Option<Target> {
    let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let (scope, word, resource_type) = match lower.as_slice() {
        [
            "subscriptions",
            _,
            "providers",
            "microsoft.network",
            "locations",
            _,
            word @ ("operations" | "operationresults"),
            _,
        ] => (2, *word, "Microsoft.Network/locations/operations"),
        [
            "subscriptions",
            _,
            "resourcegroups",
            _,
            "providers",
            "microsoft.network",
            word,
            _,
        ] if *word == "privatednsoperationstatuses" => (4, *word, "Microsoft.Network/privateDnsOperationStatuses"),
        [
            "subscriptions",
            _,
            "resourcegroups",
            _,
            "providers",
            "microsoft.network",
            word,
            _,
        ] if *word == "privatednsoperationresults" => (4, *word, "Microsoft.Network/privateDnsOperationResults"),
        ["subscriptions", _, "operationresults", _] => (
            2,
            "operationresults",
            "Microsoft.Resources/subscriptions/operationresults",
        ),
        _ => return None,
    };
    let url = if word.ends_with("results") {
        OperationUrl::Result
    } else {
        OperationUrl::Status
    };
    let scope = ResourceId::parse(&format!("/{}", parts.get(..scope)?.join("/"))).ok()?;
    Some(Target::Operation {
        scope,
        id: parts.last()?.clone(),
        url,
        resource_type,
    })
}

/// The longest name that ARM takes in a path.
const LONGEST_SEGMENT: usize = 260;

/// Percent-decoding of one segment; nothing for text that is not UTF-8, hides a slash or a control character, climbs
/// through the path, or is longer than any name.
pub(crate) fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| {
        let climbs = text == "." || text == "..";
        let short = text.chars().count() <= LONGEST_SEGMENT;
        short && !climbs && !text.chars().any(|letter| letter == '/' || letter.is_control())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, path: &str) -> String {
        match route(&method.parse().unwrap(), path) {
            Ok(Target::Resource { id, resource_type }) => format!("{resource_type} {id}"),
            Ok(Target::List { scope, resource_type }) => format!("list {resource_type} {scope}"),
            Ok(Target::Action { id, action, .. }) => format!("{action} {id}"),
            Ok(Target::Operation { id, url, .. }) => format!("{url:?} {id}"),
            Ok(Target::View { scope, view }) => format!("{view:?} {scope}"),
            Err(error) => error.error.code,
        }
    }

    #[test]
    fn paths_mean_what_arm_means() {
        let net = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        for (path, expected) in [
            (
                format!("{net}/privateEndpoints/e"),
                format!("Microsoft.Network/privateEndpoints {net}/privateEndpoints/e"),
            ),
            (
                format!("{net}/privateEndpoints"),
                "list Microsoft.Network/privateEndpoints /subscriptions/s/resourceGroups/g".into(),
            ),
            (
                "/subscriptions/s/providers/Microsoft.Network/privateEndpoints".into(),
                "list Microsoft.Network/privateEndpoints /subscriptions/s".into(),
            ),
            (
                format!("{net}/virtualNetworks/v/subnets"),
                format!("list Microsoft.Network/virtualNetworks/subnets {net}/virtualNetworks/v"),
            ),
            (
                format!("{net}/privateDnsZones/z/A/%40"),
                format!("Microsoft.Network/privateDnsZones/A {net}/privateDnsZones/z/A/@"),
            ),
            (
                "/subscriptions/s/resourcegroups".into(),
                "ResourceGroups /subscriptions/s".into(),
            ),
            (
                "/subscriptions/s/resourceGroups/g".into(),
                "Microsoft.Resources/resourceGroups /subscriptions/s/resourceGroups/g".into(),
            ),
            (
                "/subscriptions/s/providers/Microsoft.Network/locations/w/operations/1".into(),
                "Status 1".into(),
            ),
            (
                "/subscriptions/s/providers/Microsoft.Network/locations/w/operationResults/1".into(),
                "Result 1".into(),
            ),
            (format!("{net}/privateDnsOperationStatuses/QQ=="), "Status QQ==".into()),
            ("/".into(), "InvalidResourcePath".into()),
            ("//".into(), "InvalidResourcePath".into()),
            ("*".into(), "InvalidResourcePath".into()),
            ("/favicon.ico".into(), "InvalidResourcePath".into()),
        ] {
            assert_eq!(of("GET", &path), expected);
        }
        assert_eq!(
            of("POST", &format!("{net}/virtualNetworks/v/check")),
            format!("check {net}/virtualNetworks/v")
        );
    }

    #[test]
    fn bad_segments_are_no_path() {
        let net = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        let long = "x".repeat(261);
        for name in [
            "a%2fb", "a%00b", "a%0ab", "..", "%2e%2E/x", ".", "%ff", "%4", "%+1", "%zz", &long,
        ] {
            let path = format!("{net}/privateEndpoints/{name}/y");
            assert_eq!(of("GET", &path), "InvalidResourcePath", "{path}");
        }
    }

    #[test]
    fn questions_to_arm_are_known() {
        let net = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        for (path, expected) in [
            ("/subscriptions".to_owned(), "Subscriptions ".to_owned()),
            ("/subscriptions/s/".into(), "Subscription /subscriptions/s".into()),
            (
                "/subscriptions/s/providers/Microsoft.Network".into(),
                "Provider(\"Microsoft.Network\") /subscriptions/s".into(),
            ),
            (
                "/subscriptions/s/resourceGroups/g/resources".into(),
                "Resources /subscriptions/s/resourceGroups/g".into(),
            ),
            (
                format!("{net}//privateEndpoints/e/providers/microsoft.authorization/permissions"),
                format!("Permissions {net}/privateEndpoints/e"),
            ),
        ] {
            assert_eq!(of("GET", &path), expected);
        }
    }
}
