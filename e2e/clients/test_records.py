"""Record sets of all types, their pages, and conditions on them."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.mgmt.privatedns import models

from world import GROUP, PROVIDER_ID

ZONE = "example.internal"
OF_EACH_TYPE = {
    "A": {"a_records": [models.ARecord(ipv4_address="10.0.0.4"), models.ARecord(ipv4_address="10.0.0.5")]},
    "AAAA": {"aaaa_records": [models.AaaaRecord(ipv6_address="fd00::4")]},
    "CNAME": {"cname_record": models.CnameRecord(cname="target.example.internal")},
    "MX": {"mx_records": [models.MxRecord(preference=10, exchange="mail.example.internal")]},
    "PTR": {"ptr_records": [models.PtrRecord(ptrdname="host.example.internal")]},
    "SRV": {"srv_records": [models.SrvRecord(priority=1, weight=2, port=3, target="srv.example.internal")]},
    "TXT": {"txt_records": [models.TxtRecord(value=["one", "two"])]},
}


@pytest.fixture
def records(world):
    world.seed(resources=[{"id": f"{PROVIDER_ID}/privateDnsZones/{ZONE}", "location": "global"}])
    return world.dns().record_sets


def put(records, kind, name, **options):
    body = models.RecordSet(ttl=300, **OF_EACH_TYPE[kind])
    return records.create_or_update(GROUP, ZONE, kind, name, body, **options)


@pytest.mark.parametrize("kind", OF_EACH_TYPE)
def test_record_set_lives_from_create_to_delete(records, kind):
    made = put(records, kind, "name")
    assert (made.name, made.fqdn, made.ttl, made.is_auto_registered) == ("name", f"name.{ZONE}.", 300, False)
    assert made.type == f"Microsoft.Network/privateDnsZones/{kind}"
    ((field, value),) = OF_EACH_TYPE[kind].items()
    read = records.get(GROUP, ZONE, kind, "name")
    assert getattr(read, field) == value
    assert [r.name for r in records.list_by_type(GROUP, ZONE, kind)] == ["name"]
    body = models.RecordSet(ttl=60, metadata={"who": "me"}, **OF_EACH_TYPE[kind])
    patched = records.update(GROUP, ZONE, kind, "name", body)
    assert (patched.ttl, patched.metadata) == (60, {"who": "me"})
    records.delete(GROUP, ZONE, kind, "name")
    with pytest.raises(ResourceNotFoundError):
        records.get(GROUP, ZONE, kind, "name")
    # Gone already is good enough.
    records.delete(GROUP, ZONE, kind, "name")


def test_start_of_authority_is_there_and_can_be_changed(records):
    soa = records.get(GROUP, ZONE, "SOA", "@")
    assert (soa.fqdn, soa.soa_record.minimum_ttl) == (f"{ZONE}.", 10)
    changed = models.RecordSet(ttl=600, soa_record=models.SoaRecord(email="me.example.com", refresh_time=7200))
    answer = records.update(GROUP, ZONE, "SOA", "@", changed)
    assert (answer.ttl, answer.soa_record.email, answer.soa_record.refresh_time) == (600, "me.example.com", 7200)
    with pytest.raises(HttpResponseError):
        records.delete(GROUP, ZONE, "SOA", "@")


def test_apex_and_wildcard_are_names(records):
    assert put(records, "A", "@").fqdn == f"{ZONE}."
    assert put(records, "A", "*").fqdn == f"*.{ZONE}."
    assert put(records, "A", "*.apps").fqdn == f"*.apps.{ZONE}."


def test_write_replaces_the_set(records):
    put(records, "A", "name")
    one = models.RecordSet(ttl=300, a_records=[models.ARecord(ipv4_address="10.0.0.9")])
    assert [r.ipv4_address for r in records.create_or_update(GROUP, ZONE, "A", "name", one).a_records] == ["10.0.0.9"]
    empty = records.create_or_update(GROUP, ZONE, "A", "empty", models.RecordSet(ttl=300))
    assert empty.a_records == []


def test_all_records_are_listed_in_pages(records):
    for n in range(5):
        put(records, "A", f"a{n}")
    put(records, "TXT", "text")
    pages = [[r.name for r in page] for page in records.list(GROUP, ZONE, top=3).by_page()]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert sorted(name for page in pages for name in page) == ["@", "a0", "a1", "a2", "a3", "a4", "text"]
    by_type = [[r.name for r in page] for page in records.list_by_type(GROUP, ZONE, "A", top=4).by_page()]
    assert by_type == [["a0", "a1", "a2", "a3"], ["a4"]]


def test_list_can_be_narrowed_by_the_end_of_the_name(records):
    for name in ("api.one", "api.two", "apitwo"):
        put(records, "A", name)
    assert [r.name for r in records.list_by_type(GROUP, ZONE, "A", recordsetnamesuffix="two")] == ["api.two"]
    assert [r.name for r in records.list(GROUP, ZONE, recordsetnamesuffix="one")] == ["api.one"]


def test_conditions_on_a_record_set_fail_at_once(records):
    first = put(records, "A", "name", match_condition=MatchConditions.IfMissing)
    with pytest.raises(ResourceExistsError) as exists:
        put(records, "A", "name", match_condition=MatchConditions.IfMissing)
    assert exists.value.status_code == 412
    second = put(records, "A", "name", etag=first.etag, match_condition=MatchConditions.IfNotModified)
    assert second.etag != first.etag
    stale = {"etag": first.etag, "match_condition": MatchConditions.IfNotModified}
    with pytest.raises(ResourceModifiedError) as modified:
        put(records, "A", "name", **stale)
    assert modified.value.status_code == 412
    assert "has been modified (etag mismatch)" in str(modified.value)
    with pytest.raises(ResourceModifiedError):
        records.delete(GROUP, ZONE, "A", "name", **stale)
    records.delete(GROUP, ZONE, "A", "name", etag=second.etag, match_condition=MatchConditions.IfNotModified)


def test_record_in_a_missing_zone_is_refused(records):
    body = models.RecordSet(ttl=300, **OF_EACH_TYPE["A"])
    with pytest.raises(ResourceNotFoundError) as missing:
        records.create_or_update(GROUP, "missing.internal", "A", "name", body)
    assert missing.value.error.code == "ParentResourceNotFound"


@pytest.mark.parametrize(
    ("kind", "name", "body"),
    [
        ("A", "bad", {"ttl": 300, "a_records": [models.ARecord(ipv4_address="nonsense")]}),
        ("A", "many", {"ttl": 300, "a_records": [models.ARecord(ipv4_address=f"10.0.0.{n}") for n in range(4, 25)]}),
        ("CNAME", "@", {"ttl": 300, **OF_EACH_TYPE["CNAME"]}),
        ("A", "alias", {"ttl": 300, **OF_EACH_TYPE["A"]}),
    ],
    ids=["address", "21-records", "cname-at-apex", "beside-a-cname"],
)
def test_bad_record_set_is_refused(records, kind, name, body):
    put(records, "CNAME", "alias")
    with pytest.raises(HttpResponseError) as refused:
        records.create_or_update(GROUP, ZONE, kind, name, models.RecordSet(**body))
    assert refused.value.status_code in (400, 409)
