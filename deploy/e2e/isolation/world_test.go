package isolation

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// world is both nodes and the host outside.
type world struct {
	lab       *lab.Lab
	outside   *end
	sites     []*site
	manifests string
}

type site struct {
	// plugin is the connection of pods to the node.
	plugin string
	node   *end
	// isolated has a deny-all policy, once policies exist. The others never have one; others use the
	// address of borrowed.
	isolated, free, peer, borrowed *end
	daemon                         *lab.Process
	socket                         string
}

// end sends and receives packets.
type end struct {
	*lab.Namespace
	name string
	// device is the interface to the node, or the node's to outside.
	device net.Interface
	// IPv4 and IPv6
	own, second, local [2]netip.Addr
	pod                *lab.Pod
}

// Addresses unknown to Kubernetes: a pod's second network, and IPv4 of the link. The last byte differs.
var (
	secondBase = [2]netip.Addr{netip.MustParseAddr("172.31.7.0"), netip.MustParseAddr("fd00:31:7::")}
	localBase  = netip.MustParseAddr("169.254.9.0")
)

func numbered(base netip.Addr, n byte) netip.Addr {
	b := base.AsSlice()
	b[len(b)-1] = n
	a, _ := netip.AddrFromSlice(b)
	return a
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{manifests: filepath.Join(runDir, "manifests")}
	for _, dir := range []string{logDir, w.manifests} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.lab.Close)
	// The link of the nodes is also a bridge, and must pass everything.
	passBridges(t, w.lab.Control.Namespace, "0")
	w.outside = newEnd(t, w.lab.Outside.Namespace, "outside", lab.Uplink, 100)
	w.outside.own = [2]netip.Addr{w.lab.Outside.Addresses.V4, w.lab.Outside.Addresses.V6}
	w.outside.add(t, "lo", w.outside.second[0], w.outside.second[1], w.outside.local[0])
	quiet(t, w.outside.Namespace)
	for i, plugin := range []string{"routed", "bridged"} {
		w.sites = append(w.sites, w.newSite(t, plugin, w.lab.Nodes[i], byte(10*i)))
	}
	return w
}

// newSite makes the pods of a node, and gives them and the node second addresses.
func (w *world) newSite(t *testing.T, plugin string, n *lab.Node, base byte) *site {
	t.Helper()
	newPod := n.NewPod
	if plugin == "bridged" {
		newPod = n.NewBridgedPod
		passBridges(t, n.Namespace, "1")
	}
	s := &site{plugin: plugin, node: newEnd(t, n.Namespace, "node", lab.Uplink, base+1)}
	s.node.own = [2]netip.Addr{n.Addresses.V4, n.Addresses.V6}
	s.node.add(t, "lo", s.node.second[0], s.node.second[1], s.node.local[0])
	for i, a := range []netip.Addr{w.outside.second[0], w.outside.second[1], w.outside.local[0]} {
		s.node.ip(t, "route", "add", a.String(), "via", w.outside.own[i%2].String())
	}
	for i, p := range []struct {
		name string
		end  **end
	}{{"isolated", &s.isolated}, {"free", &s.free}, {"peer", &s.peer}, {"borrowed", &s.borrowed}} {
		pod, err := newPod(plugin + "-" + p.name)
		if err != nil {
			t.Fatal(err)
		}
		e := newEnd(t, pod.Namespace, p.name, lab.Uplink, base+byte(2+i))
		e.pod, e.own = pod, [2]netip.Addr{pod.Addresses.V4, pod.Addresses.V6}
		for _, a := range e.second {
			if err := pod.Announce(a); err != nil {
				t.Fatal(err)
			}
		}
		e.add(t, lab.Uplink, e.local[0])
		s.node.ip(t, "route", "add", e.local[0].String(), "dev", s.toward(e))
		quiet(t, pod.Namespace)
		if err := e.Sysctl("net/ipv4/ip_forward", "0"); err != nil {
			t.Fatal(err)
		}
		*p.end = e
	}
	return s
}

// toward is the node's interface to a pod.
func (s *site) toward(e *end) string {
	if s.plugin == "bridged" {
		return lab.Bridge
	}
	return e.pod.Link()
}

// gateway is the node's interface to another end.
func (s *site) gateway(t *testing.T, e *end) (net.Interface, netip.Addr) {
	if e.pod == nil {
		return s.node.device, s.node.local[1]
	}
	return device(t, s.node.Namespace, s.toward(e))
}

func newEnd(t *testing.T, ns *lab.Namespace, name, dev string, number byte) *end {
	t.Helper()
	e := &end{Namespace: ns, name: name}
	e.device, e.local[1] = device(t, ns, dev)
	e.local[0] = numbered(localBase, number)
	for f, base := range secondBase {
		e.second[f] = numbered(base, number)
	}
	return e
}

func device(t *testing.T, ns *lab.Namespace, name string) (dev net.Interface, local netip.Addr) {
	t.Helper()
	err := ns.Do(func() error {
		d, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		dev = *d
		addrs, err := d.Addrs()
		for _, a := range addrs {
			if p, ok := a.(*net.IPNet); ok && p.IP.To4() == nil && p.IP.IsLinkLocalUnicast() {
				local, _ = netip.AddrFromSlice(p.IP)
			}
		}
		return err
	})
	if err == nil && !local.IsValid() {
		err = fmt.Errorf("%s in %s has no link-local address", name, ns.Name())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dev, local
}

// quiet makes a host ignore redirects and router advertisements.
func quiet(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	for path, value := range map[string]string{
		"net/ipv6/conf/all/forwarding": "0", "net/ipv6/conf/" + lab.Uplink + "/accept_ra": "0",
		"net/ipv4/conf/all/accept_redirects": "0", "net/ipv4/conf/" + lab.Uplink + "/accept_redirects": "0", "net/ipv6/conf/" + lab.Uplink + "/accept_redirects": "0",
	} {
		if err := ns.Sysctl(path, value); err != nil {
			t.Fatal(err)
		}
	}
}

// passBridges sets whether packets of bridges pass nftables.
func passBridges(t *testing.T, ns *lab.Namespace, value string) {
	t.Helper()
	for _, tables := range []string{"iptables", "ip6tables"} {
		if err := ns.Sysctl("net/bridge/bridge-nf-call-"+tables, value); err != nil {
			t.Fatal(err)
		}
	}
}

func (e *end) add(t *testing.T, dev string, addrs ...netip.Addr) {
	t.Helper()
	for _, a := range addrs {
		e.ip(t, "address", "add", a.String()+"/"+strconv.Itoa(a.BitLen()), "dev", dev)
	}
}

func (e *end) ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.Run(t.Context(), "ip", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *site) pods() []*end { return []*end{s.isolated, s.free, s.peer, s.borrowed} }

// start waits until weft on both nodes is ready.
func (w *world) start(t *testing.T) {
	t.Helper()
	w.manifest(t, "objects.yaml", w.objects())
	for i, s := range w.sites {
		n := w.lab.Nodes[i]
		dir := filepath.Join(runDir, n.Name())
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.socket = filepath.Join(dir, "weft.sock")
		var err error
		s.daemon, err = n.Start(s.plugin, filepath.Join(logDir, s.plugin+".log"), nil, programs.Path("weft"), "run", "--network-policy",
			"--manifests", w.manifests, "--hostname-override", n.Name(), "--cluster-cidr", lab.Join(lab.ClusterCIDRs()),
			"--socket", s.socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address", "", "--healthz-bind-address", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("log of weft, %s:\n%s", s.plugin, s.daemon.Tail(15))
			}
			if err := s.daemon.Stop(30 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	for _, s := range w.sites {
		s.await(t, "ready", func(string) bool { return true }, "status", "--ready")
	}
}

// deny writes the policy of the isolated pods, and waits until it is in force.
func (w *world) deny(t *testing.T) {
	t.Helper()
	w.manifest(t, "policy.yaml", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny-all, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`)
	for _, s := range w.sites {
		s.await(t, "in force", func(out string) bool { return strings.Contains(out, "in force") }, "policies")
	}
}

// await runs weft get until ok accepts its output.
func (s *site) await(t *testing.T, what string, ok func(string) bool, args ...string) {
	t.Helper()
	err := lab.Within(t.Context(), time.Minute, func() error {
		out, err := s.node.Run(t.Context(), programs.Path("weft"), append(append([]string{"get"}, args...), "--socket", s.socket)...)
		if err == nil && !ok(out) {
			err = errors.New(out)
		}
		return errors.Join(err, s.daemon.Err())
	})
	if err != nil {
		t.Fatalf("weft, %s, is not %s: %v", s.plugin, what, err)
	}
}

// manifest atomically writes a file that weft reads.
func (w *world) manifest(t *testing.T, name, text string) {
	t.Helper()
	temporary := filepath.Join(runDir, name)
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(w.manifests, name)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) objects() string {
	var b strings.Builder
	for _, name := range []string{"shop", "dev"} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)
	}
	for i, s := range w.sites {
		n := w.lab.Nodes[i]
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {podCIDR: %s, podCIDRs: [%[2]s, %q]}\nstatus: {addresses: [{type: InternalIP, address: %s}, {type: InternalIP, address: %q}]}\n",
			n.Name(), n.PodCIDRs[0], n.PodCIDRs[1], n.Addresses.V4, n.Addresses.V6)
		for _, p := range s.pods() {
			namespace := "dev"
			if p == s.isolated {
				namespace = "shop"
			}
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: {nodeName: %s, containers: [{name: c, image: c}]}\nstatus: {phase: Running, podIP: %s, podIPs: [{ip: %[4]s}, {ip: %q}]}\n",
				p.pod.Name(), namespace, n.Name(), p.own[0], p.own[1])
		}
	}
	return b.String()
}
