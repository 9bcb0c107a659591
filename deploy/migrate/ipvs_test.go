package migrate

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
)

// TestAssessHost examines a node of mode ipvs: schedulers in use, sysctls, and programs on addresses of Services.
func TestAssessHost(t *testing.T) {
	proc := t.TempDir()
	for name, text := range map[string]string{"vs/conntrack": "1\n", "vs/nat_icmp_send": "1\n", "conf/all/arp_ignore": "1\n"} {
		path := filepath.Join(proc, "sys/net/ipv4", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.7:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := &report{}
	r.addIPVSHost(proc, &ipvs.Left{})
	if len(r.Findings) > 0 {
		t.Errorf("without IPVS: %v", r.Findings)
	}
	r.addIPVSHost(proc, &ipvs.Left{
		Servers: []ipvs.Server{{Scheduler: "wrr"}, {Scheduler: "sh"}, {Scheduler: "wrr"}}, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.7")},
	})
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s: %s", f.Level, f.Found))
	}
	want := []string{
		"differs: the scheduler of IPVS is sh", "note: the scheduler of IPVS is wrr", "blocks: net.ipv4.vs.nat_icmp_send is 1",
		"note: values of net.ipv4 that kube-proxy may have set stay: vs.conntrack=1, conf.all.arp_ignore=1", "differs: programs listen on addresses of kube-ipvs0: " + l.Addr().String(),
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("found %q, want %q", got, want)
	}
}
