package eval_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	ownServices = flag.Int("own.services", 20, "number of Services, and of NetworkPolicies, of the ruleset of weft itself")
	ownPackets  = flag.Int("own.packets", 300, "number of packets that are sent through it")
)

// TestOwnRulesetAgrees lets weft run on the node, with Services and NetworkPolicies, and compares what the kernel does
// with the outcomes for the ruleset that is read back from it. A figure:
//
//	go test ./nft/eval -run TestOwnRulesetAgrees -v -own.services 1000 -own.packets 20000 -timeout 0
func TestOwnRulesetAgrees(t *testing.T) {
	lab := newLab(t)
	random := rand.New(rand.NewPCG(*seed, 1))
	runWeft(t, lab, ownManifests(random))
	lab.node.Nft(t, tracing)
	conn, rules := readBack(t, lab)
	var sum tally
	comparePackets(t, lab, conn, rules, "of weft", ownPacket, *ownPackets, random, &sum)
	share := 100 * float64(sum.undecided) / float64(sum.packets)
	t.Logf("%d Services and policies, %d packets (%d of the node itself), and %d replies, %d steps: %d forwarded, %d rewritten, %d dropped, %d with several outcomes, %d (%.2f %%) undecided",
		*ownServices, sum.packets-sum.replies, sum.own, sum.replies, sum.steps, sum.forwarded, sum.rewritten, sum.dropped, sum.branched, sum.undecided, share)
	if sum.forwarded == 0 || sum.dropped == 0 || sum.rewritten == 0 || sum.replies == 0 || share > 2 {
		t.Errorf("the packets do not cover all results, or %.2f %% are undecided, want at most 2: %+v", share, sum)
	}
}

// ownManifests returns Services with endpoints on the server and on the client, and NetworkPolicies for pods of
// the client.
func ownManifests(random *rand.Rand) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "---\n"+format, args...) }
	add("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}}\n")
	add("{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: {podCIDRs: [10.1.0.0/24]}}\n")
	pod := func(name, node, ip string) {
		add("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, labels: {app: %s}}, spec: {nodeName: %s, containers: [{name: c, image: i}]}, status: {phase: Running, podIP: %s, podIPs: [{ip: %s}]}}\n", name, name, node, ip, ip)
	}
	for i := 1; i <= 5; i++ {
		pod(fmt.Sprintf("local%d", i), "node-1", fmt.Sprintf("10.1.0.%d", i))
	}
	pod("remote2", "node-2", "10.2.0.2")
	pod("remote3", "node-2", "10.2.0.3")
	endpoints := []string{"{addresses: [10.2.0.2], nodeName: node-2}", "{addresses: [10.2.0.3], nodeName: node-2}", "{addresses: [10.2.0.2], nodeName: node-2}, {addresses: [10.2.0.3], nodeName: node-2}", ""}
	for i := range *ownServices {
		affinity, policy := "", ""
		if random.IntN(5) == 0 {
			affinity = ", sessionAffinity: ClientIP"
		}
		if random.IntN(8) == 0 {
			policy = ", internalTrafficPolicy: Local"
		}
		add("{apiVersion: v1, kind: Service, metadata: {name: s%d, namespace: shop}, spec: {clusterIP: %s, clusterIPs: [%s], ipFamilies: [IPv4], ports: [{name: web, port: 80, protocol: TCP}, {name: dns, port: 53, protocol: UDP}]%s%s}}\n",
			i, ownAddress(i), ownAddress(i), affinity, policy)
		add("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s%d, namespace: shop, labels: {kubernetes.io/service-name: s%d}}, addressType: IPv4, ports: [{name: web, port: 8080, protocol: TCP}, {name: dns, port: 5353, protocol: UDP}], endpoints: [%s]}\n",
			i, i, endpoints[random.IntN(len(endpoints))])
		peers := []string{"{podSelector: {matchLabels: {app: remote2}}}", "{podSelector: {}}", "{ipBlock: {cidr: 10.2.0.0/24, except: [10.2.0.3/32]}}", "{namespaceSelector: {}}"}
		ports := []string{"", ", ports: [{port: 80}]", ", ports: [{port: 8080}, {protocol: UDP, port: 5353}]", ", ports: [{protocol: UDP, port: 50, endPort: 60}]"}
		add("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p%d, namespace: shop}, spec: {podSelector: {matchLabels: {app: local%d}}, policyTypes: [Egress], egress: [{to: [%s]%s}]}}\n",
			i, 2+random.IntN(4), peers[random.IntN(len(peers))], ports[random.IntN(len(ports))])
	}
	return b.String()
}

// ownAddress returns the ClusterIP of a Service.
func ownAddress(i int) string { return fmt.Sprintf("10.96.%d.%d", 1+i/200, 1+i%200) }

// ownPacket is randomPacket, half of them for a Service.
func ownPacket(random *rand.Rand, number int, own bool) []byte {
	b := randomPacket(random, number, own)
	if b[9] == unix.IPPROTO_ICMP || random.IntN(2) == 0 {
		return b
	}
	i := random.IntN(*ownServices)
	copy(b[16:], []byte{10, 96, byte(1 + i/200), byte(1 + i%200)})
	transport := b[20:]
	port, sum := uint16(53), 6
	if b[9] == unix.IPPROTO_TCP {
		port, sum = 80, 16
	}
	binary.BigEndian.PutUint16(transport[2:], port)
	for _, at := range []int{10, 20 + sum} {
		binary.BigEndian.PutUint16(b[at:], 0)
	}
	binary.BigEndian.PutUint16(b[10:], checksum(b[:20], 0))
	binary.BigEndian.PutUint16(transport[sum:], checksum(b[12:], uint32(int(b[9])+len(transport))))
	return b
}

// runWeft starts weft on the node, and waits until all is in force and no connection is judged again: the rules of
// established connections change then.
func runWeft(t *testing.T, lab *lab, manifests string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "weft")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/weft-proxy/weft/cmd/weft").CombinedOutput(); err != nil {
		t.Fatalf("build weft: %v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "run", "weft.sock")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "--network-policy", "--manifests", dir, "--hostname-override", "node-1", "--cluster-cidr", "10.1.0.0/24",
		"--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address=", "--healthz-bind-address=")
	cmd.Stdout, cmd.Stderr = log, log
	if err := lab.node.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	var out []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		out, _ = exec.Command(binary, "get", "policies", "--socket", socket).CombinedOutput()
		if strings.Count(string(out), "in force") == *ownServices {
			services, err := exec.Command(binary, "get", "fragments", "--socket", socket).CombinedOutput()
			settled := strings.Count(lab.node.Run(t, "nft", "list", "table", "ip", "weft-policy"), "ct state established,related accept") == 2
			if err == nil && strings.Contains(string(services), "services/services") && settled {
				return
			}
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("weft has not all in force within a minute: %s\n%s", out, text)
}
