package clients

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
)

const zone = "cluster.hypershift.local"

func (w *world) dns() *armprivatedns.ClientFactory {
	return ok(armprivatedns.NewClientFactory(subscription, w.credential(), w.options()))(w.t)
}

func putZone(w *world) armprivatedns.PrivateZone {
	w.t.Helper()
	return done(w.dns().NewPrivateZonesClient().BeginCreateOrUpdate(w.ctx, group, zone,
		armprivatedns.PrivateZone{Location: to("global")}, nil))(w.t).PrivateZone
}

func linkTo(network string) armprivatedns.VirtualNetworkLink {
	return armprivatedns.VirtualNetworkLink{
		Location: to("global"),
		Properties: &armprivatedns.VirtualNetworkLinkProperties{
			VirtualNetwork: &armprivatedns.SubResource{ID: to(network)}, RegistrationEnabled: to(false),
		},
	}
}

func TestZoneLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	zones := w.dns().NewPrivateZonesClient()
	equal(t, "record sets", *putZone(w).Properties.NumberOfRecordSets, 1)
	listed(t, zones.NewListPager(nil), zone)
	listed(t, zones.NewListByResourceGroupPager(group, nil), zone)
	tagged := done(zones.BeginUpdate(w.ctx, group, zone, armprivatedns.PrivateZone{Tags: map[string]*string{"a": to("1")}}, nil))(t)
	equal(t, "tag", *tagged.Tags["a"], "1")
	done(zones.BeginDelete(w.ctx, group, zone, nil))(t)
	gone(zones.Get(w.ctx, group, zone, nil))(t)
}

func TestLinkLivesFromCreateToDelete(t *testing.T) {
	w := newWorld(t)
	putZone(w)
	links := w.dns().NewVirtualNetworkLinksClient()
	made := done(links.BeginCreateOrUpdate(w.ctx, group, zone, "link", linkTo(vnetID), nil))(t)
	equal(t, "state", *made.Properties.VirtualNetworkLinkState, armprivatedns.VirtualNetworkLinkStateCompleted)
	listed(t, links.NewListPager(group, zone, nil), "link")
	patch := armprivatedns.VirtualNetworkLink{Tags: map[string]*string{"a": to("1")}}
	equal(t, "tag", *done(links.BeginUpdate(w.ctx, group, zone, "link", patch, nil))(t).Tags["a"], "1")
	_, err := w.dns().NewPrivateZonesClient().BeginDelete(w.ctx, group, zone, nil)
	status, code := refusal(t, err)
	equal(t, "status", status, http.StatusConflict)
	equal(t, "code", code, "CannotDeleteResource")
	done(links.BeginDelete(w.ctx, group, zone, "link", nil))(t)
	gone(links.Get(w.ctx, group, zone, "link", nil))(t)
}

func TestSecondLinkToTheSameNetworkFailsInItsOperation(t *testing.T) {
	w := newWorld(t)
	putZone(w)
	links := w.dns().NewVirtualNetworkLinksClient()
	done(links.BeginCreateOrUpdate(w.ctx, group, zone, "link", linkTo(vnetID), nil))(t)
	poller := ok(links.BeginCreateOrUpdate(w.ctx, group, zone, "again", linkTo(vnetID), nil))(t)
	_, err := poller.PollUntilDone(w.ctx, nil)
	_, code := refusal(t, err)
	equal(t, "code", code, "Conflict")
}

func TestRecordsAreWrittenPatchedListedAndDeleted(t *testing.T) {
	w := newWorld(t)
	putZone(w)
	records := w.dns().NewRecordSetsClient()
	body := armprivatedns.RecordSet{Properties: &armprivatedns.RecordSetProperties{
		TTL: to[int64](300), ARecords: []*armprivatedns.ARecord{{IPv4Address: to("10.0.0.5")}},
	}}
	made := ok(records.CreateOrUpdate(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", body, nil))(t)
	equal(t, "name", *made.Properties.Fqdn, "api."+zone+".")
	equal(t, "etag", *ok(records.Get(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", nil))(t).Etag, *made.Etag)
	patch := armprivatedns.RecordSet{Properties: &armprivatedns.RecordSetProperties{TTL: to[int64](60)}}
	patched := ok(records.Update(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", patch, nil))(t)
	equal(t, "ttl", *patched.Properties.TTL, 60)
	equal(t, "address", *patched.Properties.ARecords[0].IPv4Address, "10.0.0.5")
	listed(t, records.NewListPager(group, zone, nil), "@", "api")
	listed(t, records.NewListByTypePager(group, zone, armprivatedns.RecordTypeA, nil), "api")
	other := armprivatedns.RecordSetsClientDeleteOptions{IfMatch: to("another")}
	_, err := records.Delete(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", &other)
	status, _ := refusal(t, err)
	equal(t, "status", status, http.StatusPreconditionFailed)
	ok(records.Delete(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", nil))(t)
	gone(records.Get(w.ctx, group, zone, armprivatedns.RecordTypeA, "api", nil))(t)
}
