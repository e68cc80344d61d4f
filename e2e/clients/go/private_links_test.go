package clients

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v5"
)

const (
	serviceID = providerID + "/privateLinkServices/pls"
	natID     = vnetID + "/subnets/nat"
	zoneID    = providerID + "/privateDnsZones/" + zone
)

// A frontend, and a subnet that a Private Link Service may take its NAT addresses from.
var behind = []object{
	{
		"id": balancerID, "location": location, "sku": object{"name": "Standard"},
		"properties": object{"frontendIPConfigurations": []object{
			{"name": "api", "properties": object{"subnet": object{"id": nodesID}}},
		}},
	},
	{"id": natID, "properties": object{"addressPrefix": "10.0.1.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}},
}

func putService(w *world, properties armnetwork.PrivateLinkServiceProperties) armnetwork.PrivateLinkService {
	w.t.Helper()
	properties.LoadBalancerFrontendIPConfigurations = []*armnetwork.FrontendIPConfiguration{{ID: to(balancerID + "/frontendIPConfigurations/api")}}
	properties.IPConfigurations = []*armnetwork.PrivateLinkServiceIPConfiguration{{
		Name: to("nat"),
		Properties: &armnetwork.PrivateLinkServiceIPConfigurationProperties{
			Subnet: &armnetwork.Subnet{ID: to(natID)}, Primary: to(true),
		},
	}}
	return done(w.network().NewPrivateLinkServicesClient().BeginCreateOrUpdate(w.ctx, group, "pls",
		armnetwork.PrivateLinkService{Location: to(location), Properties: &properties}, nil))(w.t).PrivateLinkService
}

// An endpoint in the nodes' subnet that asks for a connection by alias.
func putEndpoint(w *world, alias string) armnetwork.PrivateEndpoint {
	w.t.Helper()
	return done(w.network().NewPrivateEndpointsClient().BeginCreateOrUpdate(w.ctx, group, "pe", armnetwork.PrivateEndpoint{
		Location: to(location),
		Properties: &armnetwork.PrivateEndpointProperties{
			Subnet: &armnetwork.Subnet{ID: to(nodesID)},
			ManualPrivateLinkServiceConnections: []*armnetwork.PrivateLinkServiceConnection{{
				Name:       to("conn"),
				Properties: &armnetwork.PrivateLinkServiceConnectionProperties{PrivateLinkServiceID: to(alias)},
			}},
		},
	}, nil))(w.t).PrivateEndpoint
}

func everyone() []*string { return []*string{to(subscription)} }

func TestServiceLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t, behind...)
	services := w.network().NewPrivateLinkServicesClient()
	made := putService(w, armnetwork.PrivateLinkServiceProperties{EnableProxyProtocol: to(true)})
	equal(t, "id", *made.ID, serviceID)
	equal(t, "proxy protocol", *made.Properties.EnableProxyProtocol, true)
	if !strings.HasSuffix(*made.Properties.Alias, "."+location+".azure.privatelinkservice") {
		t.Fatal(*made.Properties.Alias)
	}
	listed(t, services.NewListPager(group, nil), "pls")
	listed(t, services.NewListBySubscriptionPager(nil), "pls")
	question := armnetwork.CheckPrivateLinkServiceVisibilityRequest{PrivateLinkServiceAlias: made.Properties.Alias}
	equal(t, "visible", *done(services.BeginCheckPrivateLinkServiceVisibility(w.ctx, location, question, nil))(t).Visible, false)
	putService(w, armnetwork.PrivateLinkServiceProperties{
		Visibility:   &armnetwork.PrivateLinkServicePropertiesVisibility{Subscriptions: everyone()},
		AutoApproval: &armnetwork.PrivateLinkServicePropertiesAutoApproval{Subscriptions: everyone()},
	})
	byGroup := done(services.BeginCheckPrivateLinkServiceVisibilityByResourceGroup(w.ctx, location, group, question, nil))(t)
	equal(t, "visible", *byGroup.Visible, true)
	approving := ok(services.NewListAutoApprovedPrivateLinkServicesPager(location, nil).NextPage(w.ctx))(t)
	equal(t, "approving", *approving.Value[0].PrivateLinkService, serviceID)
	inGroup := ok(services.NewListAutoApprovedPrivateLinkServicesByResourceGroupPager(location, group, nil).NextPage(w.ctx))(t)
	equal(t, "approving", *inGroup.Value[0].PrivateLinkService, serviceID)
	done(services.BeginDelete(w.ctx, group, "pls", nil))(t)
	gone(services.Get(w.ctx, group, "pls", nil))(t)
}

func TestConnectionIsApprovedAndRejectedAndRemoved(t *testing.T) {
	w := newWorld(t, behind...)
	services, endpoints := w.network().NewPrivateLinkServicesClient(), w.network().NewPrivateEndpointsClient()
	made := putService(w, armnetwork.PrivateLinkServiceProperties{
		Visibility: &armnetwork.PrivateLinkServicePropertiesVisibility{Subscriptions: everyone()},
	})
	putEndpoint(w, *made.Properties.Alias)
	connection := ok(services.NewListPrivateEndpointConnectionsPager(group, "pls", nil).NextPage(w.ctx))(t).Value[0]
	for _, status := range []string{"Approved", "Rejected"} {
		connection.Properties.PrivateLinkServiceConnectionState = &armnetwork.PrivateLinkServiceConnectionState{Status: to(status)}
		ok(services.UpdatePrivateEndpointConnection(w.ctx, group, "pls", *connection.Name, *connection, nil))(t)
		// The package takes this call for a synchronous one; Azure goes on after the answer.
		for settled := false; !settled; time.Sleep(50 * time.Millisecond) {
			now := ok(services.GetPrivateEndpointConnection(w.ctx, group, "pls", *connection.Name, nil))(t)
			settled = *now.Properties.ProvisioningState == armnetwork.ProvisioningStateSucceeded
		}
		seen := ok(endpoints.Get(w.ctx, group, "pe", nil))(t).Properties.ManualPrivateLinkServiceConnections[0]
		equal(t, "state", *seen.Properties.PrivateLinkServiceConnectionState.Status, status)
	}
	_, err := services.BeginDelete(w.ctx, group, "pls", nil)
	status, code := refusal(t, err)
	equal(t, "status", status, http.StatusBadRequest)
	equal(t, "code", code, "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted")
	done(services.BeginDeletePrivateEndpointConnection(w.ctx, group, "pls", *connection.Name, nil))(t)
	listed(t, services.NewListPrivateEndpointConnectionsPager(group, "pls", nil))
	done(services.BeginDelete(w.ctx, group, "pls", nil))(t)
}

func TestEndpointLivesWithItsZoneGroup(t *testing.T) {
	w := newWorld(t, append(behind, object{"id": zoneID, "location": "global"})...)
	endpoints, groups := w.network().NewPrivateEndpointsClient(), w.network().NewPrivateDNSZoneGroupsClient()
	made := putService(w, armnetwork.PrivateLinkServiceProperties{
		Visibility:   &armnetwork.PrivateLinkServicePropertiesVisibility{Subscriptions: everyone()},
		AutoApproval: &armnetwork.PrivateLinkServicePropertiesAutoApproval{Subscriptions: everyone()},
	})
	endpoint := putEndpoint(w, *made.Properties.Alias)
	connection := endpoint.Properties.ManualPrivateLinkServiceConnections[0].Properties
	equal(t, "state", *connection.PrivateLinkServiceConnectionState.Status, "Approved")
	expand := armnetwork.PrivateEndpointsClientGetOptions{Expand: to("networkInterfaces")}
	nic := ok(endpoints.Get(w.ctx, group, "pe", &expand))(t).Properties.NetworkInterfaces[0]
	equal(t, "address", *nic.Properties.IPConfigurations[0].Properties.PrivateIPAddress, "10.0.0.5")
	listed(t, endpoints.NewListPager(group, nil), "pe")
	listed(t, endpoints.NewListBySubscriptionPager(nil), "pe")
	body := armnetwork.PrivateDNSZoneGroup{Properties: &armnetwork.PrivateDNSZoneGroupPropertiesFormat{
		PrivateDNSZoneConfigs: []*armnetwork.PrivateDNSZoneConfig{{
			Name: to("zone"), Properties: &armnetwork.PrivateDNSZonePropertiesFormat{PrivateDNSZoneID: to(zoneID)},
		}},
	}}
	done(groups.BeginCreateOrUpdate(w.ctx, group, "pe", "default", body, nil))(t)
	equal(t, "group", *ok(groups.Get(w.ctx, group, "pe", "default", nil))(t).Name, "default")
	listed(t, groups.NewListPager("pe", group, nil), "default")
	done(groups.BeginDelete(w.ctx, group, "pe", "default", nil))(t)
	done(endpoints.BeginDelete(w.ctx, group, "pe", nil))(t)
	gone(endpoints.Get(w.ctx, group, "pe", nil))(t)
}
