//! Answers and errors in the form of each service.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::error::AwsError;
use super::xml::{Xml, group, text};
use crate::engine::service::Service;

const EC2_NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";
const ROUTE53_NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// An answer with HTTP 200.
pub(crate) fn answer(service: Service, action: &str, body: Vec<Xml>, request_id: &str) -> Response<Bytes> {
    let open = |namespace: &str| format!("{action}Response xmlns=\"{namespace}\"");
    let tree = match service {
        Service::Ec2 => {
            let mut children = vec![text("requestId", request_id)];
            children.extend(body);
            group(&open(EC2_NAMESPACE), children)
        }
        Service::Route53 => group(&open(ROUTE53_NAMESPACE), body),
        Service::Elbv2 | Service::Sts => group(
            &open(namespace(service)),
            vec![
                group(&format!("{action}Result"), body),
                group("ResponseMetadata", vec![text("RequestId", request_id)]),
            ],
        ),
    };
    document(200, service, request_id, &tree)
}

/// An error, in the form of the service. With `messages`, Route 53 answers a refused batch as its reference shows it.
pub(crate) fn refusal(service: Service, error: &AwsError, messages: bool, request_id: &str) -> Response<Bytes> {
    let (code, message) = (text("Code", &error.code), text("Message", &error.message));
    if service == Service::Ec2 {
        let error_list = group("Errors", vec![group("Error", vec![code, message])]);
        let tree = group("Response", vec![error_list, text("RequestID", request_id)]);
        return document(error.status, service, request_id, &tree);
    }
    let side = if error.status < 500 { "Sender" } else { "Receiver" };
    let tree = if messages && error.code == "InvalidChangeBatch" {
        let children = vec![group("Messages", vec![message]), text("RequestId", request_id)];
        group(&format!("InvalidChangeBatch xmlns=\"{ROUTE53_NAMESPACE}\""), children)
    } else {
        let detail = group("Error", vec![text("Type", side), code, message]);
        let children = vec![detail, text("RequestId", request_id)];
        group(&format!("ErrorResponse xmlns=\"{}\"", namespace(service)), children)
    };
    document(error.status, service, request_id, &tree)
}

fn namespace(service: Service) -> &'static str {
    match service {
        Service::Ec2 => EC2_NAMESPACE,
        Service::Route53 => ROUTE53_NAMESPACE,
        Service::Elbv2 => "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/",
        Service::Sts => "https://sts.amazonaws.com/doc/2011-06-15/",
    }
}

fn document(status: u16, service: Service, request_id: &str, tree: &Xml) -> Response<Bytes> {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    tree.write(&mut out);
    let mut response = Response::new(Bytes::from(out));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = match service {
        Service::Ec2 => "text/xml;charset=UTF-8",
        _ => "text/xml",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}
