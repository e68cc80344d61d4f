"""hack/aws-probe: its answers on the simulator, whose switches are set one way and the other; what it makes and removes,
on moto, which has all of that; and that it does nothing unasked."""

import sys
from collections import defaultdict
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from cloud import CONSUMER, NLB, PROVIDER, REGION, ROLE, SUBNETS, VPC, ZONE, seed

sys.path.insert(0, str(Path(__file__).parents[3] / "hack" / "probe"))
import base
import main
from probe import Probe, Unclear
from questions import QUESTIONS

# The default of each switch, and another value.
SWITCHES = {
    "describe_lag_s": (1.0, 5.0),
    "tag_lag_s": (2.0, 8.0),
    "spent_token_is_refused": (True, False),
    "deleting_blocks_delete": (True, False),
    "zone_swap_is_refused": (True, False),
    "subnets_are_required": (False, True),
    "authorize_is_atomic": (True, False),
    "connection_filter_is_refused": (True, False),
    "gone_principal_shows_id": (True, False),
    "ec2_expired_code": ("RequestExpired", "ExpiredToken"),
    "batch_error_has_messages": (False, True),
    "zone_busy_s": (0.2, 3.0),
    "rejected_listed_s": (3600.0, 60.0),
}


class Clock:
    """The simulator's, which stands still but for this."""

    def __init__(self, cloud):
        self.cloud, self.slept = cloud, 0.0
        cloud.control("POST", "/clock", {"freeze": True})

    def now(self):
        return self.slept

    def sleep(self, seconds):
        self.slept += seconds
        self.cloud.control("POST", "/clock", {"advance_s": seconds})


class GoneRoles:
    """The simulator has no IAM to make roles with: this one is gone from the beginning."""

    def make(self, _):
        return f"{ROLE}-that-is-gone"

    def remove(self, _):
        pass


def on_the_simulator(cloud, switches):
    """A probe on the simulator with these switches, and the actions that it calls from now on."""
    everything = seed()
    everything["switches"] = switches
    for resource in everything["resources"]:
        resource["id"] = resource["id"].replace(PROVIDER, CONSUMER)
        if resource["id"].endswith(SUBNETS[2]):
            resource["zone_id"] = "use1-az1"
    cloud.control("PUT", "/seed", everything)
    clock, called, made = Clock(cloud), set(), {}
    clock.sleep(5)

    def client(service, keys=None):
        if (service, keys) not in made:
            key, secret, token = keys or ("AKIACONSUMER", None, None)
            made[service, keys] = cloud.client(service, key=key, secret=secret, token=token)
            note = lambda model, **_: called.add(f"{model.service_model.endpoint_prefix}:{model.name}")
            made[service, keys].meta.events.register("before-call", note)
        return made[service, keys]

    subnets = [SUBNETS[0], SUBNETS[2], SUBNETS[1]]
    balancer = NLB.replace(PROVIDER, CONSUMER)
    given = base.Base(VPC, subnets, balancer, ZONE, "one.hypershift.local", ROLE)
    return Probe(client, clock, GoneRoles(), given, f"{base.TAG}-1"), called


@pytest.mark.parametrize("way", [0, 1])
def test_probe_finds_the_switches_as_they_are(cloud, way):
    switches = {switch: values[way] for switch, values in SWITCHES.items()}
    probe, _ = on_the_simulator(cloud, switches)
    answers = list(main.ask_all(probe))
    unclear = {question.switch: why for question, _, why in answers if why}
    assert not unclear
    found = {question.switch: answer for question, answer, _ in answers}
    # Times are found between one poll and the next.
    times = {switch: value for switch, value in switches.items() if isinstance(value, float)}
    polls = {"zone_busy_s": 0.06, "rejected_listed_s": 15}
    assert all(found.pop(switch) == pytest.approx(value, abs=polls.get(switch, 0.3)) for switch, value in times.items())
    assert found == {switch: value for switch, value in switches.items() if switch not in times}
    left = [one["id"] for one in cloud.control("GET", "/resources?prefix=arn:aws:ec2") if base.TAG in str(one["tags"])]
    assert not [one for one in left if "security-group" in one or "vpc-endpoint" in one]


def test_plan_names_every_call(cloud):
    probe, called = on_the_simulator(cloud, {})
    differ = defaultdict(list)
    for question in QUESTIONS:
        called.clear()
        question.ask(probe)
        beside_iam = {call for call in question.calls if not call.startswith("iam:")}
        if called != beside_iam:
            differ[question.switch] = sorted(called ^ beside_iam)
    assert not differ
    assert {question.switch for question in QUESTIONS} == SWITCHES.keys()


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation", "VpcEndpointLimitExceeded"])
@pytest.mark.parametrize(
    "switch, action",
    [
        ("subnets_are_required", "CreateVpcEndpoint"),
        ("zone_swap_is_refused", "ModifyVpcEndpoint"),
        ("connection_filter_is_refused", "DescribeVpcEndpointConnections"),
    ],
)
def test_refusal_of_another_cause_is_no_answer(cloud, switch, action, code):
    probe, _ = on_the_simulator(cloud, {})
    rule = {"match": {"path": f"/{action}$"}, "do": {"status": 400, "code": code}}
    cloud.control("PUT", "/faults", [rule])
    asked = next(question for question in QUESTIONS if question.switch == switch)
    with pytest.raises(Unclear, match=code):
        asked.ask(probe)


def test_probe_removes_what_it_made_and_nothing_else(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        client = main.clients(REGION, 1)
        ec2 = client("ec2")
        others = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        client("iam").create_role(RoleName=f"{base.TAG}-of-others", AssumeRolePolicyDocument="{}")
        route53 = client("route53")
        config = {"PrivateZone": False, "Comment": base.TAG}
        route53.create_hosted_zone(Name="others.internal", CallerReference="others", HostedZoneConfig=config)
        before = remains(client)
        called = calls_of(client)
        clock = type("Clock", (), {"sleep": lambda _, __: None})()
        roles = base.Roles(client, f"{base.TAG}-1", clock)
        made = base.make(client, f"{base.TAG}-1", roles)
        zones = ec2.describe_subnets(SubnetIds=made.subnets)["Subnets"]
        zones = {subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in zones}
        assert zones[made.subnets[0]] == zones[made.subnets[1]] != zones[made.subnets[2]]
        assert len(remains(client)) == len(before) + 7
        base.remove(client, clock)
        assert remains(client) == before and others in before
        of_leftovers = {
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteVpcEndpointServiceConfigurations",
            "ec2:DeleteVpcEndpoints",
            "route53:ChangeResourceRecordSets",
        }
        assert called == set(base.CALLS) - of_leftovers


def calls_of(client):
    """The actions that are called from now on, as IAM names them."""
    called = set()
    services = {"elbv2": "elasticloadbalancing"}
    for service in ("ec2", "elbv2", "route53", "iam", "sts"):
        prefix = services.get(service, service)
        note = lambda model, prefix=prefix, **_: called.add(f"{prefix}:{model.name}")
        client(service).meta.events.register("before-call", note)
    return called


def remains(client):
    """What there is of all that a probe makes."""
    ec2 = client("ec2")
    return {
        *(one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]),
        *(one["SubnetId"] for one in ec2.describe_subnets()["Subnets"]),
        *(one["LoadBalancerArn"] for one in client("elbv2").describe_load_balancers()["LoadBalancers"]),
        *(one["Id"] for one in client("route53").list_hosted_zones()["HostedZones"]),
        *(one["Arn"] for one in client("iam").list_roles()["Roles"]),
    }


def test_nothing_is_done_unasked(monkeypatch, capsys):
    monkeypatch.setattr(boto3, "client", lambda *_, **__: pytest.fail("a call"))
    assert main.main([]) is None
    printed = capsys.readouterr().out
    assert "Nothing was done" in printed
    assert all(question.switch in printed for question in QUESTIONS)
    with pytest.raises(SystemExit):
        main.main(["--run", "--region", REGION])


@pytest.mark.parametrize("asked", ["--run", "--clean"])
def test_another_account_is_refused(capsys, asked):
    with mock_aws(), pytest.raises(SystemExit):
        main.main([asked, "--account", CONSUMER, "--region", REGION])
    assert f"of account 123456789012, not {CONSUMER}" in capsys.readouterr().err


def test_answers_are_a_table_and_a_seed():
    answers = [(QUESTIONS[0], 0.25000001, None), (QUESTIONS[2], True, None), (QUESTIONS[3], None, "why")]
    table = main.shown(answers)
    assert '"switches": {"describe_lag_s": 0.3, "authorize_is_atomic": true}' in table
    assert "unclear: why" in table
