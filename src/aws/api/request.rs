//! Requests as bytes and headers, not yet signed.

use std::hash::Hash;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::api::action::Action;
use crate::endpoints::{Endpoints, Service};
use crate::wire::form::Form;

/// One request of an action, without its host.
#[derive(Debug, Clone)]
pub(crate) struct ServiceRequest {
    /// The action that it is of.
    pub(crate) action: Action,
    method: Method,
    /// The path's segments, not encoded.
    path: Vec<String>,
    query: Form,
    content_type: Option<&'static str>,
    body: Bytes,
    secret_header: Option<(HeaderName, SecretString)>,
}

impl ServiceRequest {
    /// A request in the query protocol.
    pub(crate) fn query(action: Action, parameters: &Form) -> Self {
        let head = Form::default()
            .with("Action", action.name())
            .with("Version", action.service().version());
        let mut body = head.encoded();
        if !parameters.is_empty() {
            body.push('&');
            body.push_str(&parameters.encoded());
        }
        Self {
            method: Method::POST,
            path: Vec::new(),
            query: Form::default(),
            content_type: Some("application/x-www-form-urlencoded; charset=utf-8"),
            body: body.into(),
            secret_header: None,
            action,
        }
    }

    /// A request of a REST service, without a body.
    pub(crate) fn get(action: Action, path: &[&str], query: Form) -> Self {
        let version = Some(action.service().version()).filter(|version| !version.is_empty());
        Self {
            method: Method::GET,
            path: version
                .iter()
                .chain(path)
                .map(|segment| (*segment).to_owned())
                .collect(),
            query,
            content_type: None,
            body: Bytes::new(),
            secret_header: None,
            action,
        }
    }

    /// A request of a REST service, with an XML document as its body.
    pub(crate) fn post(action: Action, path: &[&str], body: String) -> Self {
        Self {
            method: Method::POST,
            content_type: Some("text/xml"),
            body: body.into(),
            ..Self::get(action, path, Form::default())
        }
    }

    /// The same request, as a PUT.
    pub(crate) fn put(self) -> Self {
        Self {
            method: Method::PUT,
            ..self
        }
    }

    /// The same request, with a header that `Debug` does not show.
    pub(crate) fn with_header(self, name: HeaderName, value: SecretString) -> Self {
        Self {
            secret_header: Some((name, value)),
            ..self
        }
    }

    /// What tells it from other requests of its action.
    pub(crate) fn content(&self) -> impl Hash {
        (self.path.clone(), self.query.encoded(), self.body.clone())
    }

    /// The service that it is for.
    pub(crate) fn service(&self) -> Service {
        self.action.service()
    }

    /// The request on the service's own origin. None if it cannot be sent: the address is too long, or the header has
    /// characters that no header has.
    pub(crate) fn to_http(&self, endpoints: &Endpoints) -> Option<Request<Bytes>> {
        let mut url: Url = endpoints.origin(self.service()).clone();
        if !self.path.is_empty() {
            url.path_segments_mut().ok()?.clear().extend(&self.path);
        }
        if !self.query.is_empty() {
            // A signature holds for the strict encoding of an address, a form has its own of blanks and asterisks.
            let strict = self.query.encoded().replace('+', "%20").replace('*', "%2A");
            url.set_query(Some(&strict));
        }
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url.as_str().parse().ok()?;
        if let Some(kind) = self.content_type {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if let Some((name, secret)) = &self.secret_header {
            let mut value = HeaderValue::from_str(secret.expose_secret()).ok()?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::EndpointOverrides;
    use crate::region::Region;

    fn endpoints() -> Endpoints {
        Endpoints::new(Region::parse("us-east-1").unwrap(), &EndpointOverrides::default()).unwrap()
    }

    #[test]
    fn action_and_version_lead_the_form() {
        let form = Form::default().with("SubnetId.1", "subnet-1");
        let request = ServiceRequest::query(Action::DescribeSubnets, &form)
            .to_http(&endpoints())
            .unwrap();
        assert_eq!(request.uri(), "https://ec2.us-east-1.amazonaws.com/");
        assert_eq!(
            request.body(),
            "Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=subnet-1"
        );
    }

    #[test]
    fn nothing_in_a_path_or_query_leads_elsewhere() {
        let query = Form::default().with("name", "*.a b+c&d");
        let request = ServiceRequest::get(
            Action::ListResourceRecordSets,
            &["hostedzone", "../x?y#z", "rrset"],
            query,
        );
        assert_eq!(
            request.to_http(&endpoints()).unwrap().uri(),
            "https://route53.amazonaws.com/2013-04-01/hostedzone/..%2Fx%3Fy%23z/rrset?name=%2A.a%20b%2Bc%26d"
        );
    }

    #[test]
    fn secret_of_a_header_does_not_show_in_debug() {
        let request = ServiceRequest::get(Action::GetMetadataCredentials, &["latest"], Form::default())
            .with_header(HeaderName::from_static("x-secret"), "hunter2".into());
        let sent = request.to_http(&endpoints()).unwrap();
        assert!(!format!("{request:?} {sent:?}").contains("hunter2"));
        assert_eq!(sent.headers()["x-secret"], "hunter2");
    }
}
