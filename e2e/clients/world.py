"""One simulator as a test sees it: a small seeded Azure, its addresses, its control calls, and clients for it."""

import base64
import json
import time
import urllib.error
import urllib.request

from azure.identity import ClientSecretCredential
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.privatedns import PrivateDnsManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient
from azure.mgmt.resource.subscriptions import SubscriptionClient

TENANT = "11111111-1111-1111-1111-111111111111"
GUEST_TENANT = "11111111-1111-1111-1111-222222222222"
SUBSCRIPTION = "33333333-3333-3333-3333-333333333333"
GUEST_SUBSCRIPTION = "33333333-3333-3333-3333-444444444444"
LOCATION = "westus2"
GROUP = "rg"
GROUP_ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
PROVIDER_ID = f"{GROUP_ID}/providers/Microsoft.Network"
VNET_ID = f"{PROVIDER_ID}/virtualNetworks/vnet"
SCOPE = "https://management.core.windows.net//.default"
FEDERATION = {"issuer": "https://issuer.example", "subject": "system:serviceaccount:hyperlink:hyperlink", "audience": "api://AzureADTokenExchange"}


class Principal:
    """Who calls; `number` makes its ids, which have nothing in common with another's."""

    def __init__(self, number, tenant=TENANT, secret=None):
        self.client_id = f"22222222-2222-2222-2222-{number:012}"
        self.object_id = f"44444444-4444-4444-4444-{number:012}"
        self.tenant = tenant
        self.secret = secret


OWNER = Principal(1, secret="owner's secret")
READER = Principal(2, secret="reader's secret")
STRANGER = Principal(3, secret="stranger's secret")
WORKLOAD = Principal(4)
MANAGED = Principal(5)
GUEST = Principal(6, tenant=GUEST_TENANT, secret="guest's secret")


def seed(jwks=None, subscription=None, certificates=()):
    """Two tenants, a principal of each kind, and in the first subscription a resource group with a VNet."""

    def tenant(name):
        principals = []
        for principal in (OWNER, READER, STRANGER, WORKLOAD, MANAGED, GUEST):
            if principal.tenant == name:
                entry = {"client_id": principal.client_id, "object_id": principal.object_id}
                if principal.secret:
                    entry["secret"] = principal.secret
                if principal is WORKLOAD:
                    entry["federated"] = [FEDERATION | {"jwks": jwks or {"keys": []}}]
                    entry["certificates"] = list(certificates)
                principals.append(entry)
        return {"id": name, "principals": principals}

    def role(principal, subscription, action):
        return {"object_id": principal.object_id, "scope": f"/subscriptions/{subscription}", "actions": [action]}

    return {
        "tenants": [tenant(TENANT), tenant(GUEST_TENANT)],
        "subscriptions": [
            {"id": SUBSCRIPTION, "tenant": TENANT} | (subscription or {}),
            {"id": GUEST_SUBSCRIPTION, "tenant": GUEST_TENANT},
        ],
        "roles": [role(principal, SUBSCRIPTION, "*") for principal in (OWNER, WORKLOAD, MANAGED)]
        + [role(READER, SUBSCRIPTION, "*/read"), role(GUEST, GUEST_SUBSCRIPTION, "*")],
        "resources": [
            {"id": GROUP_ID, "location": LOCATION},
            {
                "id": VNET_ID,
                "location": LOCATION,
                "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
            },
            {"id": f"{VNET_ID}/subnets/nodes", "properties": {"addressPrefix": "10.0.0.0/24"}},
            {"id": f"/subscriptions/{GUEST_SUBSCRIPTION}/resourceGroups/{GROUP}", "location": LOCATION},
            {
                "id": f"/subscriptions/{GUEST_SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/guest",
                "location": LOCATION,
                "properties": {
                    "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
                    "subnets": [{"name": "workers", "properties": {"addressPrefix": "10.1.0.0/24"}}],
                },
            },
        ],
    }


def eventually(condition, seconds=20):
    """Waits until the condition holds, for what no poller waits for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


def claims(token):
    payload = token.token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def wait_until_expired(token):
    """By its claim: azure-identity's `expires_on` counts from before its request, up to a second too early."""
    expires = claims(token)["exp"]
    while time.time() < expires:
        time.sleep(0.1)


class World:
    def __init__(self, addresses):
        """`addresses`: what `armsim serve` prints when it is ready."""
        self.arm = addresses["arm"]
        self.authority = addresses["authority"]
        self.control_url = addresses["control"]
        self.identity = addresses["identity"]
        self.ca = addresses["ca"]
        self._clients = []

    # Control calls: they go past the clients under test.

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control_url + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from error

    def seed(self, resources=(), jwks=None, subscription=None, certificates=(), **parts):
        """Replaces everything: `resources` besides the usual ones, `subscription` what is special of it, `parts` the seed's other keys."""
        world = seed(jwks, subscription, certificates) | parts
        world["resources"] += resources
        self.control("PUT", "/seed", world)

    def fault(self, match, do):
        self.control("PUT", "/faults", [{"match": match, "do": do}])

    def clock(self, **changes):
        self.control("POST", "/clock", changes)

    def journal(self):
        return self.control("GET", "/journal")

    # Clients.

    def credential(self, who=OWNER, **options):
        return ClientSecretCredential(
            options.pop("tenant", who.tenant), who.client_id, options.pop("secret", who.secret), **self.login(), **options
        )

    def login(self):
        """What every credential has to know of this cloud."""
        return {"authority": self.authority, "disable_instance_discovery": True, "connection_verify": self.ca}

    def client(self, kind, *arguments, credential=None, **options):
        options.setdefault("credential_scopes", [SCOPE])
        client = kind(
            credential or self.credential(), *arguments, base_url=self.arm, connection_verify=self.ca, **options
        )
        self._clients.append(client)
        return client

    def network(self, **options):
        return self.client(NetworkManagementClient, options.pop("subscription", SUBSCRIPTION), **options)

    def dns(self, **options):
        return self.client(PrivateDnsManagementClient, options.pop("subscription", SUBSCRIPTION), **options)

    def resources(self, **options):
        return self.client(ResourceManagementClient, options.pop("subscription", SUBSCRIPTION), **options)

    def subscriptions(self, **options):
        return self.client(SubscriptionClient, **options)

    def close(self):
        while self._clients:
            self._clients.pop().close()
