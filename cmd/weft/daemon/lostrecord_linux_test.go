package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var (
	lostRounds = flag.Int("lost.rounds", 4, "number of restarts with a record that is lost, old or partly written")
	lostSeed   = flag.Uint64("lost.seed", 1, "seed of the restarts")
)

// lostNode is a node whose kernel, that of a network namespace, outlives weft.
type lostNode struct {
	t     *testing.T
	dir   string
	state string
	ns    *nfttest.NS
}

// blocks returns the tables, with each chain and set: two spaces before its name, and four before each
// line in it. It sorts chains and sets, which nft lists in the order of their creation.
func (n *lostNode) blocks() string {
	n.t.Helper()
	var tables, blocks []string
	for line := range strings.Lines(n.ns.Run(n.t, "nft", "list", "ruleset")) {
		text := strings.TrimLeft(line, "\t")
		name, _, opens := strings.Cut(text, " {\n")
		switch depth := len(line) - len(text); {
		case strings.HasPrefix(line, "table "):
			name, _, _ = strings.Cut(text, " {")
			blocks = []string{name + "\n"}
		case line == "}\n":
			slices.Sort(blocks[1:])
			tables = append(tables, strings.Join(blocks, ""))
		case depth == 1 && opens:
			blocks = append(blocks, "  "+name+"\n")
		case text != "}\n" && text != "\n":
			blocks[len(blocks)-1] += "    " + text
		}
	}
	slices.Sort(tables)
	return strings.Join(tables, "")
}

// start starts the aggregator and both frontends, and returns what ends them.
func (n *lostNode) start() (stop func()) {
	n.t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: n.ns.FD()})
	must(n.t, err)
	agg := aggregatortest.Start(n.t, aggregatortest.Config{Config: aggregator.Config{Kernel: conn, StateDir: n.state, OwnTables: ownTables}})
	src, err := source.NewManifests(n.dir, nil)
	must(n.t, err)
	s, err := services.New(services.Config{Source: src, NodeName: "node-1", Socket: agg.Socket, MinSyncPeriod: -1})
	must(n.t, err)
	p, err := policy.New(policy.Config{Source: src, NodeName: "node-1", Socket: agg.Socket, MinInterval: -1})
	must(n.t, err)
	ctx, cancel := context.WithCancel(n.t.Context())
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{src.Run, s.Run, p.Run} {
		g.Go(func() error { return run(ctx) })
	}
	return func() {
		cancel()
		if err := errors.Join(g.Wait(), agg.Stop(), conn.Close()); err != nil {
			n.t.Error(err)
		}
	}
}

// change writes other objects: pods with other labels, and some of the Services and policies.
func (n *lostNode) change(random *rand.Rand) {
	n.t.Helper()
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "---\n"+format, args...) }
	add("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n")
	add("{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: {podCIDRs: [10.244.1.0/24, \"fd00:1::/64\"]}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}, {type: InternalIP, address: \"2001:db8::1\"}]}}\n")
	for i := range 6 {
		add("{apiVersion: v1, kind: Pod, metadata: {name: p%[1]d, namespace: shop, uid: p%[1]d, labels: {app: a%[2]d, role: r%[3]d}}, spec: {nodeName: node-%[4]d, containers: [{name: c, image: i}]}, status: {phase: Running, podIP: 10.244.1.%[5]d, podIPs: [{ip: 10.244.1.%[5]d}, {ip: \"fd00:1::%[5]d\"}]}}\n",
			i, random.IntN(2), random.IntN(3), 1+i/4, 10+i)
	}
	for i := range 5 {
		if random.IntN(2) == 0 {
			add("{apiVersion: v1, kind: Service, metadata: {name: s%[1]d, namespace: shop}, spec: {clusterIP: 10.96.0.%[2]d, clusterIPs: [10.96.0.%[2]d], ports: [{port: 80}]}}\n", i, i+1)
			add("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s%[1]d, namespace: shop, labels: {kubernetes.io/service-name: s%[1]d}}, addressType: IPv4, ports: [{port: 8080}], endpoints: [{addresses: [10.244.1.%[2]d]}]}\n", i, 10+random.IntN(6))
		}
		if random.IntN(2) == 0 {
			add("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n%d, namespace: shop}, spec: {podSelector: {matchLabels: {app: a%d}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {role: r%d}}}, {ipBlock: {cidr: 198.51.100.%d/32}}]}]}}\n",
				i, random.IntN(2), random.IntN(3), random.IntN(3))
		}
	}
	path := filepath.Join(n.dir, "all.yaml")
	must(n.t, os.WriteFile(path+".new", []byte(b.String()), 0o600))
	must(n.t, os.Rename(path+".new", path))
}

// tables returns the tables. Addresses whose connections are judged again are left out, and the
// chains that depend on them: those of before the restart are there as well.
func (n *lostNode) tables() string {
	var out []string
	skip := false
	for line := range strings.Lines(n.blocks()) {
		if !strings.HasPrefix(line, "    ") {
			name := strings.TrimSpace(line)
			skip = strings.HasPrefix(name, "chain forward") || name == "chain input" || name == "set recheck"
		} else if skip {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

// spoil loses the record, puts an old one in its place, or cuts its files.
func (n *lostNode) spoil(how int, old string, random *rand.Rand) {
	n.t.Helper()
	var err error
	switch how {
	case 0:
		err = os.RemoveAll(n.state)
	case 1:
		if err = os.RemoveAll(n.state); err == nil {
			err = os.CopyFS(n.state, os.DirFS(old))
		}
	default:
		err = filepath.WalkDir(n.state, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			return os.Truncate(path, random.Int64N(info.Size()+1))
		})
	}
	must(n.t, err)
}

// TestLostRecord stops weft at random instants, loses the record of what it has committed, or leaves an
// old one or a part of it, and changes the objects. After the restart its tables are those of a node on which weft never ran. A
// figure:
//
//	.ci/netadmin go test ./cmd/weft/daemon -run TestLostRecord -v -lost.rounds 100 -timeout 0
func TestLostRecord(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	random := rand.New(rand.NewPCG(*lostSeed, 0))
	n := &lostNode{t: t, dir: t.TempDir(), state: filepath.Join(t.TempDir(), "state"), ns: nfttest.New(t)}
	for round := range *lostRounds {
		n.change(random)
		stop := n.start()
		time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond) //nolint:forbidigo // the instant is random
		old := t.TempDir()
		must(t, os.CopyFS(old, os.DirFS(n.state)))
		for range random.IntN(4) {
			n.change(random)
			time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond) //nolint:forbidigo // the instant is random
		}
		stop()
		n.spoil(round%3, old, random)
		n.change(random)

		fresh := &lostNode{t: t, dir: n.dir, state: t.TempDir(), ns: nfttest.New(t)}
		stopFresh := fresh.start()
		stop = n.start()
		want := ""
		aggregatortest.Eventually(t, fmt.Sprintf("round %d, seed %d: the tables are those of a node on which weft never ran", round, *lostSeed), func() bool {
			before := want
			want = fresh.tables()
			return want != "" && want == before && n.tables() == want
		})
		stop()
		stopFresh()
	}
}
