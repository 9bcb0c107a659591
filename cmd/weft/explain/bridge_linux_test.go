package explain_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// bridged are two pods on a bridge: policies let a send everything, and b receive at port 7777 only.
const bridged = `{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: {podCIDRs: [10.9.0.0/24]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, uid: a, labels: {app: a}}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}, status: {phase: Running, podIPs: [{ip: 10.9.0.1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: shop, uid: b, labels: {app: b}}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}, status: {phase: Running, podIPs: [{ip: 10.9.0.2}]}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: shop}, spec: {podSelector: {matchLabels: {app: a}}, policyTypes: [Egress], egress: [{}]}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: b, namespace: shop}, spec: {podSelector: {matchLabels: {app: b}}, ingress: [{ports: [{protocol: UDP, port: 7777}]}]}}
`

// poll waits until ok.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// setting writes a setting of a namespace.
func setting(t *testing.T, ns *nfttest.NS, name, value string) {
	t.Helper()
	must(t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) }))
}

// newBridge connects two pods, 10.9.0.1 and 10.9.0.2, to a bridge of the node, 10.9.0.254. The pods have 10.9.0.4 and
// 10.9.0.3 too, which is not in their status.
func newBridge(t *testing.T) (node, a, b *nfttest.NS) {
	t.Helper()
	node, a, b = nfttest.New(t), nfttest.New(t), nfttest.New(t)
	prefixes := func(text string) (out []netip.Prefix) {
		for p := range strings.FieldsSeq(text) {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	node.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	node.Run(t, "ip", "address", "add", "10.9.0.254/24", "dev", "br0")
	node.Run(t, "ip", "link", "set", "br0", "up")
	setting(t, node, "ipv4/ip_forward", "1")
	nfttest.Veth(t, nfttest.Port{NS: a, Name: "eth0", Addrs: prefixes("10.9.0.1/24 10.9.0.4/24")}, nfttest.Port{NS: node, Name: "porta"})
	nfttest.Veth(t, nfttest.Port{NS: b, Name: "eth0", Addrs: prefixes("10.9.0.2/24 10.9.0.3/24")}, nfttest.Port{NS: node, Name: "portb"})
	for _, port := range []string{"porta", "portb"} {
		node.Run(t, "ip", "link", "set", port, "master", "br0")
	}
	poll(t, "neighbours", func() bool {
		err := node.Do(func() error {
			conn, err := net.ListenUDP("udp", nil)
			for i := 1; i <= 4 && err == nil; i++ {
				_, err = conn.WriteTo([]byte{1}, &net.UDPAddr{IP: net.IPv4(10, 9, 0, byte(i)), Port: 9})
			}
			return errors.Join(err, conn.Close())
		})
		return err == nil && strings.Count(node.Run(t, "ip", "neigh"), "lladdr") == 4
	})
	return node, a, b
}

// runWeft runs weft on the node until the test ends, and returns its binary and its socket once it binds the ports.
func runWeft(t *testing.T, node *nfttest.NS) (weft, socket string) {
	t.Helper()
	dir := t.TempDir()
	weft, socket = filepath.Join(dir, "weft"), filepath.Join(dir, "run", "weft.sock")
	if out, err := exec.Command("go", "build", "-o", weft, "github.com/weft-proxy/weft/cmd/weft").CombinedOutput(); err != nil {
		t.Fatalf("build weft: %v: %s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(bridged), 0o600))
	cmd := exec.Command(weft, "run", "--network-policy", "--manifests", dir, "--hostname-override", "node-1", "--cluster-cidr", "10.9.0.0/24",
		"--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address=", "--healthz-bind-address=")
	must(t, node.Do(cmd.Start))
	t.Cleanup(func() { _, _ = cmd.Process.Signal(os.Interrupt), cmd.Wait() })
	poll(t, "the ports", func() bool {
		text, _ := node.Output("", "nft", "list", "table", "bridge", "weft-policy")
		return strings.Contains(text, `"porta" . 10.9.0.1`) && strings.Contains(text, `"portb" . 10.9.0.2`)
	})
	return weft, socket
}

// TestBridgeAgrees compares what explain says of packets that pass ports of a bridge with what becomes of them, with
// br_netfilter and without.
func TestBridgeAgrees(t *testing.T) {
	node, a, b := newBridge(t)
	weft, socket := runWeft(t, node)
	servers := make(map[string]*net.UDPConn)
	for address, ns := range map[string]*nfttest.NS{"10.9.0.2:7777": b, "10.9.0.2:8888": b, "10.9.0.3:7777": b, "10.9.0.254:7777": node} {
		servers[address] = listen(t, ns, address)
	}
	const from, to, policy = "a policy selects the pod that sent it", "a policy selects the pod at this port", "no rule of policy shop/b allows it"
	for _, filter := range []string{"1", "0"} {
		setting(t, node, "bridge/bridge-nf-call-iptables", filter)
		closed := map[string]string{"1": policy, "0": ""}[filter]
		for _, c := range []struct {
			ns             *nfttest.NS
			from, to, drop string
		}{
			{a, "10.9.0.1", "10.9.0.2:7777", ""},
			{a, "10.9.0.1", "10.9.0.2:8888", closed},
			{a, "10.9.0.4", "10.9.0.2:7777", from},
			{a, "10.9.0.1", "10.9.0.3:7777", to},
			{a, "10.9.0.1", "10.9.0.254:7777", ""},
			{a, "10.9.0.4", "10.9.0.254:7777", from},
			{node, "10.9.0.254", "10.9.0.2:8888", ""},
		} {
			source := c.from
			if c.ns == node {
				source = "node"
			}
			text, err := node.Output("", weft, "explain", "--from", source, "--to", c.to, "--protocol", "udp", "--socket", socket)
			says := strings.HasPrefix(text, "The packet is delivered")
			if !says && !strings.HasPrefix(text, "Dropped: "+c.drop) || says != (c.drop == "") {
				t.Errorf("br_netfilter %s, %s -> %s: want %q (%v)\n%s", filter, c.from, c.to, c.drop, err, text)
			}
			if arrived := sent(t, c.ns, c.from, servers[c.to], says); arrived != says {
				t.Errorf("br_netfilter %s, %s -> %s: arrived %t, and explain says\n%s", filter, c.from, c.to, arrived, text)
			}
		}
	}
}

// TestBridgeTraced has the drop at a port of a bridge in what weft trace says of a packet, if br_netfilter is there.
func TestBridgeTraced(t *testing.T) {
	node, a, b := newBridge(t)
	weft, socket := runWeft(t, node)
	setting(t, node, "bridge/bridge-nf-call-iptables", "1")
	server, traced := listen(t, b, "10.9.0.3:7777"), make(chan string, 1)
	go func() {
		text, err := node.Output("", weft, "trace", "--from", "10.9.0.1", "--to", "10.9.0.3:7777", "--protocol", "udp", "--count", "1", "--time", "30s", "--socket", socket)
		traced <- fmt.Sprint(text, err)
	}()
	for {
		select {
		case text := <-traced:
			for _, want := range []string{"Dropped: a policy selects the pod at this port", "chain to-pod in table bridge weft-policy, fragment policy/policies"} {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in\n%s", want, text)
				}
			}
			return
		default:
			sent(t, a, "10.9.0.1", server, false)
		}
	}
}

// listen opens a socket in a namespace.
func listen(t *testing.T, ns *nfttest.NS, address string) (conn *net.UDPConn) {
	t.Helper()
	err := ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		return err
	})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sent sends a packet from an address, and reports whether it arrives. One that should not has less time.
func sent(t *testing.T, ns *nfttest.NS, from string, server *net.UDPConn, should bool) bool {
	t.Helper()
	client := listen(t, ns, from+":0")
	if _, err := client.WriteTo([]byte{1}, server.LocalAddr()); err != nil && !errors.Is(err, os.ErrPermission) {
		t.Fatal(err)
	}
	wait := 300 * time.Millisecond
	if should {
		wait = 3 * time.Minute
	}
	_ = server.SetReadDeadline(time.Now().Add(wait))
	for {
		_, sender, err := server.ReadFrom(make([]byte, 10))
		if err != nil || sender.String() == client.LocalAddr().String() {
			return err == nil
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
