"""The command line of the probe, see hack/aws-probe."""

import argparse
import json
import sys
import time
import uuid
from functools import cache

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

import base
from probe import Probe, Unclear
from questions import QUESTIONS


class Clock:
    """Real time."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


def clients(region, attempts):
    """Makes boto3's clients, each once; of a session if its keys are given."""

    @cache
    def client(service, keys=(None, None, None)):
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        config = Config(retries={"mode": "standard", "total_max_attempts": attempts})
        return boto3.client(service, region_name=region, config=config, **dict(zip(names, keys)))

    return client


def print_plan():
    print(f"It would make these, each with the tag {base.TAG}:")
    for what, cost in base.PARTS:
        print(f"  {what}: {cost}")
    print(f"    calls {', '.join(base.CALLS)}; with the rights {', '.join(base.RIGHTS)}")
    print("\nThen it would ask, and remove all of that again:")
    for question in QUESTIONS:
        print(f"\n  {question.switch}: {question.asks}")
        print(f"    costs {question.cost}")
        print(f"    calls {', '.join(question.calls)}")
    print("\nNothing was done: that needs --run --account ID.")


def ask_all(probe):
    """Asks each question. The answers, each with its question; a text in place of one says why there is none."""
    for question in QUESTIONS:
        print(f"{question.switch}: {question.asks}", flush=True)
        try:
            yield question, question.ask(probe), None
        except (Unclear, ClientError, BotoCoreError) as error:
            yield question, None, str(error)


def shown(answers):
    """A table of the answers, and the switches as a seed of the simulator has them."""
    rows = [("question", "answer", "switch")]
    switches = {}
    for question, answer, why in answers:
        if why is None:
            switches[question.switch] = round(answer, 1) if isinstance(answer, float) else answer
        answered = json.dumps(switches[question.switch]) if why is None else f"unclear: {why}"
        rows.append((question.asks, answered, question.switch))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    table = ["  ".join((row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2])).rstrip() for row in rows]
    return "\n".join([*table, "", f'"switches": {json.dumps(switches)}'])


def run(region):
    run_id = f"{base.TAG}-{uuid.uuid4().hex[:8]}"
    made_by, asked_by = clients(region, attempts=5), clients(region, attempts=1)
    roles = base.Roles(made_by, run_id, Clock)
    print(f"run {run_id}", flush=True)
    try:
        probe = Probe(asked_by, Clock, roles, base.make(made_by, run_id, roles), run_id)
        print(shown(list(ask_all(probe))))
    finally:
        print("removing what was made", flush=True)
        try:
            base.remove(made_by, Clock)
        except (ClientError, BotoCoreError) as error:
            print(f"not all is removed, try again with --clean: {error}", file=sys.stderr)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="hack/aws-probe", description="Asks AWS what the simulated AWS does not know."
    )
    parser.add_argument("--run", action="store_true", help="ask, for real")
    parser.add_argument("--clean", action="store_true", help="remove what runs left, and take it from one that is under way")
    parser.add_argument("--account", metavar="ID", help="the account that the credentials have to be of")
    parser.add_argument("--region", help="default: as the AWS SDKs find it")
    given = parser.parse_args(arguments)
    if not given.run and not given.clean:
        return print_plan()
    if not given.account:
        parser.error("--account is needed with --run and --clean")
    region = given.region or boto3.Session().region_name
    if not region:
        parser.error("no region: --region or AWS_REGION")
    client = clients(region, attempts=5)
    account = client("sts").get_caller_identity()["Account"]
    if account != given.account:
        parser.error(f"the credentials are of account {account}, not {given.account}")
    return base.remove(client, Clock) if given.clean else run(region)


if __name__ == "__main__":
    sys.exit(main())
