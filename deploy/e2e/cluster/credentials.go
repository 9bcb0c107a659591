package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one control plane.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "weft-e2e"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read authority certificate: %w", err)
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// issue makes a certificate with its key, both PEM: a server's when there are
// addresses, else a client's.
func (a *authority) issue(serial int64, subject pkix.Name, addresses []netip.Addr) (cert, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key of %s: %w", subject.CommonName, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      subject,
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(addresses) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, addr := range addresses {
			template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, signer.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate of %s: %w", subject.CommonName, err)
	}
	key, err = encodeKey(signer)
	return encode("CERTIFICATE", der), key, err
}

// encodeKey writes a key in the one form that kube-apiserver also takes as the
// public key of service accounts (SEC 1, not PKCS 8).
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// files are the names of what the API server reads.
type files struct{ ca, cert, key, accounts string }

// credentials are those of one control plane: the files that the API server
// reads, and what a client needs, PEM.
type credentials struct {
	files
	authority, adminCert, adminKey []byte
}

// newCredentials makes all keys and certificates, the API server's for the
// addresses given, and writes what it reads into the directory.
func newCredentials(dir string, serving []netip.Addr) (*credentials, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	cert, key, err := a.issue(2, pkix.Name{CommonName: "kube-apiserver"}, serving)
	if err != nil {
		return nil, err
	}
	adminCert, adminKey, err := a.issue(3, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make service account key: %w", err)
	}
	accounts, err := encodeKey(signer)
	if err != nil {
		return nil, err
	}
	f := files{
		ca: filepath.Join(dir, "ca.crt"), cert: filepath.Join(dir, "apiserver.crt"),
		key: filepath.Join(dir, "apiserver.key"), accounts: filepath.Join(dir, "accounts.key"),
	}
	for name, b := range map[string][]byte{f.ca: a.pem, f.cert: cert, f.key: key, f.accounts: accounts} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return nil, fmt.Errorf("write credentials: %w", err)
		}
	}
	return &credentials{files: f, authority: a.pem, adminCert: adminCert, adminKey: adminKey}, nil
}
