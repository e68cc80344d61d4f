"""Every way of azure-identity to a token that a workload has, and what each says when Entra refuses."""

import base64
import datetime
import json
import time

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.identity import (
    CertificateCredential,
    ChainedTokenCredential,
    ClientAssertionCredential,
    CredentialUnavailableError,
    EnvironmentCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from world import (
    FEDERATION,
    GROUP,
    GUEST,
    GUEST_TENANT,
    MANAGED,
    OWNER,
    READER,
    SCOPE,
    STRANGER,
    TENANT,
    WORKLOAD,
    claims,
    wait_until_expired,
)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """An OpenID issuer: a key, its JWKS, and assertions signed with it."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self.key.public_key().public_numbers()
        modulus, exponent = (n.to_bytes((n.bit_length() + 7) // 8, "big") for n in (numbers.n, numbers.e))
        self.jwks = {
            "keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": base64url(modulus), "e": base64url(exponent)}]
        }

    def assertion(self, **changes):
        now = int(time.time())
        claims = {"iss": FEDERATION["issuer"], "sub": FEDERATION["subject"], "aud": FEDERATION["audience"]}
        claims |= {"iat": now, "nbf": now, "exp": now + 600} | changes
        head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        signed = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64url(signature)}"


@pytest.fixture(scope="module")
def issuer():
    return Issuer()


def may_read(world, credential, **options):
    return world.resources(credential=credential, **options).resource_groups.get(GROUP).name == GROUP


def refusal(credential, scope=SCOPE):
    with pytest.raises(ClientAuthenticationError) as refused:
        credential.get_token(scope)
    return refused.value.message


def test_client_secret_gets_a_token_for_its_principal(world):
    credential = world.credential(OWNER)
    token = credential.get_token(SCOPE)
    said = claims(token)
    assert (said["appid" if "appid" in said else "azp"], said["oid"], said["tid"]) == (OWNER.client_id, OWNER.object_id, TENANT)
    assert 3000 < token.expires_on - time.time() <= 3600
    assert may_read(world, credential)


def test_token_is_kept_until_it_expires(world):
    credential = world.credential(OWNER)
    assert credential.get_token(SCOPE).token == credential.get_token(SCOPE).token


def test_scope_of_either_name_of_arm_is_good(world):
    for scope in ("https://management.azure.com/.default", f"{world.arm}/.default"):
        assert may_read(world, world.credential(OWNER), credential_scopes=[scope])


def test_wrong_secret_is_refused(world):
    assert "AADSTS7000215" in refusal(world.credential(OWNER, secret="another"))


def test_client_of_another_tenant_is_unknown_here(world):
    assert "AADSTS700016" in refusal(world.credential(OWNER, tenant=GUEST_TENANT))


def test_unknown_tenant_is_refused(world):
    with pytest.raises((ClientAuthenticationError, ValueError)) as refused:
        world.credential(OWNER, tenant="99999999-9999-9999-9999-999999999999").get_token(SCOPE)
    assert "AADSTS90002" in str(refused.value) or "authority" in str(refused.value)


def test_unknown_resource_is_refused(world):
    assert "AADSTS500011" in refusal(world.credential(OWNER), "https://unknown.example/.default")


def test_token_for_another_resource_is_not_good_for_arm(world):
    with pytest.raises(ClientAuthenticationError) as refused:
        may_read(world, world.credential(OWNER), credential_scopes=["https://graph.microsoft.com/.default"])
    assert refused.value.status_code == 401
    assert refused.value.error.code == "InvalidAuthenticationTokenAudience"


def test_token_of_another_tenant_is_not_good_for_a_subscription(world):
    with pytest.raises(HttpResponseError) as refused:
        may_read(world, world.credential(GUEST))
    assert (refused.value.status_code, refused.value.error.code) == (401, "InvalidAuthenticationTokenTenant")


def test_principal_without_roles_is_forbidden(world):
    with pytest.raises(HttpResponseError) as refused:
        may_read(world, world.credential(STRANGER))
    assert (refused.value.status_code, refused.value.error.code) == (403, "AuthorizationFailed")
    assert STRANGER.object_id in refused.value.message


def test_expired_token_is_replaced_by_a_new_one(world):
    world.seed(switches={"token_life_s": 3})
    credential = world.credential(OWNER)
    first = credential.get_token(SCOPE)
    client = world.resources(credential=credential)
    client.resource_groups.get(GROUP)
    wait_until_expired(first)
    client.resource_groups.get(GROUP)
    assert credential.get_token(SCOPE).token != first.token
    assert [call["status"] for call in world.journal()] == [200, 200]


def test_token_from_a_clock_ahead_is_not_yet_valid(world):
    world.seed(switches={"token_skew_s": 900})
    with pytest.raises(ClientAuthenticationError) as refused:
        may_read(world, world.credential(OWNER))
    assert refused.value.status_code == 401


def test_federated_assertion_gets_a_token(world, issuer):
    world.seed(jwks=issuer.jwks)
    credential = ClientAssertionCredential(TENANT, WORKLOAD.client_id, issuer.assertion, **world.login())
    assert claims(credential.get_token(SCOPE))["oid"] == WORKLOAD.object_id
    assert may_read(world, credential)


def test_workload_identity_reads_its_assertion_from_the_projected_file(world, issuer, tmp_path, monkeypatch):
    world.seed(jwks=issuer.jwks)
    token_file = tmp_path / "token"
    token_file.write_text(issuer.assertion())
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    monkeypatch.setenv("AZURE_CLIENT_ID", WORKLOAD.client_id)
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token_file))
    assert may_read(world, WorkloadIdentityCredential(**world.login()))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"iss": "https://other.example"}, "AADSTS700211"),
        ({"sub": "system:serviceaccount:other:other"}, "AADSTS700213"),
        ({"aud": "api://Other"}, "AADSTS700212"),
        ({"exp": 1}, "AADSTS700024"),
    ],
    ids=["issuer", "subject", "audience", "expiry"],
)
def test_assertion_that_does_not_match_is_refused(world, issuer, changes, code):
    world.seed(jwks=issuer.jwks)
    credential = ClientAssertionCredential(TENANT, WORKLOAD.client_id, lambda: issuer.assertion(**changes), **world.login())
    assert code in refusal(credential)


def test_assertion_signed_by_another_key_is_refused(world, issuer):
    world.seed(jwks=issuer.jwks)
    credential = ClientAssertionCredential(TENANT, WORKLOAD.client_id, Issuer().assertion, **world.login())
    assert "AADSTS700027" in refusal(credential)


def certified(days=1):
    """A new key with its certificate, which ends after so many days, both in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hyperlink")])
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    begins = ends - datetime.timedelta(days=2)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begins, ends)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, certificate


def by_certificate(world, key, certificate):
    return CertificateCredential(TENANT, WORKLOAD.client_id, certificate_data=key + certificate, **world.login())


def test_certificate_gets_a_token(world):
    key, certificate = certified()
    world.seed(certificates=[certificate.decode()])
    credential = by_certificate(world, key, certificate)
    assert claims(credential.get_token(SCOPE))["oid"] == WORKLOAD.object_id
    assert may_read(world, credential)


def test_certificate_that_is_not_registered_is_refused(world):
    world.seed(certificates=[certified()[1].decode()])
    assert "AADSTS700027" in refusal(by_certificate(world, *certified()))


def test_certificate_that_has_ended_is_refused(world):
    key, certificate = certified(days=-1)
    world.seed(certificates=[certificate.decode()])
    assert "AADSTS1000502" in refusal(by_certificate(world, key, certificate))


@pytest.fixture
def app_service(world, monkeypatch):
    """What the packages find in the environment of an App Service."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", world.identity)
    monkeypatch.setenv("IDENTITY_HEADER", "anything")


def test_managed_identity_of_the_system_gets_a_token(world, app_service):
    credential = ManagedIdentityCredential()
    assert claims(credential.get_token(SCOPE))["oid"] == MANAGED.object_id
    assert may_read(world, credential)


def test_managed_identity_by_client_id_is_that_principal(world, app_service):
    token = ManagedIdentityCredential(client_id=READER.client_id).get_token(SCOPE)
    assert claims(token)["appid" if "appid" in claims(token) else "azp"] == READER.client_id


def test_managed_identity_of_a_machine_gets_a_token(world, monkeypatch):
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", world.control_url)
    credential = ManagedIdentityCredential()
    assert claims(credential.get_token(SCOPE))["oid"] == MANAGED.object_id
    assert may_read(world, credential)


def test_machine_identity_by_client_id_is_that_principal(world, monkeypatch):
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", world.control_url)
    token = ManagedIdentityCredential(client_id=WORKLOAD.client_id).get_token(SCOPE)
    assert claims(token)["oid"] == WORKLOAD.object_id
    with pytest.raises((ClientAuthenticationError, CredentialUnavailableError)) as refused:
        ManagedIdentityCredential(client_id="99999999-9999-9999-9999-999999999999").get_token(SCOPE)
    assert "Identity not found" in refused.value.message


def test_unknown_managed_identity_is_unavailable(world, app_service):
    with pytest.raises((ClientAuthenticationError, CredentialUnavailableError)):
        ManagedIdentityCredential(client_id="99999999-9999-9999-9999-999999999999").get_token(SCOPE)


def test_credential_from_the_environment_or_the_next_of_a_chain(world, monkeypatch):
    chain = ChainedTokenCredential(EnvironmentCredential(**world.login()), world.credential(STRANGER))
    assert claims(chain.get_token(SCOPE))["oid"] == STRANGER.object_id
    for name, value in {"TENANT_ID": TENANT, "CLIENT_ID": OWNER.client_id, "CLIENT_SECRET": OWNER.secret}.items():
        monkeypatch.setenv(f"AZURE_{name}", value)
    assert claims(EnvironmentCredential(**world.login()).get_token(SCOPE))["oid"] == OWNER.object_id
