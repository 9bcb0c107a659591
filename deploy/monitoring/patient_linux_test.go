package monitoring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	healthAddress     = "127.0.0.1:10256"
	aggregatorMetrics = "127.0.0.1:10245"
	aggregatorHealth  = "127.0.0.1:10246"
	clusterCIDR       = "10.244.0.0/16,fd00:10:244::/56"
	configuration     = "apiVersion: weft.dev/v1alpha1\nkind: Configuration\npublishers:\n- {name: team-a, match: {uid: 4001}, allow: {tables: [{name: team-a}]}}\n"
	// restart is the time until an ended program is restarted.
	restart = 300 * time.Millisecond
)

// service is a program that is restarted at its end, as by the kubelet.
type service struct {
	argv func() []string
	log  string
	uid  uint32

	mu      sync.Mutex
	process *os.Process
	wanted  bool
	ended   chan struct{}
}

func (s *service) start(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.ended = true, make(chan struct{})
	go s.follow(s.ended)
	t.Cleanup(s.stop)
}

func (s *service) follow(ended chan struct{}) {
	defer close(ended)
	for {
		s.mu.Lock()
		if !s.wanted {
			s.mu.Unlock()
			return
		}
		argv := s.argv()
		cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // ends with stop
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: s.uid, Gid: s.uid}}
		log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // of the test
		if err == nil {
			cmd.Stdout, cmd.Stderr = log, log
			err = cmd.Start()
		}
		s.process = cmd.Process
		s.mu.Unlock()
		if err == nil {
			_ = cmd.Wait()
			_ = log.Close()
		}
		<-time.After(restart)
	}
}

func (s *service) stop() {
	s.mu.Lock()
	if !s.wanted {
		s.mu.Unlock()
		return
	}
	s.wanted = false
	ended := s.ended
	s.mu.Unlock()
	s.signal(syscall.SIGKILL)
	<-ended
}

func (s *service) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Signal(sig)
	}
}

// patient is a node with weft and an API server.
type patient struct {
	dir, state, socket, cidr string
	api                      *apiServer
	// key is of the API server and its certificate authority.
	key *ecdsa.PrivateKey
	// weft is the whole program, or the Service frontend beside the aggregator. second is another weft.
	weft, aggregator, second *service
	listener                 net.Listener
	// foreign is the input of another program with a table, which ends with it.
	foreign io.Closer
	// published counts fragments, changed changes of the endpoint.
	published, changed int
}

type apiServer struct {
	service
	args []string
}

func (a *apiServer) with(t *testing.T, args ...string) {
	t.Helper()
	a.args = args
	a.start(t)
}

// the node, and a Service of both families
const objects = `apiVersion: v1
kind: Node
metadata: {name: node-a, uid: node-a}
spec: {podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24, "fd00:10:244:1::/64"]}
status: {addresses: [{type: InternalIP, address: 127.0.0.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, uid: web}
spec: {type: ClusterIP, clusterIP: 10.96.0.77, clusterIPs: [10.96.0.77, "fd00:10:96::77"], ipFamilies: [IPv4, IPv6], ports: [{port: 80, targetPort: 8080, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-4, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: "", port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.244.1.20]}]
`

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: t}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca.pem}}], contexts: [{name: c, context: {cluster: c, user: u}}]}
`

// newPatient makes a node without processes.
func newPatient(t *testing.T, i *incident) *patient {
	t.Helper()
	p := &patient{dir: t.TempDir(), cidr: clusterCIDR}
	p.state, p.socket = filepath.Join(p.dir, "state"), filepath.Join(p.dir, "run", "weft.sock")
	must(t, "", "mount", "--make-rprivate", "/")
	must(t, "", "ip", "link", "set", "lo", "up")
	for _, dir := range []string{p.state, filepath.Dir(p.socket)} {
		must(t, "", "mkdir", "-p", dir)
	}
	must(t, "", "mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "state", p.state)
	t.Cleanup(func() { _ = syscall.Unmount(p.state, syscall.MNT_DETACH) })
	// For a frontend of another user.
	must(t, "", "chmod", "755", p.dir, filepath.Dir(p.dir), filepath.Dir(p.socket))
	put(t, p.dir, "objects.yaml", objects)
	put(t, p.dir, "kubeconfig", kubeconfig)
	put(t, p.dir, "weft.yaml", configuration)
	p.certify(t, false)
	must(t, "", "chmod", "644", filepath.Join(p.dir, "kubeconfig"), filepath.Join(p.dir, "ca.pem"))
	at := func(name string) string { return filepath.Join(p.dir, name) }
	p.api = &apiServer{}
	p.api.log = at("api.log")
	p.api.argv = func() []string {
		return append([]string{filepath.Join(programs(), "standalone"), "-objects", at("objects.yaml"), "-cert", at("cert.pem"), "-key", at("key.pem")}, p.api.args...)
	}
	weft := func(log string, args ...string) *service {
		return &service{log: at(log), argv: func() []string {
			argv := append([]string{filepath.Join(programs(), "weft")}, args...)
			if i.shifted {
				argv = append([]string{filepath.Join(programs(), "clockshift"), at("clock")}, argv...)
			}
			if args[0] != "aggregator" {
				argv = append(argv, "--kubeconfig", at("kubeconfig"), "--hostname-override", "node-a", "--cluster-cidr", p.cidr)
			}
			return argv
		}}
	}
	storage := []string{"--socket", p.socket, "--state-dir", p.state, "--config", at("weft.yaml")}
	p.weft = weft("weft.log", append([]string{"run", "--metrics-bind-address", metricsAddress, "--healthz-bind-address", healthAddress}, storage...)...)
	p.second = weft("second.log", append([]string{"run", "--metrics-bind-address=", "--healthz-bind-address="}, storage...)...)
	if i.split {
		p.weft = weft("weft.log", "services", "--socket", p.socket, "--metrics-bind-address", metricsAddress, "--healthz-bind-address", healthAddress)
		p.aggregator = weft("aggregator.log", append([]string{"aggregator", "--metrics-bind-address", aggregatorMetrics, "--healthz-bind-address", aggregatorHealth}, storage...)...)
	}
	return p
}

// logs are the names of the logs that may report a fault.
func (p *patient) logs() []string {
	return []string{p.weft.log, p.second.log, filepath.Join(p.dir, "aggregator.log")}
}

// certify writes the API server's certificate. Its authority, which stays, has the same key.
func (p *patient) certify(t *testing.T, expired bool) {
	t.Helper()
	write := func(file, kind string, bytes []byte, err error) {
		t.Helper()
		ok(t, err)
		put(t, p.dir, file, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})))
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if p.key == nil {
		var err error
		p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ok(t, err)
		key, err := x509.MarshalECPrivateKey(p.key)
		write("key.pem", "EC PRIVATE KEY", key, err)
		signed, err := x509.CreateCertificate(rand.Reader, ca, ca, p.key.Public(), p.key)
		write("ca.pem", "CERTIFICATE", signed, err)
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "api"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if expired {
		server.NotAfter = time.Now().Add(-24 * time.Hour)
	}
	signed, err := x509.CreateCertificate(rand.Reader, server, ca, p.key.Public(), p.key)
	write("cert.pem", "CERTIFICATE", signed, err)
}
