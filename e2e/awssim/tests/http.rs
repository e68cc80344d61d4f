//! Real sockets: TLS, the control calls, broken connections, a restart, and the README's examples as they stand there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;

use awssim::{Options, Server};
use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use support::{BALANCER, SUBNETS, VPC, consumer, seed, signed};

struct TestServer {
    server: Server,
    client: Client,
}

impl TestServer {
    async fn start(options: Options) -> Self {
        let server = Server::start(options).await.unwrap();
        let ca = Certificate::from_pem(server.ca_pem.as_bytes()).unwrap();
        let client = Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
        Self { server, client }
    }

    async fn seeded() -> Self {
        let server = Self::start(Options::default()).await;
        assert_eq!(
            server.control(Method::PUT, "/seed", Some(seed())).await,
            (200, json!({}))
        );
        server
    }

    async fn control(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.server.control));
        let answer = request
            .body(body.map(|body| body.to_string()).unwrap_or_default())
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    async fn ec2(&self, action: &str, params: &str) -> reqwest::Result<(u16, String)> {
        let body = format!("Action={action}&Version=2016-11-15{params}");
        let now = self.server.with_aws(|_, now| now);
        let uri = format!("{}/", self.server.aws);
        let (parts, body) = signed(&consumer(), ("ec2", "us-east-1"), now, "POST", &uri, body).into_parts();
        let answer = self.client.post(uri).headers(parts.headers).body(body).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }
}

fn readme_blocks() -> Vec<String> {
    let unindented = |line: &'static str| line.strip_prefix("   ").unwrap_or(line);
    include_str!("../README.md")
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|block| block.lines().map(unindented).collect::<Vec<_>>().join("\n"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_examples_work() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let server = TestServer::start(options).await;
    let examples = readme_blocks();
    assert_eq!(examples.len(), 5);
    let script = format!(
        "set -eux -o pipefail\n. {}/env\n{}",
        dir.path().display(),
        examples.join("\n")
    );
    let run = Command::new("timeout")
        .args(["60", "bash", "-c", &script])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
    let changes = server
        .server
        .with_aws(|aws, _| aws.journal(0).iter().filter(|call| call.changed).count());
    assert_eq!(changes, 2, "an endpoint service and a security group");
}

#[test]
fn readme_lists_every_switch_quota_and_fault() {
    let readme = include_str!("../README.md");
    let keys = |value: Value| value.as_object().unwrap().keys().cloned().collect::<Vec<String>>();
    for name in keys(json!(awssim::Switches::default())) {
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
    for name in [
        keys(json!(awssim::Quotas::default())),
        keys(json!(awssim::FaultAction::default())),
    ]
    .concat()
    {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
    for name in [
        keys(json!(awssim::Seed::default())),
        keys(json!(awssim::ThrottleSeed::default())),
    ]
    .concat()
    {
        assert!(readme.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[tokio::test]
async fn page_shows_calls_and_resources() {
    let server = TestServer::seeded().await;
    server.ec2("DescribeVpcs", "&VpcId.1=vpc-%3Cb%3E").await.unwrap();
    let page = async |query: &str| {
        let url = format!("{}/{query}", server.server.control);
        let answer = server.client.get(url).send().await.unwrap();
        assert!(
            answer.headers()["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
        answer.text().await.unwrap()
    };
    let all = page("").await;
    for part in [
        VPC,
        "Last calls (1)",
        "/ec2/DescribeVpcs",
        "InvalidVpcID.Malformed",
        "<td>vpc</td>",
        BALANCER,
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!all.contains("<b>"), "{all}");
    let some = page("?prefix=arn:aws:elasticloadbalancing").await;
    assert!(some.contains("Resources (2)") && !some.contains(VPC), "{some}");
    assert_eq!(server.control(Method::GET, "/?prefx=x", None).await.0, 400);
}

#[tokio::test]
async fn unknown_keys_are_named() {
    let server = TestServer::seeded().await;
    let vpc = format!("/resources/arn:aws:ec2:us-east-1:222222222222:vpc/{VPC}");
    for (method, path, body, word) in [
        (Method::PUT, "/seed", json!({"account": []}), "account"),
        (Method::PUT, "/seed", json!({"resources": [{"id": "vpc-1"}]}), "ARN"),
        (
            Method::PUT,
            "/faults",
            json!([{"match": {"paths": "x"}, "do": {}}]),
            "paths",
        ),
        (Method::POST, "/clock", json!({"advance": 1}), "advance"),
        (
            Method::PUT,
            vpc.as_str(),
            json!({"cidr": "10.0.0.0/16", "color": "red"}),
            "color",
        ),
        (Method::GET, "/reachable?vpc=v", json!(null), "name"),
    ] {
        let (status, answer) = server.control(method, path, Some(body)).await;
        assert_eq!(status, 400, "{path}");
        assert!(answer["error"].as_str().unwrap().contains(word), "{path}: {answer}");
    }
    let listed = server
        .control(
            Method::GET,
            "/resources?prefix=arn:aws:ec2:us-east-1:222222222222:vpc/",
            None,
        )
        .await;
    assert_eq!(listed.1.as_array().unwrap().len(), 2, "refused calls changed nothing");
}

#[tokio::test]
async fn dropped_answer_was_carried_out_and_cut_body_breaks() {
    let server = TestServer::seeded().await;
    let rules = json!([
        {"match": {"path": "/ec2/CreateSecurityGroup"}, "do": {"drop": "after"}},
        {"match": {"path": "/ec2/DescribeSubnets"}, "do": {"cut_body_at": 20}}]);
    server.control(Method::PUT, "/faults", Some(rules)).await;
    let params = format!("&GroupName=lost&GroupDescription=d&VpcId={VPC}");
    assert!(server.ec2("CreateSecurityGroup", &params).await.is_err());
    assert!(server.ec2("DescribeSubnets", "").await.is_err());
    let (status, groups) = server
        .ec2(
            "DescribeSecurityGroups",
            "&Filter.1.Name=group-name&Filter.1.Value.1=lost",
        )
        .await
        .unwrap();
    assert!(
        status == 200 && groups.contains("<groupName>lost</groupName>"),
        "{groups}"
    );
}

#[tokio::test]
async fn restart_keeps_everything() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        state: Some(dir.path().join("state")),
        ..Options::default()
    };
    let server = TestServer::start(options.clone()).await;
    server.control(Method::PUT, "/seed", Some(seed())).await;
    let group = format!("&GroupName=one&GroupDescription=d&VpcId={VPC}");
    server.ec2("CreateSecurityGroup", &group).await.unwrap();
    let (_, before) = server.control(Method::GET, "/resources", None).await;
    let (_, calls) = server.control(Method::GET, "/journal", None).await;
    server.server.stop().await.unwrap();
    let server = TestServer::start(options).await;
    assert_eq!(server.control(Method::GET, "/resources", None).await, (200, before));
    assert_eq!(server.control(Method::GET, "/journal", None).await, (200, calls));
    let (_, again) = server.ec2("CreateSecurityGroup", &group).await.unwrap();
    assert!(again.contains("InvalidGroup.Duplicate"), "{again}");
}

#[tokio::test]
async fn reachable_names_the_hop_that_fails() {
    let server = TestServer::seeded().await;
    let path = format!("/reachable?vpc={VPC}&name=api.one.hypershift.local");
    let why = |answer: (u16, Value)| answer.1["why"].as_str().unwrap_or_default().to_owned();
    assert!(why(server.control(Method::GET, &path, None).await).starts_with("record: "));
    let elsewhere = path.replace(VPC, support::OTHER_VPC);
    assert!(why(server.control(Method::GET, &elsewhere, None).await).starts_with("zone: "));
    let arn = |kind: &str| format!("/resources/arn:aws:ec2:us-east-1:222222222222:{kind}");
    let endpoint =
        json!({"vpc": VPC, "service_id": "vpce-svc-1", "state": "available", "subnets": [SUBNETS[0]], "label": "x"});
    server
        .control(Method::PUT, &arn("vpc-endpoint/vpce-1"), Some(endpoint))
        .await;
    let name = "vpce-1-x.vpce-svc-1.us-east-1.vpce.amazonaws.com";
    let vpcs = json!([{"id": VPC, "region": "us-east-1"}]);
    let zone = json!({"account": "222222222222", "name": "one.hypershift.local", "vpcs": vpcs,
        "records": [{"name": "api.one.hypershift.local", "type": "CNAME", "ttl": 300, "values": [name]}]});
    let zone_path = format!("/resources/arn:aws:route53:::hostedzone/{}", support::ZONE);
    server.control(Method::PUT, &zone_path, Some(zone)).await;
    assert!(why(server.control(Method::GET, &path, None).await).contains("no subnet"));
    let rule = json!({"protocol": "tcp", "ports": [443, 443], "source": {"ipv4": "10.0.0.0/24"}});
    let group = json!({"vpc": VPC, "name": "g", "ingress": [rule]});
    server
        .control(Method::PUT, &arn("security-group/sg-1"), Some(group))
        .await;
    let interface =
        json!({"vpc": VPC, "subnet": SUBNETS[0], "groups": ["sg-1"], "address": "10.0.0.4", "endpoint": "vpce-1"});
    server
        .control(Method::PUT, &arn("network-interface/eni-1"), Some(interface))
        .await;
    assert!(
        why(server
            .control(Method::GET, &format!("{path}&from=10.0.3.7"), None)
            .await)
        .starts_with("security_group: ")
    );
    assert!(why(server.control(Method::GET, &path, None).await).starts_with("endpoint_service: "));
    let service = json!({"load_balancers": [BALANCER]});
    server
        .control(
            Method::PUT,
            "/resources/arn:aws:ec2:us-east-1:111111111111:vpc-endpoint-service/vpce-svc-1",
            Some(service),
        )
        .await;
    let (_, answer) = server.control(Method::GET, &path, None).await;
    assert_eq!(answer["ok"], true, "{answer}");
    server
        .control(Method::DELETE, &format!("/services?load_balancer={BALANCER}"), None)
        .await;
    assert!(why(server.control(Method::GET, &path, None).await).starts_with("service: "));
}
