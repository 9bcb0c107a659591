package security

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

const (
	first, second = "10.244.1.2", "10.244.1.3"
	serviceIP     = "10.96.0.10"
)

// values turn on all functions of weft's containers.
func values(mode string) map[string]any {
	return map[string]any{
		"mode": mode, "apiServer": map[string]any{"host": apiHost, "port": 6443}, "clusterCIDR": "10.244.0.0/16",
		"networkPolicy": map[string]any{"enabled": true, "start": "deny", "status": true},
		"configuration": map[string]any{"apiVersion": "weft.dev/v1alpha1", "kind": "Configuration", "publishers": []any{publisher("team-a")}},
	}
}

func publisher(name string) map[string]any {
	return map[string]any{"name": name, "match": map[string]any{"uid": 4001}, "allow": map[string]any{"tables": []any{map[string]any{"name": name}}}}
}

// story is weft's life in the pod: traffic, changes, every verb of an operator, kill -9, an interrupted
// API server, and the end.
func story(t *testing.T, p *pod) {
	p.api.Set(objects(t)...)
	p.api.Set(endpoints(first))
	p.start(t)
	p.reaches(t, first)
	p.api.Set(endpoints(second))
	p.reaches(t, second)
	p.pages(t)
	p.verbs(t)
	put(t, p.volumes["publishers"], "config.yaml", strings.ReplaceAll(p.configuration, "team-a", "team-b"))
	within(t, "the configuration is read again", func() error {
		if out := p.publisher().log(); !strings.Contains(out, "publishers") {
			return errors.New(out)
		}
		return nil
	})
	p.api.Stop()
	p.reaches(t, second)
	must(t, p.api.Start())
	p.api.Set(endpoints(first))
	p.reaches(t, first)
	for _, c := range p.containers {
		c.signal(t, "KILL")
	}
	p.reaches(t, first)
	p.start(t)
	p.api.Set(endpoints(second))
	p.reaches(t, second)
	p.leave(t)
}

// leave ends the frontends by SIGTERM, and the aggregator by weft cleanup.
func (p *pod) leave(t *testing.T) {
	t.Helper()
	last := p.publisher()
	for _, c := range p.containers {
		if c != last {
			c.signal(t, "TERM")
		}
	}
	// weft is the first process of the container: its end may kill the verb before it has printed.
	last.exec(t, []int{137}, "cleanup")
	last.ended(t)
	if out, err := exec.CommandContext(t.Context(), "nft", "list", "tables").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("after weft cleanup: %v\n%s", err, out)
	}
}

func (p *pod) verbs(t *testing.T) {
	t.Helper()
	kernel := p.publisher()
	put(t, p.volumes["run"], "deny.nft", "table inet deny {\n set blocked { type ipv4_addr; flags interval; elements = { 192.0.2.200 }; }\n chain input { type filter hook input priority filter; policy accept; ip saddr @blocked counter drop; }\n}\n")
	for _, line := range []string{
		"version", "check -f /run/weft/deny.nft", "apply -f /run/weft/deny.nft", "get", "get all", "get tables", "get publishers", "get status",
		"get deny -o nft", "history", "explain --from node --to 10.96.0.10:80", "explain --from node --to default/web:80", "get services", "get endpoints default/web", "get policies", "get pods", "explain --from 10.244.1.2 --to 10.96.0.10:80 -o json", "delete deny",
	} {
		kernel.exec(t, nil, strings.Fields(line)...)
	}
	// plan exits with 3 if there is something to do.
	kernel.exec(t, []int{3}, "plan", "-f", "/run/weft/deny.nft")
	// doctor may find something in a network namespace that is not a node.
	kernel.exec(t, []int{1}, "doctor", "--bundle", "/run/weft/bundle.tar.gz")
	if _, err := os.Stat(filepath.Join(p.volumes["run"], "bundle.tar.gz")); err != nil {
		t.Error(err)
	}
	traced := make(chan string, 1)
	go func() {
		traced <- kernel.exec(t, nil, "trace", "--to", serviceIP+":80", "--count", "1", "--time", "30s")
	}()
	within(t, "weft trace ends", func() error {
		select {
		case out := <-traced:
			if !strings.Contains(out, second) {
				t.Errorf("weft trace does not show the way to %s:\n%s", second, out)
			}
			return nil
		default:
			_, err := tcp(serviceIP + ":80")
			return errors.Join(errors.New("it runs"), err)
		}
	})
}

// pages asks all HTTP servers.
func (p *pod) pages(t *testing.T) {
	t.Helper()
	for _, c := range p.containers {
		get := c.spec.LivenessProbe.HTTPGet
		if _, err := ask(fmt.Sprintf("http://%s:%d/livez", get.Host, get.Port.IntValue())); err != nil {
			t.Error(err)
		}
		for _, a := range c.spec.Args {
			if address, ok := strings.CutPrefix(a, "--metrics-bind-address="); ok {
				if _, err := ask("http://" + address + "/metrics"); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if c := p.publisher(); len(p.containers) == 1 {
		if _, err := ask("http://127.0.0.1:10249/status/"); err != nil {
			t.Errorf("%v\n%s", err, c.log())
		}
	}
	within(t, "the health check node port answers", func() error { _, err := ask("http://192.0.2.1:31000/"); return err })
}

// reaches waits until the Service leads to an endpoint by TCP and UDP. The UDP client keeps its port,
// so its old flow must go.
func (p *pod) reaches(t *testing.T, endpoint string) {
	t.Helper()
	within(t, "TCP reaches "+endpoint, func() error { return is(endpoint)(tcp(serviceIP + ":80")) })
	within(t, "a node port reaches "+endpoint, func() error { return is(endpoint)(tcp("192.0.2.1:30080")) })
	within(t, "UDP reaches "+endpoint, func() error { return is(endpoint)(udp(serviceIP + ":53")) })
}

func is(want string) func(string, error) error {
	return func(have string, err error) error {
		if err == nil && have != want {
			err = fmt.Errorf("%s answered", have)
		}
		return err
	}
}

func tcp(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	text, err := io.ReadAll(c)
	return string(text), err
}

// udp sends from port 40053.
func udp(address string) (string, error) {
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP("192.0.2.1"), Port: 40053}}
	c, err := d.Dial("udp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := c.Write([]byte("?")); err != nil {
		return "", err
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// serve answers with its address.
func serve(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address+":8080")
	must(t, err)
	u, err := net.ListenPacket("udp", address+":8053")
	must(t, err)
	t.Cleanup(func() { _, _ = l.Close(), u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, address)
			_ = c.Close()
		}
	}()
	go func() {
		b := make([]byte, 100)
		for {
			_, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte(address), from)
		}
	}()
}

func ask(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, a.Status, body)
	}
	return string(body), err
}

func within(t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		<-tick.C
	}
}

// of testdata/objects.yaml
func objects(t *testing.T) (out []apitest.Object) {
	t.Helper()
	text, err := os.ReadFile("testdata/objects.yaml")
	must(t, err)
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		must(t, err)
		out = append(out, o.(apitest.Object)) //nolint:forcetypeassert // every kind is an object
	}
	return out
}

func endpoints(address string) *discoveryv1.EndpointSlice {
	http, dns, tcp, udp := "http", "dns", corev1.ProtocolTCP, corev1.ProtocolUDP
	web, domain, node := int32(8080), int32(8053), nodeName
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &http, Protocol: &tcp, Port: &web}, {Name: &dns, Protocol: &udp, Port: &domain}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: &node}},
	}
}
