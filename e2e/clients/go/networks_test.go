package clients

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v5"
)

func (w *world) network() *armnetwork.ClientFactory {
	return ok(armnetwork.NewClientFactory(subscription, w.credential(), w.options()))(w.t)
}

func TestNetworkLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	networks := w.network().NewVirtualNetworksClient()
	made := done(networks.BeginCreateOrUpdate(w.ctx, group, "other", armnetwork.VirtualNetwork{
		Location: to(location),
		Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{to("10.9.0.0/16")}},
		},
	}, nil))(t)
	equal(t, "state", *made.Properties.ProvisioningState, armnetwork.ProvisioningStateSucceeded)
	listed(t, networks.NewListPager(group, nil), "other", "vnet")
	listed(t, networks.NewListAllPager(nil), "other", "vnet")
	tagged := ok(networks.UpdateTags(w.ctx, group, "other", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	equal(t, "tag", *tagged.Tags["a"], "1")
	free := ok(networks.CheckIPAddressAvailability(w.ctx, group, "vnet", "10.0.0.4", nil))(t)
	equal(t, "available", *free.Available, true)
	usage := networks.NewListUsagePager(group, "vnet", nil)
	equal(t, "usages", len(ok(usage.NextPage(w.ctx))(t).Value), 1)
	done(networks.BeginDelete(w.ctx, group, "other", nil))(t)
	gone(networks.Get(w.ctx, group, "other", nil))(t)
}

func TestSubnetLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	subnets := w.network().NewSubnetsClient()
	body := armnetwork.Subnet{Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to("10.0.1.0/24")}}
	made := done(subnets.BeginCreateOrUpdate(w.ctx, group, "vnet", "one", body, nil))(t)
	equal(t, "policies", *made.Properties.PrivateLinkServiceNetworkPolicies, armnetwork.VirtualNetworkPrivateLinkServiceNetworkPoliciesEnabled)
	equal(t, "prefix", *ok(subnets.Get(w.ctx, group, "vnet", "one", nil))(t).Properties.AddressPrefix, "10.0.1.0/24")
	listed(t, subnets.NewListPager(group, "vnet", nil), "nodes", "one")
	done(subnets.BeginDelete(w.ctx, group, "vnet", "one", nil))(t)
	gone(subnets.Get(w.ctx, group, "vnet", "one", nil))(t)
}

func TestRouteTableLivesWithItsRoutes(t *testing.T) {
	w := newWorld(t)
	tables, routes := w.network().NewRouteTablesClient(), w.network().NewRoutesClient()
	done(tables.BeginCreateOrUpdate(w.ctx, group, "table", armnetwork.RouteTable{Location: to(location)}, nil))(t)
	body := armnetwork.Route{Properties: &armnetwork.RoutePropertiesFormat{
		AddressPrefix: to("0.0.0.0/0"), NextHopType: to(armnetwork.RouteNextHopTypeVirtualAppliance), NextHopIPAddress: to("10.0.0.9"),
	}}
	done(routes.BeginCreateOrUpdate(w.ctx, group, "table", "out", body, nil))(t)
	equal(t, "next hop", *ok(routes.Get(w.ctx, group, "table", "out", nil))(t).Properties.NextHopIPAddress, "10.0.0.9")
	listed(t, routes.NewListPager(group, "table", nil), "out")
	equal(t, "routes", len(ok(tables.Get(w.ctx, group, "table", nil))(t).Properties.Routes), 1)
	ok(tables.UpdateTags(w.ctx, group, "table", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	listed(t, tables.NewListPager(group, nil), "table")
	listed(t, tables.NewListAllPager(nil), "table")
	done(routes.BeginDelete(w.ctx, group, "table", "out", nil))(t)
	gone(routes.Get(w.ctx, group, "table", "out", nil))(t)
	done(tables.BeginDelete(w.ctx, group, "table", nil))(t)
	gone(tables.Get(w.ctx, group, "table", nil))(t)
}

func TestSecurityGroupLivesWithItsRules(t *testing.T) {
	w := newWorld(t)
	groups, rules := w.network().NewSecurityGroupsClient(), w.network().NewSecurityRulesClient()
	made := done(groups.BeginCreateOrUpdate(w.ctx, group, "nsg", armnetwork.SecurityGroup{Location: to(location)}, nil))(t)
	standard := w.network().NewDefaultSecurityRulesClient()
	name := *made.Properties.DefaultSecurityRules[0].Name
	equal(t, "rule", *ok(standard.Get(w.ctx, group, "nsg", name, nil))(t).Name, name)
	page := ok(standard.NewListPager(group, "nsg", nil).NextPage(w.ctx))(t)
	equal(t, "default rules", len(page.Value), len(made.Properties.DefaultSecurityRules))
	body := armnetwork.SecurityRule{Properties: &armnetwork.SecurityRulePropertiesFormat{
		Access: to(armnetwork.SecurityRuleAccessAllow), Direction: to(armnetwork.SecurityRuleDirectionInbound),
		Protocol: to(armnetwork.SecurityRuleProtocolTCP), Priority: to[int32](100), SourceAddressPrefix: to("*"),
		SourcePortRange: to("*"), DestinationAddressPrefix: to("*"), DestinationPortRange: to("6443"),
	}}
	done(rules.BeginCreateOrUpdate(w.ctx, group, "nsg", "api", body, nil))(t)
	equal(t, "port", *ok(rules.Get(w.ctx, group, "nsg", "api", nil))(t).Properties.DestinationPortRange, "6443")
	listed(t, rules.NewListPager(group, "nsg", nil), "api")
	ok(groups.UpdateTags(w.ctx, group, "nsg", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	listed(t, groups.NewListPager(group, nil), "nsg")
	listed(t, groups.NewListAllPager(nil), "nsg")
	done(rules.BeginDelete(w.ctx, group, "nsg", "api", nil))(t)
	done(groups.BeginDelete(w.ctx, group, "nsg", nil))(t)
	gone(groups.Get(w.ctx, group, "nsg", nil))(t)
}

func TestPublicAddressLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	addresses := w.network().NewPublicIPAddressesClient()
	made := putAddress(w)
	equal(t, "method", *made.Properties.PublicIPAllocationMethod, armnetwork.IPAllocationMethodStatic)
	listed(t, addresses.NewListPager(group, nil), "ip")
	listed(t, addresses.NewListAllPager(nil), "ip")
	ok(addresses.UpdateTags(w.ctx, group, "ip", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	done(addresses.BeginDelete(w.ctx, group, "ip", nil))(t)
	gone(addresses.Get(w.ctx, group, "ip", nil))(t)
}

func putAddress(w *world) armnetwork.PublicIPAddress {
	return done(w.network().NewPublicIPAddressesClient().BeginCreateOrUpdate(w.ctx, group, "ip", armnetwork.PublicIPAddress{
		Location:   to(location),
		SKU:        &armnetwork.PublicIPAddressSKU{Name: to(armnetwork.PublicIPAddressSKUNameStandard)},
		Properties: &armnetwork.PublicIPAddressPropertiesFormat{PublicIPAllocationMethod: to(armnetwork.IPAllocationMethodStatic)},
	}, nil))(w.t).PublicIPAddress
}
