package cluster

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

type credentials struct {
	// serving is the server's certificate with its authority's. The others are the server's key, the
	// key of service accounts' tokens, and the administrator's token.
	serving, key, accounts, tokens string
	authority                      []byte
	// tokens; admin has the group system:masters
	admin, controllers, scheduler string
}

// The server's certificate is for the addresses.
func newCredentials(dir string, addresses []netip.Addr) (*credentials, error) {
	c := &credentials{
		serving: filepath.Join(dir, "apiserver.crt"), key: filepath.Join(dir, "apiserver.key"),
		accounts: filepath.Join(dir, "accounts.key"), tokens: filepath.Join(dir, "tokens.csv"),
		admin: rand.Text(), controllers: rand.Text(), scheduler: rand.Text(),
	}
	var alternates []net.IP
	for _, addr := range addresses {
		alternates = append(alternates, addr.AsSlice())
	}
	serving, key, err := cert.GenerateSelfSignedCertKey("kube-apiserver", alternates,
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + ClusterDomain})
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("make key of service accounts: %w", err)
	}
	c.authority = serving
	tokens := c.admin + ",admin,admin,system:masters\n" +
		c.controllers + ",system:kube-controller-manager,controllers\n" + c.scheduler + ",system:kube-scheduler,scheduler\n"
	for name, b := range map[string][]byte{c.serving: serving, c.key: key, c.accounts: accounts, c.tokens: []byte(tokens)} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return nil, fmt.Errorf("write credentials: %w", err)
		}
	}
	return c, nil
}
