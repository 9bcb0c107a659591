package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/util/keyutil"
)

func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	c, err := newCredentials(dir, []netip.Addr{netip.MustParseAddr("192.168.200.1"), netip.MustParseAddr("fd00:200::1")})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.serving, c.key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.authority) {
		t.Fatal("no certificate of the authority")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	// Pods use the last two.
	for _, name := range []string{"192.168.200.1", "fd00:200::1", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("certificate for %s: %v", name, err)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "192.168.200.2", Roots: roots}); err == nil {
		t.Error("the certificate is for every address")
	}
	if _, err := keyutil.PrivateKeyFromFile(c.accounts); err != nil {
		t.Errorf("key of service accounts: %v", err)
	}
	for _, name := range []string{c.serving, c.key, c.accounts, c.tokens} {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode of %s is %v, %v; want that only its owner reads it", name, info.Mode(), err)
		}
	}
}

func TestCredentialsWithoutDirectory(t *testing.T) {
	if _, err := newCredentials(filepath.Join(t.TempDir(), "missing"), nil); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}
