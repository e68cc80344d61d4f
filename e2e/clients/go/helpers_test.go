package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// A client that trusts the simulator's certificate authority and no other.
func trusting(t *testing.T, file string) *http.Client {
	pem := ok(os.ReadFile(file))(t)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in", file)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ok is what a call answered; the test ends where it failed: `ok(client.Get(…))(t)`.
func ok[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// done is what an operation ended with: `done(client.BeginDelete(…))(t)`.
func done[T any](poller *runtime.Poller[T], err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// Azure's Retry-After goes before this.
		answer, err := poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// refusal is status and code of the error that a call ended with.
func refusal(t *testing.T, err error) (int, string) {
	t.Helper()
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) {
		t.Fatalf("not refused by Azure: %v", err)
	}
	return refused.StatusCode, refused.ErrorCode
}

// gone fails unless a read answered 404.
func gone[T any](_ T, err error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if status, code := refusal(t, err); status != http.StatusNotFound {
			t.Fatal("still there:", status, code)
		}
	}
}

// listed fails unless the pages of a list hold exactly these names, in any order.
func listed[P any](t *testing.T, pager *runtime.Pager[P], expected ...string) {
	t.Helper()
	var found []string
	for pager.More() {
		page := ok(pager.NextPage(context.Background()))(t)
		items := reflect.ValueOf(page).FieldByName("Value")
		for i := range items.Len() {
			found = append(found, items.Index(i).Elem().FieldByName("Name").Elem().String())
		}
	}
	slices.Sort(found)
	slices.Sort(expected)
	equal(t, "names", found, expected)
}

func equal[T any](t *testing.T, what string, found, expected T) {
	t.Helper()
	same := reflect.DeepEqual(found, expected) ||
		reflect.ValueOf(found).Kind() == reflect.Slice && reflect.ValueOf(found).Len() == 0 && reflect.ValueOf(expected).Len() == 0
	if !same {
		t.Fatalf("%s: %v, expected %v", what, found, expected)
	}
}

func to[T any](value T) *T { return &value }
