package clients

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v5"
)

const balancerID = providerID + "/loadBalancers/lb"

func reference(id string) *armnetwork.SubResource { return &armnetwork.SubResource{ID: to(id)} }

// A frontend in the nodes' subnet.
func inside(name string) *armnetwork.FrontendIPConfiguration {
	return &armnetwork.FrontendIPConfiguration{
		Name:       to(name),
		Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{Subnet: &armnetwork.Subnet{ID: to(nodesID)}},
	}
}

func putBalancer(w *world, properties armnetwork.LoadBalancerPropertiesFormat) armnetwork.LoadBalancer {
	w.t.Helper()
	return done(w.network().NewLoadBalancersClient().BeginCreateOrUpdate(w.ctx, group, "lb", armnetwork.LoadBalancer{
		Location:   to(location),
		SKU:        &armnetwork.LoadBalancerSKU{Name: to(armnetwork.LoadBalancerSKUNameStandard)},
		Properties: &properties,
	}, nil))(w.t).LoadBalancer
}

func TestBalancerLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	balancers := w.network().NewLoadBalancersClient()
	made := putBalancer(w, armnetwork.LoadBalancerPropertiesFormat{FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{inside("api")}})
	equal(t, "address", *made.Properties.FrontendIPConfigurations[0].Properties.PrivateIPAddress, "10.0.0.4")
	frontends := w.network().NewLoadBalancerFrontendIPConfigurationsClient()
	listed(t, frontends.NewListPager(group, "lb", nil), "api")
	equal(t, "frontend", *ok(frontends.Get(w.ctx, group, "lb", "api", nil))(t).ID, balancerID+"/frontendIPConfigurations/api")
	listed(t, balancers.NewListPager(group, nil), "lb")
	listed(t, balancers.NewListAllPager(nil), "lb")
	ok(balancers.UpdateTags(w.ctx, group, "lb", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	done(balancers.BeginDelete(w.ctx, group, "lb", nil))(t)
	gone(balancers.Get(w.ctx, group, "lb", nil))(t)
}

func TestRulesReferToFrontendPoolAndProbe(t *testing.T) {
	w := newWorld(t)
	putBalancer(w, armnetwork.LoadBalancerPropertiesFormat{
		FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{inside("api")},
		BackendAddressPools:      []*armnetwork.BackendAddressPool{{Name: to("nodes")}},
		Probes: []*armnetwork.Probe{{Name: to("healthz"), Properties: &armnetwork.ProbePropertiesFormat{
			Protocol: to(armnetwork.ProbeProtocolTCP), Port: to[int32](30000), IntervalInSeconds: to[int32](5),
		}}},
		LoadBalancingRules: []*armnetwork.LoadBalancingRule{{Name: to("api"), Properties: &armnetwork.LoadBalancingRulePropertiesFormat{
			Protocol: to(armnetwork.TransportProtocolTCP), FrontendPort: to[int32](6443), BackendPort: to[int32](30000),
			FrontendIPConfiguration: reference(balancerID + "/frontendIPConfigurations/api"),
			BackendAddressPool:      reference(balancerID + "/backendAddressPools/nodes"),
			Probe:                   reference(balancerID + "/probes/healthz"),
		}}},
	})
	rules, probes := w.network().NewLoadBalancerLoadBalancingRulesClient(), w.network().NewLoadBalancerProbesClient()
	listed(t, rules.NewListPager(group, "lb", nil), "api")
	equal(t, "port", *ok(rules.Get(w.ctx, group, "lb", "api", nil))(t).Properties.BackendPort, 30000)
	listed(t, probes.NewListPager(group, "lb", nil), "healthz")
	equal(t, "port", *ok(probes.Get(w.ctx, group, "lb", "healthz", nil))(t).Properties.Port, 30000)
}

func TestPoolIsWrittenByItsOwnID(t *testing.T) {
	w := newWorld(t)
	putBalancer(w, armnetwork.LoadBalancerPropertiesFormat{FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{inside("api")}})
	pools := w.network().NewLoadBalancerBackendAddressPoolsClient()
	done(pools.BeginCreateOrUpdate(w.ctx, group, "lb", "nodes", armnetwork.BackendAddressPool{}, nil))(t)
	listed(t, pools.NewListPager(group, "lb", nil), "nodes")
	done(pools.BeginDelete(w.ctx, group, "lb", "nodes", nil))(t)
	gone(pools.Get(w.ctx, group, "lb", "nodes", nil))(t)
}

func TestInterfaceInAPoolIsSeenFromBothSides(t *testing.T) {
	w := newWorld(t)
	made := putBalancer(w, armnetwork.LoadBalancerPropertiesFormat{
		FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{inside("api")},
		BackendAddressPools:      []*armnetwork.BackendAddressPool{{Name: to("nodes")}},
	})
	interfaces := w.network().NewInterfacesClient()
	body := armnetwork.Interface{Location: to(location), Properties: &armnetwork.InterfacePropertiesFormat{
		IPConfigurations: []*armnetwork.InterfaceIPConfiguration{{
			Name: to("ip"),
			Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
				Subnet:                          &armnetwork.Subnet{ID: to(nodesID)},
				LoadBalancerBackendAddressPools: []*armnetwork.BackendAddressPool{{ID: made.Properties.BackendAddressPools[0].ID}},
			},
		}},
	}}
	nic := done(interfaces.BeginCreateOrUpdate(w.ctx, group, "nic", body, nil))(t)
	pool := ok(w.network().NewLoadBalancerBackendAddressPoolsClient().Get(w.ctx, group, "lb", "nodes", nil))(t)
	equal(t, "member", *pool.Properties.BackendIPConfigurations[0].ID, *nic.Properties.IPConfigurations[0].ID)
	listed(t, w.network().NewLoadBalancerNetworkInterfacesClient().NewListPager(group, "lb", nil), "nic")
	listed(t, w.network().NewInterfaceLoadBalancersClient().NewListPager(group, "nic", nil), "lb")
	configurations := w.network().NewInterfaceIPConfigurationsClient()
	listed(t, configurations.NewListPager(group, "nic", nil), "ip")
	equal(t, "configuration", *ok(configurations.Get(w.ctx, group, "nic", "ip", nil))(t).Name, "ip")
	listed(t, interfaces.NewListPager(group, nil), "nic")
	listed(t, interfaces.NewListAllPager(nil), "nic")
	ok(interfaces.UpdateTags(w.ctx, group, "nic", armnetwork.TagsObject{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	done(interfaces.BeginDelete(w.ctx, group, "nic", nil))(t)
	gone(interfaces.Get(w.ctx, group, "nic", nil))(t)
}

func TestNATRuleAndOutboundRuleOfAPublicFrontend(t *testing.T) {
	w := newWorld(t)
	address := putAddress(w)
	front := reference(balancerID + "/frontendIPConfigurations/public")
	putBalancer(w, armnetwork.LoadBalancerPropertiesFormat{
		FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{
			Name:       to("public"),
			Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{PublicIPAddress: &address},
		}},
		BackendAddressPools: []*armnetwork.BackendAddressPool{{Name: to("nodes")}},
		OutboundRules: []*armnetwork.OutboundRule{{Name: to("out"), Properties: &armnetwork.OutboundRulePropertiesFormat{
			Protocol: to(armnetwork.LoadBalancerOutboundRuleProtocolAll), FrontendIPConfigurations: []*armnetwork.SubResource{front},
			BackendAddressPool: reference(balancerID + "/backendAddressPools/nodes"),
		}}},
	})
	outbound, inbound := w.network().NewLoadBalancerOutboundRulesClient(), w.network().NewInboundNatRulesClient()
	listed(t, outbound.NewListPager(group, "lb", nil), "out")
	ok(outbound.Get(w.ctx, group, "lb", "out", nil))(t)
	done(inbound.BeginCreateOrUpdate(w.ctx, group, "lb", "ssh", armnetwork.InboundNatRule{Properties: &armnetwork.InboundNatRulePropertiesFormat{
		Protocol: to(armnetwork.TransportProtocolTCP), FrontendPort: to[int32](2222), BackendPort: to[int32](22), FrontendIPConfiguration: front,
	}}, nil))(t)
	listed(t, inbound.NewListPager(group, "lb", nil), "ssh")
	equal(t, "port", *ok(inbound.Get(w.ctx, group, "lb", "ssh", nil))(t).Properties.FrontendPort, 2222)
	done(inbound.BeginDelete(w.ctx, group, "lb", "ssh", nil))(t)
	gone(inbound.Get(w.ctx, group, "lb", "ssh", nil))(t)
}
