//! The transport of a process that must change nothing: it sends requests that only read.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};
use url::form_urlencoded;

use crate::api::action::{Action, Verb};
use crate::api::transport::{Transport, TransportError};
use crate::credentials::METADATA_TOKEN_PATH;

/// A transport that sends what changes nothing, and refuses all else.
pub struct ReadOnly(pub Arc<dyn Transport>);

#[async_trait]
impl Transport for ReadOnly {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if only_reads(&request) {
            self.0.send(request).await
        } else {
            Err(TransportError::ReadOnly)
        }
    }
}

/// Whether a request changes nothing, by what it is made of: the services with forms take every action as a POST.
fn only_reads(request: &Request<Bytes>) -> bool {
    let path = request.uri().path();
    match *request.method() {
        // The query could name an action, too.
        Method::GET => path.len() > 1,
        Method::POST if path == "/" && request.uri().query().is_none() => {
            let mut parameters = form_urlencoded::parse(request.body());
            let mut actions = parameters.by_ref().filter(|(name, _)| name == "Action");
            let action = actions.next().and_then(|(_, name)| Action::by_name(&name));
            action.is_some_and(|action| action.verb() == Verb::Read) && actions.next().is_none()
        }
        // A token of instance metadata is only good for reading.
        Method::PUT => path == METADATA_TOKEN_PATH,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::sample::FakeAws;

    #[rstest]
    #[case::describe(Method::POST, "/", "Action=DescribeSubnets&Version=2016-11-15", true)]
    #[case::session(Method::POST, "/", "Action=AssumeRoleWithWebIdentity", true)]
    #[case::records(Method::GET, "/2013-04-01/hostedzone", "", true)]
    #[case::metadata_token(Method::PUT, "/latest/api/token", "", true)]
    #[case::create(Method::POST, "/", "Action=CreateVpcEndpoint", false)]
    #[case::delete(Method::POST, "/", "Action=DeleteSecurityGroup", false)]
    #[case::unknown_action(Method::POST, "/", "Action=TerminateInstances", false)]
    #[case::no_action(Method::POST, "/", "", false)]
    #[case::two_actions(Method::POST, "/", "Action=DescribeSubnets&Action=CreateTags", false)]
    #[case::action_in_the_query(Method::POST, "/?Action=CreateTags", "Action=DescribeSubnets", false)]
    #[case::action_of_a_get(Method::GET, "/?Action=CreateTags", "", false)]
    #[case::change_of_records(Method::POST, "/2013-04-01/hostedzone/Z/rrset", "<x/>", false)]
    #[case::other_put(Method::PUT, "/latest/x", "", false)]
    #[case::method_delete(Method::DELETE, "/2013-04-01/hostedzone/Z", "", false)]
    #[tokio::test]
    async fn only_reads_are_sent(
        #[case] method: Method,
        #[case] path: &str,
        #[case] body: &'static str,
        #[case] sent: bool,
    ) {
        let aws = FakeAws::answering(200, "<A/>");
        let request = Request::builder()
            .method(method)
            .uri(format!("https://ec2.us-east-1.amazonaws.com{path}"))
            .body(Bytes::from_static(body.as_bytes()))
            .unwrap();
        assert_eq!(ReadOnly(aws.clone()).send(request).await.is_ok(), sent);
        assert_eq!(aws.requests().len(), usize::from(sent));
    }
}
