// Package clients holds Microsoft's Go packages against the simulated Azure, in the versions that HyperShift uses where
// it uses them. ARMSIM_WORLDS is a JSON array of the lines that `armsim serve` prints; a test takes one of them, seeds it
// anew, and gives it back.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

const (
	tenant       = "11111111-1111-1111-1111-111111111111"
	subscription = "33333333-3333-3333-3333-333333333333"
	location     = "westus2"
	group        = "rg"
	groupID      = "/subscriptions/" + subscription + "/resourceGroups/" + group
	providerID   = groupID + "/providers/Microsoft.Network"
	vnetID       = providerID + "/virtualNetworks/vnet"
	nodesID      = vnetID + "/subnets/nodes"
	scope        = "https://management.core.windows.net//.default"
)

// A principal of the seeded tenant.
type principal struct{ clientID, objectID, secret string }

var (
	owner    = principal{"22222222-2222-2222-2222-000000000001", "44444444-4444-4444-4444-000000000001", "owner's secret"}
	workload = principal{"22222222-2222-2222-2222-000000000002", "44444444-4444-4444-4444-000000000002", ""}
	certain  = principal{"22222222-2222-2222-2222-000000000003", "44444444-4444-4444-4444-000000000003", ""}
)

type object = map[string]any

// The simulator that a test has for itself.
type world struct {
	t         *testing.T
	ctx       context.Context
	client    *http.Client
	Arm       string `json:"arm"`
	Authority string `json:"authority"`
	Control   string `json:"control"`
	CA        string `json:"ca"`
}

var free = make(chan world, 64)

func TestMain(m *testing.M) {
	var worlds []world
	if err := json.Unmarshal([]byte(os.Getenv("ARMSIM_WORLDS")), &worlds); err != nil {
		fmt.Fprintln(os.Stderr, "ARMSIM_WORLDS: a JSON array of the lines that `armsim serve` prints:", err)
		os.Exit(2)
	}
	for _, one := range worlds {
		free <- one
	}
	os.Exit(m.Run())
}

// Waits for a free simulator, and seeds it with a principal of each kind and a resource group that has a network.
func newWorld(t *testing.T, seeded ...object) *world {
	t.Parallel()
	w := <-free
	given := w
	t.Cleanup(func() { free <- given })
	w.t = t
	w.client = trusting(t, w.CA)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.seed(seeded...)
	return &w
}

// Replaces everything in the simulator: resources besides the usual ones.
func (w *world) seed(resources ...object) { w.seedWith(nil, nil, resources...) }

// As seed, with what makes two of the principals known: a JWKS, and certificates in PEM.
func (w *world) seedWith(jwks any, certificates []string, resources ...object) {
	if jwks == nil {
		jwks = object{"keys": []any{}}
	}
	federated := []object{{"issuer": issuer, "subject": subject, "audience": audience, "jwks": jwks}}
	w.control("PUT", "/seed", object{
		"tenants": []object{{"id": tenant, "principals": []object{
			{"client_id": owner.clientID, "object_id": owner.objectID, "secret": owner.secret},
			{"client_id": workload.clientID, "object_id": workload.objectID, "federated": federated},
			{"client_id": certain.clientID, "object_id": certain.objectID, "certificates": append([]string{}, certificates...)},
		}}},
		"subscriptions": []object{{"id": subscription, "tenant": tenant}},
		"roles": []object{
			{"object_id": owner.objectID, "scope": "/subscriptions/" + subscription, "actions": []string{"*"}},
			{"object_id": workload.objectID, "scope": "/subscriptions/" + subscription, "actions": []string{"*"}},
			{"object_id": certain.objectID, "scope": "/subscriptions/" + subscription, "actions": []string{"*"}},
		},
		"resources": append([]object{
			{"id": groupID, "location": location},
			{"id": vnetID, "location": location, "properties": object{"addressSpace": object{"addressPrefixes": []string{"10.0.0.0/16"}}}},
			{"id": nodesID, "properties": object{"addressPrefix": "10.0.0.0/24"}},
		}, resources...),
	}, nil)
}

// A control call: it goes past the packages under test.
func (w *world) control(method, path string, body, answer any) {
	w.t.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.ctx, method, w.Control+path, bytes.NewReader(sent))
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, read, err)
	}
	if answer != nil {
		if err := json.Unmarshal(read, answer); err != nil {
			w.t.Fatal(err)
		}
	}
}

// One fault rule, the only one in force.
func (w *world) fault(match, do object) {
	w.control("PUT", "/faults", []object{{"match": match, "do": do}}, nil)
}

// A call of the journal.
type call struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Status  int    `json:"status"`
	Changed bool   `json:"changed"`
}

func (w *world) journal() (calls []call) {
	w.control("GET", "/journal", nil, &calls)
	return calls
}

// This cloud, as every client has to be told of it.
func (w *world) core() azcore.ClientOptions {
	return azcore.ClientOptions{
		Cloud: cloud.Configuration{
			ActiveDirectoryAuthorityHost: w.Authority,
			Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: w.Arm, Audience: "https://management.core.windows.net/"},
			},
		},
		Transport: w.client,
		Retry:     policy.RetryOptions{RetryDelay: 100 * time.Millisecond},
	}
}

// Options of the packages' clients. They wait for operations as long as they are told, and for Azure's providers they
// do not ask.
func (w *world) options() *arm.ClientOptions {
	return &arm.ClientOptions{ClientOptions: w.core(), DisableRPRegistration: true}
}

func (w *world) credential() azcore.TokenCredential {
	return ok(azidentity.NewClientSecretCredential(tenant, owner.clientID, owner.secret,
		&azidentity.ClientSecretCredentialOptions{ClientOptions: w.core(), DisableInstanceDiscovery: true}))(w.t)
}
