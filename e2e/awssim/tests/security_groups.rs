//! Security groups: merged rules, calls that are taken whole or not at all, names, groups that others refer to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::*;

fn rule<'a>(group: &'a str, port: &'a str, cidr: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("GroupId", group),
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", port),
        ("IpPermissions.1.ToPort", port),
        ("IpPermissions.1.IpRanges.1.CidrIp", cidr),
        ("IpPermissions.1.IpRanges.1.Description", "Control plane service"),
    ]
}

#[test]
fn rules_are_shown_merged_and_taken_all_or_none() {
    let mut aws = TestAws::default();
    let group = aws.group("one");
    for cidr in ["10.0.0.0/16", "10.1.7.9/16"] {
        aws.ec2(&consumer(), "AuthorizeSecurityGroupIngress", &rule(&group, "443", cidr))
            .ok();
    }
    let show = |aws: &mut TestAws| {
        aws.ec2(&consumer(), "DescribeSecurityGroups", &[("GroupId.1", &group)])
            .ok()
    };
    let shown = show(&mut aws);
    assert_eq!(shown.values("fromPort"), ["443"], "one permission");
    assert_eq!(shown.values("cidrIp"), ["10.0.0.0/16", "10.1.0.0/16", "0.0.0.0/0"]);
    let mut two = rule(&group, "443", "10.2.0.0/16");
    two.extend([("IpPermissions.1.IpRanges.2.CidrIp", "10.0.0.0/16")]);
    let refused = aws.ec2(&consumer(), "AuthorizeSecurityGroupIngress", &two);
    assert_eq!(refused.code(), "InvalidPermission.Duplicate");
    assert_eq!(show(&mut aws).values("cidrIp").len(), 3, "nothing was added");
    aws.ec2(
        &consumer(),
        "RevokeSecurityGroupIngress",
        &rule(&group, "443", "10.0.0.0/16"),
    )
    .ok();
    let again = aws.ec2(
        &consumer(),
        "RevokeSecurityGroupIngress",
        &rule(&group, "443", "10.0.0.0/16"),
    );
    assert_eq!(again.code(), "InvalidPermission.NotFound");
}

#[test]
fn name_of_a_group_is_unique_in_its_vpc() {
    let mut aws = TestAws::default();
    aws.group("one");
    let params = [("GroupName", "one"), ("GroupDescription", "d"), ("VpcId", VPC)];
    assert_eq!(
        aws.ec2(&consumer(), "CreateSecurityGroup", &params).code(),
        "InvalidGroup.Duplicate"
    );
    let other = [("GroupName", "one"), ("GroupDescription", "d"), ("VpcId", OTHER_VPC)];
    aws.ec2(&consumer(), "CreateSecurityGroup", &other).ok();
}

#[test]
fn group_that_another_refers_to_is_kept() {
    let mut aws = TestAws::default();
    let (one, two) = (aws.group("one"), aws.group("two"));
    let refers = [
        ("GroupId", two.as_str()),
        ("IpPermissions.1.IpProtocol", "-1"),
        ("IpPermissions.1.Groups.1.GroupId", one.as_str()),
    ];
    aws.ec2(&consumer(), "AuthorizeSecurityGroupIngress", &refers).ok();
    assert_eq!(
        aws.ec2(&consumer(), "DeleteSecurityGroup", &[("GroupId", &one)]).code(),
        "DependencyViolation"
    );
    aws.ec2(&consumer(), "RevokeSecurityGroupIngress", &refers).ok();
    aws.ec2(&consumer(), "DeleteSecurityGroup", &[("GroupId", &one)]).ok();
}

#[test]
fn endpoint_removed_behind_everybodys_back_holds_no_group() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (endpoint, group) = aws.endpoint(&service);
    let arn = format!("arn:aws:ec2:{REGION}:222222222222:vpc-endpoint/{endpoint}");
    assert!(aws.aws.delete_resource(aws.now, &arn));
    aws.ec2(&consumer(), "DeleteSecurityGroup", &[("GroupId", &group)]).ok();
}
