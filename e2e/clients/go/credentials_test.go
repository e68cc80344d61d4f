package clients

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
)

// The federated identity that is seeded for `workload`.
const (
	issuer   = "https://issuer.example"
	subject  = "system:serviceaccount:hyperlink:hyperlink"
	audience = "api://AzureADTokenExchange"
)

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// An OpenID issuer's key set and an assertion signed with its key, as Kubernetes projects one.
func assertion(t *testing.T) (object, string) {
	key := ok(rsa.GenerateKey(rand.Reader, 2048))(t)
	now := time.Now().Unix()
	head := ok(json.Marshal(object{"alg": "RS256", "typ": "JWT", "kid": "1"}))(t)
	claims := ok(json.Marshal(object{"iss": issuer, "sub": subject, "aud": []string{audience}, "iat": now, "nbf": now, "exp": now + 600}))(t)
	signed := base64url(head) + "." + base64url(claims)
	digest := sha256.Sum256([]byte(signed))
	signature := ok(rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:]))(t)
	exponent := big.NewInt(int64(key.E)).Bytes()
	jwks := object{"keys": []object{{"kty": "RSA", "kid": "1", "n": base64url(key.N.Bytes()), "e": base64url(exponent)}}}
	return jwks, signed + "." + base64url(signature)
}

// A self-signed certificate with its key, and the same in PEM.
func certificate(t *testing.T) (*x509.Certificate, *rsa.PrivateKey, string) {
	key := ok(rsa.GenerateKey(rand.Reader, 2048))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "hyperlink"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der := ok(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return ok(x509.ParseCertificate(der))(t), key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func mayRead(w *world, credential azcore.TokenCredential) {
	w.t.Helper()
	groups := ok(armresources.NewResourceGroupsClient(subscription, credential, w.options()))(w.t)
	equal(w.t, "group", *ok(groups.Get(w.ctx, group, nil))(w.t).Name, group)
}

// The object id that a token names.
func objectID(w *world, credential azcore.TokenCredential) string {
	token := ok(credential.GetToken(w.ctx, policy.TokenRequestOptions{Scopes: []string{scope}}))(w.t)
	payload := ok(base64.RawURLEncoding.DecodeString(strings.Split(token.Token, ".")[1]))(w.t)
	var claims struct {
		OID string `json:"oid"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		w.t.Fatal(err)
	}
	return claims.OID
}

// Fails unless Entra refuses a token with this code.
func refused(w *world, credential azcore.TokenCredential, code string) {
	w.t.Helper()
	_, err := credential.GetToken(w.ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err == nil || !strings.Contains(err.Error(), code) {
		w.t.Fatalf("%v, expected %s", err, code)
	}
}

func TestSecretGetsATokenForItsPrincipal(t *testing.T) {
	w := newWorld(t)
	equal(t, "oid", objectID(w, w.credential()), owner.objectID)
	mayRead(w, w.credential())
}

func TestWrongSecretIsRefused(t *testing.T) {
	w := newWorld(t)
	refused(w, ok(azidentity.NewClientSecretCredential(tenant, owner.clientID, "another",
		&azidentity.ClientSecretCredentialOptions{ClientOptions: w.core(), DisableInstanceDiscovery: true}))(t), "AADSTS7000215")
}

func TestFederatedAssertionGetsAToken(t *testing.T) {
	w := newWorld(t)
	jwks, token := assertion(t)
	w.seedWith(jwks, nil)
	credential := ok(azidentity.NewClientAssertionCredential(tenant, workload.clientID,
		func(context.Context) (string, error) { return token, nil },
		&azidentity.ClientAssertionCredentialOptions{ClientOptions: w.core(), DisableInstanceDiscovery: true}))(t)
	equal(t, "oid", objectID(w, credential), workload.objectID)
	mayRead(w, credential)
}

func TestWorkloadIdentityReadsItsProjectedToken(t *testing.T) {
	w := newWorld(t)
	jwks, token := assertion(t)
	w.seedWith(jwks, nil)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	mayRead(w, ok(azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: w.core(), DisableInstanceDiscovery: true, TenantID: tenant, ClientID: workload.clientID, TokenFilePath: file,
	}))(t))
}

func TestAssertionOfAnotherKeyIsRefused(t *testing.T) {
	w := newWorld(t)
	jwks, _ := assertion(t)
	_, token := assertion(t)
	w.seedWith(jwks, nil)
	refused(w, ok(azidentity.NewClientAssertionCredential(tenant, workload.clientID,
		func(context.Context) (string, error) { return token, nil },
		&azidentity.ClientAssertionCredentialOptions{ClientOptions: w.core(), DisableInstanceDiscovery: true}))(t), "AADSTS700027")
}

func byCertificate(w *world, cert *x509.Certificate, key *rsa.PrivateKey) azcore.TokenCredential {
	return ok(azidentity.NewClientCertificateCredential(tenant, certain.clientID, []*x509.Certificate{cert}, key,
		&azidentity.ClientCertificateCredentialOptions{ClientOptions: w.core(), DisableInstanceDiscovery: true}))(w.t)
}

func TestCertificateGetsAToken(t *testing.T) {
	w := newWorld(t)
	cert, key, text := certificate(t)
	w.seedWith(nil, []string{text})
	equal(t, "oid", objectID(w, byCertificate(w, cert, key)), certain.objectID)
	mayRead(w, byCertificate(w, cert, key))
}

func TestUnknownCertificateIsRefused(t *testing.T) {
	w := newWorld(t)
	_, _, known := certificate(t)
	cert, key, _ := certificate(t)
	w.seedWith(nil, []string{known})
	refused(w, byCertificate(w, cert, key), "AADSTS700027")
}
