package clients

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v5"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
)

const networkVersion = "2024-05-01"

func (w *world) resources() *armresources.ClientFactory {
	return ok(armresources.NewClientFactory(subscription, w.credential(), w.options()))(w.t)
}

func TestGroupLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	groups := w.resources().NewResourceGroupsClient()
	ok(groups.CreateOrUpdate(w.ctx, "new", armresources.ResourceGroup{Location: to(location)}, nil))(t)
	equal(t, "exists", ok(groups.CheckExistence(w.ctx, "NEW", nil))(t).Success, true)
	patch := armresources.ResourceGroupPatchable{Tags: map[string]*string{"a": to("1")}}
	equal(t, "tag", *ok(groups.Update(w.ctx, "new", patch, nil))(t).Tags["a"], "1")
	listed(t, groups.NewListPager(nil), group, "new")
	done(groups.BeginDelete(w.ctx, "new", nil))(t)
	gone(groups.Get(w.ctx, "new", nil))(t)
}

func TestResourceIsReadAndWrittenByItsPathAndByItsID(t *testing.T) {
	w := newWorld(t)
	resources := w.resources().NewClient()
	const provider, kind, name = "Microsoft.Network", "networkSecurityGroups", "nsg"
	body := armresources.GenericResource{Location: to(location)}
	done(resources.BeginCreateOrUpdate(w.ctx, group, provider, "", kind, name, networkVersion, body, nil))(t)
	equal(t, "exists", ok(resources.CheckExistence(w.ctx, group, provider, "", kind, name, networkVersion, nil))(t).Success, true)
	id := *ok(resources.Get(w.ctx, group, provider, "", kind, name, networkVersion, nil))(t).ID
	patch := armresources.GenericResource{Tags: map[string]*string{"a": to("1")}}
	done(resources.BeginUpdate(w.ctx, group, provider, "", kind, name, networkVersion, patch, nil))(t)
	listed(t, resources.NewListPager(nil), "nsg", "vnet")
	listed(t, resources.NewListByResourceGroupPager(group, nil), "nsg", "vnet")
	done(resources.BeginDelete(w.ctx, group, provider, "", kind, name, networkVersion, nil))(t)

	done(resources.BeginCreateOrUpdateByID(w.ctx, id, networkVersion, body, nil))(t)
	equal(t, "exists", ok(resources.CheckExistenceByID(w.ctx, id, networkVersion, nil))(t).Success, true)
	done(resources.BeginUpdateByID(w.ctx, id, networkVersion, patch, nil))(t)
	equal(t, "tag", *ok(resources.GetByID(w.ctx, id, networkVersion, nil))(t).Tags["a"], "1")
	done(resources.BeginDeleteByID(w.ctx, id, networkVersion, nil))(t)
	gone(resources.GetByID(w.ctx, id, networkVersion, nil))(t)
}

func TestProviderIsDescribedUnregisteredAndRegistered(t *testing.T) {
	w := newWorld(t)
	providers := w.resources().NewProvidersClient()
	const name = "Microsoft.Network"
	equal(t, "state", *ok(providers.Get(w.ctx, name, nil))(t).RegistrationState, "Registered")
	equal(t, "namespace", *ok(providers.GetAtTenantScope(w.ctx, name, nil))(t).Namespace, name)
	known := ok(providers.NewListPager(nil).NextPage(w.ctx))(t)
	everywhere := ok(providers.NewListAtTenantScopePager(nil).NextPage(w.ctx))(t)
	equal(t, "providers", len(known.Value), len(everywhere.Value))
	types := ok(w.resources().NewProviderResourceTypesClient().List(w.ctx, name, nil))(t)
	if len(types.Value) == 0 {
		t.Fatal("no types")
	}
	w.control("DELETE", "/resources"+vnetID, nil, nil)
	ok(providers.Unregister(w.ctx, name, nil))(t)
	ok(providers.Register(w.ctx, name, nil))(t)
}

// What HyperShift's controllers do when their poll times out, or after a restart: another poller goes on.
func TestPollerIsResumedFromItsToken(t *testing.T) {
	w := newWorld(t)
	subnets := w.network().NewSubnetsClient()
	body := armnetwork.Subnet{Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to("10.0.1.0/24")}}
	token := ok(ok(subnets.BeginCreateOrUpdate(w.ctx, group, "vnet", "one", body, nil))(t).ResumeToken())(t)
	options := armnetwork.SubnetsClientBeginCreateOrUpdateOptions{ResumeToken: token}
	made := done(w.network().NewSubnetsClient().BeginCreateOrUpdate(w.ctx, group, "vnet", "one", body, &options))(t)
	equal(t, "state", *made.Properties.ProvisioningState, armnetwork.ProvisioningStateSucceeded)
	puts := 0
	for _, call := range w.journal() {
		if call.Method == "PUT" {
			puts++
		}
	}
	equal(t, "writes", puts, 1)
}

func TestOperationThatHangsEndsWithTheCallersContext(t *testing.T) {
	w := newWorld(t)
	w.fault(object{"method": "PUT", "path": "/subnets/one$"}, object{"operation": "hang"})
	body := armnetwork.Subnet{Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to("10.0.1.0/24")}}
	poller := ok(w.network().NewSubnetsClient().BeginCreateOrUpdate(w.ctx, group, "vnet", "one", body, nil))(t)
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
	defer cancel()
	_, err := poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: time.Second})
	if err == nil || ctx.Err() == nil {
		t.Fatal("ended:", err)
	}
	equal(t, "done", poller.Done(), false)
}
