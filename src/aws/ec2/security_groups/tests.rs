use hyperlink_engine::client::{Execution, WriteError};
use hyperlink_engine::failure::Class;

use super::*;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::ec2::filter;

fn ec2(sample: &Sample) -> Ec2 {
    Ec2(sample.client.clone())
}

fn rule(cidr: &str) -> Rule {
    Rule {
        protocol: "tcp".into(),
        ports: Some((443, 443)),
        cidr: cidr.into(),
        description: Some("Control plane service".into()),
    }
}

#[tokio::test]
async fn merged_rules_of_a_group_are_read_one_by_one() {
    let range =
        |field, cidr| format!("<item><{field}>{cidr}</{field}><description>Control plane service</description></item>");
    let body = format!(
        "<DescribeSecurityGroupsResponse><securityGroupInfo><item><ownerId>1</ownerId><groupId>sg-1</groupId>\
        <groupName>n\
         </groupName><groupDescription>d</groupDescription><vpcId>vpc-1</vpcId><ipPermissions><item><ipProtocol>tcp\
         </ipProtocol><fromPort>443</fromPort><toPort>443</toPort><groups/><ipRanges>{}{}</ipRanges><ipv6Ranges>{}\
         </ipv6Ranges><prefixListIds/></item><item><ipProtocol>-1</ipProtocol><ipRanges>\
         <item><cidrIp>10.9.0.0/16</cidrIp>\
         </item></ipRanges></item></ipPermissions>\
         <ipPermissionsEgress><item><ipProtocol>-1</ipProtocol><ipRanges><item>\
         <cidrIp>0.0.0.0/0</cidrIp></item></ipRanges></item></ipPermissionsEgress></item></securityGroupInfo>\
         </DescribeSecurityGroupsResponse>",
        range("cidrIp", "10.0.0.0/16"),
        range("cidrIp", "10.1.0.0/16"),
        range("cidrIpv6", "fd00::/64"),
    );
    let sample = Sample::answering(&body);
    let selection = Selection::Filters(vec![filter("group-name", "n"), filter("vpc-id", "vpc-1")]);
    let found = ec2(&sample).security_groups(reconcile(), &selection).await.unwrap();
    let of_all = Rule {
        protocol: "-1".into(),
        ports: None,
        cidr: "10.9.0.0/16".into(),
        description: None,
    };
    let expected = [rule("10.0.0.0/16"), rule("10.1.0.0/16"), rule("fd00::/64"), of_all];
    assert_eq!((found.len(), &found[0].ingress[..]), (1, &expected[..]));
}

#[tokio::test]
async fn rules_are_sent_in_the_list_of_their_address_family() {
    let sample = Sample::answering(
        "<AuthorizeSecurityGroupIngressResponse><return>true</return></AuthorizeSecurityGroupIngressResponse>",
    );
    let rules = [rule("10.0.0.0/16"), rule("fd00::/64")];
    assert_eq!(
        ec2(&sample).authorize_ingress(reconcile(), "sg-1", &rules).await,
        Ok(())
    );
    assert_eq!(
        sample.form(),
        "Action=AuthorizeSecurityGroupIngress & GroupId=sg-1 & IpPermissions.1.IpProtocol=tcp \
         & IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16 & IpPermissions.1.FromPort=443 & IpPermissions.1.ToPort=443 \
         & IpPermissions.1.IpRanges.1.Description=Control plane service & IpPermissions.2.IpProtocol=tcp \
         & IpPermissions.2.Ipv6Ranges.1.CidrIpv6=fd00::/64 & IpPermissions.2.FromPort=443 & IpPermissions.2.ToPort=443 \
         & IpPermissions.2.Ipv6Ranges.1.Description=Control plane service"
    );
}

#[tokio::test]
async fn rule_that_is_already_gone_is_an_error_of_that_class() {
    let sample = Sample::new([refusal(400, "InvalidPermission.NotFound")]);
    let sent = ec2(&sample)
        .revoke_ingress(reconcile(), "sg-1", &[rule("10.0.0.0/16")])
        .await;
    assert!(matches!(sent, Err(WriteError::Failed(error)) if error.class == Class::Gone));
}

#[tokio::test]
async fn group_is_created_and_deleted() {
    let sample =
        Sample::answering("<CreateSecurityGroupResponse><groupId>sg-1</groupId></CreateSecurityGroupResponse>");
    let new = NewSecurityGroup {
        name: "n".into(),
        description: "d".into(),
        vpc_id: "vpc-1".into(),
        tags: Tags::new(),
    };
    let made = ec2(&sample).create_security_group(reconcile(), &new).await;
    assert_eq!(made.as_deref(), Ok("sg-1"));
    let form = "Action=CreateSecurityGroup & GroupName=n & GroupDescription=d & VpcId=vpc-1";
    assert_eq!(sample.form(), form);

    let sample = Sample::new([
        answer(
            200,
            "<DeleteSecurityGroupResponse><return>true</return></DeleteSecurityGroupResponse>",
        ),
        refusal(400, "InvalidGroup.NotFound"),
        refusal(400, "DependencyViolation"),
    ]);
    let calls = ec2(&sample);
    let delete = async || calls.delete_security_group(reconcile(), "sg-1").await;
    assert_eq!(delete().await, Ok(Execution::Complete));
    assert_eq!(delete().await, Ok(Execution::NothingThere));
    assert!(matches!(delete().await, Err(WriteError::Failed(error)) if error.class == Class::Busy));
}
