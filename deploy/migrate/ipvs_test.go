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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
)

// TestAssessIPVS compares mode ipvs with weft. The warnings about kube-proxy's settings are left out.
func TestAssessIPVS(t *testing.T) {
	peer, weft := gated()
	local := corev1.ServiceInternalTrafficPolicyLocal
	web := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	policies := &corev1.Service{ObjectMeta: web, Spec: corev1.ServiceSpec{ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, InternalTrafficPolicy: &local}}
	balanced := &corev1.Service{ObjectMeta: web, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}}}
	const pods, vips = "clusterCIDR: 10.244.0.0/16\n", "differs: configuration: addresses of Services are local addresses"
	const scheduler = "configuration: the scheduler of IPVS is "
	for _, test := range []struct {
		config  string
		service *corev1.Service
		want    []string
	}{
		{pods, policies, []string{
			"differs: Services: 1 have externalTrafficPolicy Local: a node without an endpoint drops packets from outside", "differs: Services: 1 have internalTrafficPolicy Local",
			vips, "note: " + scheduler + "rr: weft chooses endpoints at random, all with the same probability. Over many",
		}},
		{"ipvs: {scheduler: lc, tcpTimeout: 15m, excludeCIDRs: [192.0.2.0/24], strictARP: true}\n", balanced, []string{
			"blocks: configuration: the addresses of pods are not known", vips, "differs: configuration: idle connections end after ipvs.tcpTimeout, tcpFinTimeout and udpTimeout (15m0s, 0s, 0s)",
			"differs: " + scheduler + "lc: weft chooses endpoints at random, all with the same probability, and does not count", "note: configuration: virtual servers in ipvs.excludeCIDRs (192.0.2.0/24)",
		}},
		{pods + "ipvs: {scheduler: mh}\n", balanced, []string{"differs: Services: the nodes answer ARP for external addresses of 1", vips, "differs: " + scheduler + "mh: weft chooses endpoints at random, all with the same probability, so that a client"}},
		{"iptables: {masqueradeAll: true}\nipvs: {scheduler: fo, strictARP: true}\n", balanced, []string{vips, "differs: " + scheduler + "fo: weft"}},
	} {
		c := &cluster{client: fake.NewClientset(peer, weft, config("mode: ipvs\nnodePortAddresses: [primary]\n"+test.config), test.service)}
		r, err := c.assess(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Findings {
			if !strings.Contains(f.Found, "no effect") && !strings.Contains(f.Found, "mode ipvs: ") && !strings.Contains(f.Found, "masqueradeAll is used") {
				got = append(got, fmt.Sprintf("%s: %s: %s", f.Level, f.Subject, f.Found))
			}
		}
		slices.Sort(got)
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: found %q, want %q", test.config, got, test.want)
		}
	}
}

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
