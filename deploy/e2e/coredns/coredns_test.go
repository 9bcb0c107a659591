package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// beCoreDNS is set in the environment of the CoreDNS process.
const beCoreDNS = "WEFT_E2E_COREDNS"

func TestMain(m *testing.M) {
	if os.Getenv(beCoreDNS) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const patience = 3 * time.Minute

type server struct {
	corefile, address string
}

// start runs CoreDNS until the end of the test. PORT in the configuration is its port.
func start(t *testing.T, corefile string) *server {
	t.Helper()
	s := &server{corefile: filepath.Join(t.TempDir(), "Corefile"), address: freeAddress(t)}
	s.configure(t, corefile)
	cmd := exec.Command("/proc/self/exe", "-conf", s.corefile)
	cmd.Env = append(os.Environ(), beCoreDNS+"=1")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended, which the log explains
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of CoreDNS:\n%s", log.String())
		}
	})
	return s
}

func (s *server) configure(t *testing.T, corefile string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.corefile, []byte(strings.ReplaceAll(corefile, "PORT", port)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is a loopback address with a free port.
func freeAddress(t *testing.T) string {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	return tcp.Addr().String()
}

// ask returns the answer without its time to live, or the reason for a missing answer.
func (s *server) ask(network, name string, kind uint16) string {
	client := dns.Client{Net: network, Timeout: time.Second}
	in, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, kind), s.address)
	switch {
	case err != nil:
		return err.Error()
	case in.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[in.Rcode]
	}
	var all []string
	for _, record := range in.Answer {
		all = append(all, strings.TrimPrefix(record.String(), record.Header().String()))
	}
	return strings.Join(all, "; ")
}

func (s *server) expect(t *testing.T, network, name string, kind uint16, want string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var got string
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if got = s.ask(network, name, kind); got == want {
			return
		}
	}
	t.Errorf("%s over %s of %s = %q, want %q", dns.TypeToString[kind], network, name, got, want)
}

func TestRecordsOfServices(t *testing.T) {
	api := httptest.NewServer(objects{
		"/api/v1/namespaces": {"v1", "NamespaceList", `{"metadata":{"name":"default"}}`},
		"/api/v1/services": {"v1", "ServiceList", `{"metadata":{"name":"web","namespace":"default"},"spec":{"type":"ClusterIP",
			"clusterIP":"10.96.0.5","clusterIPs":["10.96.0.5","fd00:10:96::5"],"ports":[{"name":"http","port":80,"protocol":"TCP"}]}},
			{"metadata":{"name":"headless","namespace":"default"},"spec":{"type":"ClusterIP","clusterIP":"None","clusterIPs":["None"],"ports":[{"name":"http","port":80,"protocol":"TCP"}]}},
			{"metadata":{"name":"alias","namespace":"default"},"spec":{"type":"ExternalName","externalName":"example.com"}}`},
		"/apis/discovery.k8s.io/v1/endpointslices": {"discovery.k8s.io/v1", "EndpointSliceList", `{"metadata":{"name":"headless-1","namespace":"default",
			"labels":{"kubernetes.io/service-name":"headless"}},"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],
			"endpoints":[{"addresses":["10.244.1.2"],"conditions":{"ready":true},"hostname":"web-0"},{"addresses":["10.244.1.3"],"conditions":{"ready":false}}]}`},
	})
	t.Cleanup(api.Close)
	t.Cleanup(api.CloseClientConnections) // of watches, which do not end
	s := start(t, fmt.Sprintf(`.:PORT {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint %s
        pods insecure
        ttl 30
    }
    loop
    loadbalance
}`, api.URL))
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"web.default.svc.cluster.local.", dns.TypeA, "10.96.0.5"},
		{"web.default.svc.cluster.local.", dns.TypeAAAA, "fd00:10:96::5"},
		{"_http._tcp.web.default.svc.cluster.local.", dns.TypeSRV, "0 50 80 web.default.svc.cluster.local."},
		{"5.0.96.10.in-addr.arpa.", dns.TypePTR, "web.default.svc.cluster.local."},
		// Endpoints that are not ready have no records.
		{"headless.default.svc.cluster.local.", dns.TypeA, "10.244.1.2"},
		{"web-0.headless.default.svc.cluster.local.", dns.TypeA, "10.244.1.2"},
		{"10-244-1-9.default.pod.cluster.local.", dns.TypeA, "10.244.1.9"},
		{"alias.default.svc.cluster.local.", dns.TypeCNAME, "example.com."},
		{"missing.default.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			s.expect(t, network, test.name, test.kind, test.want)
		}
	}
}

// As in a spec, one domain has a separate server.
func TestForward(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upstream := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		answer := new(dns.Msg).SetReply(query)
		record, err := dns.NewRR(query.Question[0].Name + " 10 IN A 1.1.1.1")
		if err != nil {
			t.Errorf("make record: %v", err)
			return
		}
		answer.Answer = append(answer.Answer, record)
		_ = w.WriteMsg(answer) // the query is repeated
	})}
	go func() { _ = upstream.ActivateAndServe() }() // until the test ends
	t.Cleanup(func() { conn.Close() })
	s := start(t, fmt.Sprintf(`acme.local:PORT {
    forward . %s
}
.:PORT {
    hosts {
        2.2.2.2 other.example
    }
}`, conn.LocalAddr()))
	s.expect(t, "udp", "abc.acme.local.", dns.TypeA, "1.1.1.1")
	s.expect(t, "udp", "other.example.", dns.TypeA, "2.2.2.2")
}

// The kubelet replaces the file when its ConfigMap changes, without a restart of CoreDNS.
func TestReload(t *testing.T) {
	const corefile = `.:PORT {
    hosts {
        %s web.example
    }
    reload 2s 1s
}`
	s := start(t, fmt.Sprintf(corefile, "1.1.1.1"))
	s.expect(t, "udp", "web.example.", dns.TypeA, "1.1.1.1")
	s.configure(t, fmt.Sprintf(corefile, "2.2.2.2"))
	s.expect(t, "udp", "web.example.", dns.TypeA, "2.2.2.2")
}
