package get

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// node runs both frontends on a directory of manifests, each with an aggregator that keeps what was
// committed in place of a kernel.
type node struct {
	t   *testing.T
	dir string
	// services and policies keep one fragment each.
	services, policies *publishtest.Aggregator
	conn               cli.Connection
	reg                *prometheus.Registry

	mu     sync.Mutex
	events []string
}

// Service implements services.Config.Events.
func (n *node) Service(key model.Key, _, reason, _ string) { n.event(reason, key.String()) }

// Object implements policy.Events.
func (n *node) Object(ref corev1.ObjectReference, _, reason, _ string) {
	n.event(reason, ref.Namespace+"/"+ref.Name)
}

func (n *node) event(reason, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, reason+" "+name)
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), services: publishtest.New(t), policies: publishtest.New(t), reg: prometheus.NewPedanticRegistry()}
	// Readers ask another one, which goes on while those are away.
	n.conn.Socket = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}}).Socket
	return n
}

// hold makes the updates of both frontends wait until release is called.
func (n *node) hold() (release func()) {
	first, second := n.services.Hold(), n.policies.Hold()
	return func() { first(); second() }
}

// start starts the frontends, which end with the test.
func (n *node) start() {
	n.t.Helper()
	src, err := source.NewManifests(n.dir, nil)
	must(n.t, err)
	s, err := services.New(services.Config{Source: src, NodeName: "node-1", Socket: n.services.Socket, Events: n, Registerer: n.reg, MinSyncPeriod: -1, SyncPeriod: time.Second})
	must(n.t, err)
	p, err := policy.New(policy.Config{Source: src, NodeName: "node-1", Socket: n.policies.Socket, Events: n, Registerer: n.reg, MinInterval: -1, MaxRetry: time.Second})
	must(n.t, err)
	ctx, cancel := context.WithCancel(n.t.Context())
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{src.Run, s.Run, p.Run} {
		g.Go(func() error { return run(ctx) })
	}
	for publisher, tables := range map[string][]client.Table{services.Publisher: s.Tables(), policy.Publisher: p.Tables()} {
		g.Go(func() error {
			return client.ServeTables(ctx, client.Config{Socket: n.conn.Socket, Publisher: publisher}, tables...)
		})
	}
	n.t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			n.t.Error(err)
		}
	})
}

// write replaces a manifest; an empty text removes it.
func (n *node) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name+".yaml")
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	switch {
	case err == nil && text != "":
		err = os.Rename(path+".new", path)
	case err == nil:
		err = os.Remove(path)
	}
	must(n.t, err)
}

// service writes a Service with one endpoint at a port, and further ports without endpoints.
func (n *node) service(name, ip string, port, more int) {
	ports := "{name: a, port: 80}"
	for i := range more {
		ports += fmt.Sprintf(", {name: p%d, port: %d}", i, 1000+i)
	}
	n.write("service-"+name, fmt.Sprintf(`apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Service, metadata: {name: %[1]s, namespace: shop}, spec: {clusterIP: %[2]s, clusterIPs: [%[2]s], sessionAffinity: %[5]s, ports: [%[4]s]}}
  - apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: {name: %[1]s-1, namespace: shop, labels: {kubernetes.io/service-name: %[1]s}}
    addressType: IPv4
    ports: [{name: a, port: %[3]d}]
    endpoints: [{addresses: [10.244.1.2], nodeName: node-1}]
`, name, ip, port, ports, map[bool]string{true: "ClientIP", false: "None"}[more > 0]))
}

// policy writes a policy that accepts one port.
func (n *node) policy(name string, port int) {
	n.write("policy-"+name, fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: %d}]}]}
`, name, port))
}

// pod writes a pod of this node.
func (n *node) pod(name, ip string) {
	n.write("pod-"+name, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, uid: %s}
spec: {nodeName: node-1, containers: [{name: a, image: a}]}
status: {phase: Running, podIP: %s, podIPs: [{ip: %s}]}
`, name, name, ip, ip))
}

// shown is what the tables of "weft get" say of an object.
type shown struct{ state, reason string }

// tables asks the frontends as "weft get" does. An error means that one does not know everything yet.
func (n *node) tables() (map[string]shown, error) {
	n.t.Helper()
	out := make(map[string]shown)
	state, err := ReadServices(n.t.Context(), &n.conn, model.Key{})
	if err != nil {
		return nil, err
	}
	rows := stateRows(state, time.Now())
	for _, s := range state.Services {
		row := find(rows, s.Namespace+"/"+s.Name)
		out["service "+s.Name] = shown{row["STATE"], s.Reason}
		if s.State != row["STATE"] || (s.Revision == 0) != (row["REVISION"] == "-") {
			n.t.Errorf("Service %s is %+v in JSON and %v in the table", s.Name, s.OutcomeRow, row)
		}
	}
	all, err := policies.ask(n.t.Context(), &n.conn, nil)
	if err != nil {
		return nil, err
	}
	rows = policyRows(all, time.Now())
	for _, p := range all {
		out["policy "+p.Text()] = shown{find(rows, p.Text())["STATE"], p.Reason}
	}
	pods, err := ReadPods(n.t.Context(), &n.conn)
	rows = podRows(pods, time.Now())
	for _, p := range pods {
		out["pod "+p.Text()] = shown{find(rows, p.Text())["STATE"], p.Reason}
	}
	return out, err
}

// find returns the cells of the row of an object by column.
func find(rows *Rows, name string) map[string]string {
	out := make(map[string]string)
	for _, row := range rows.Rows {
		if row[0] == name {
			for i, c := range rows.Columns {
				out[c] = row[i]
			}
			return out
		}
	}
	return out
}

// await waits until each object of want is in its state, and compares the metrics with that. States are
// such as "in force" and "refused: no room", with a part of the reason.
func (n *node) await(step string, want map[string]string) {
	n.t.Helper()
	aggregatortest.Eventually(n.t, step, func() bool {
		tables, err := n.tables()
		for name, text := range want {
			state, reason, _ := strings.Cut(text, ": ")
			if got := tables[name]; got.state != state || !strings.Contains(got.reason, reason) {
				return false
			}
		}
		return err == nil && len(tables) == len(want)
	})
	wantMetrics := make(map[string]float64)
	for name, text := range want {
		state, _, _ := strings.Cut(text, ": ")
		switch kind, _, _ := strings.Cut(name, " "); kind {
		case "service":
			wantMetrics["weft_services_outcomes "+state]++
		case "policy":
			wantMetrics["weft_policy_outcomes "+state]++
		}
	}
	families, err := n.reg.Gather()
	must(n.t, err)
	metrics := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if strings.HasSuffix(f.GetName(), "_outcomes") && m.GetGauge().GetValue() != 0 {
				metrics[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if !maps.Equal(metrics, wantMetrics) {
		n.t.Errorf("%s: the metrics are %v, want %v", step, metrics, wantMetrics)
	}
}

// rejects is a judge that rejects one ClusterIP, and policies that accept a port. It names them.
func rejects(ip, port string) publishtest.Judge {
	return func(all map[string]string) (out []*weftv1.Violation) {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			of := nametest.Parse(k)
			if strings.HasPrefix(of.GetKey(), ip+" . ") || of.GetKind() == "chain" && strings.Contains(all[k], "proto-src "+port+" ") {
				out = append(out, &weftv1.Violation{Object: of, Message: "no room", Reason: weftv1.Violation_REASON_KERNEL})
			}
		}
		return out
	}
}

// TestOutcomes: tables and metrics say of Services, policies and pods what became of them. That it is what
// the kernel holds is shown by TestOutcome of frontends/publish and by TestWedge of both frontends.
func TestOutcomes(t *testing.T) {
	const web, extra, db, admin, pod = "service web", "service extra", "policy shop/db", "policy shop/admin", "pod shop/a"
	const wanted, inForce, refused, away = "wanted", "in force", "refused: no room", "wanted: the aggregator does not answer"
	n := newNode(t)
	n.write("node", "{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: {podCIDRs: [10.244.1.0/24]}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}}")
	n.service("web", "10.96.0.1", 8080, 0)
	n.policy("db", 5432)
	n.pod("a", "10.244.1.2")

	release := n.hold()
	n.start()
	n.await("the first update waits", map[string]string{web: wanted, db: wanted, pod: wanted})
	release()
	n.await("it is committed", map[string]string{web: inForce, db: inForce, pod: inForce})

	n.services.Judge(rejects("10.96.0.2", "23"))
	n.policies.Judge(rejects("10.96.0.2", "23"))
	n.service("extra", "10.96.0.2", 8080, 0)
	n.policy("admin", 23)
	n.await("some are rejected", map[string]string{web: inForce, extra: refused, db: inForce, admin: refused, pod: inForce})
	n.services.Judge(nil)
	n.policies.Judge(nil)
	n.service("extra", "10.96.0.2", 8081, 0)
	n.policy("admin", 24)
	n.await("they are changed", map[string]string{web: inForce, extra: inForce, db: inForce, admin: inForce, pod: inForce})

	n.services.Stop()
	n.policies.Stop()
	n.service("web", "10.96.0.1", 8081, 0)
	n.policy("db", 5433)
	n.await("the aggregator is away", map[string]string{web: away, extra: inForce, db: away, admin: inForce, pod: inForce})
	n.services.Start(t)
	n.policies.Start(t)
	n.service("extra", "10.96.0.2", 8080, 1000)
	n.await("a Service has too many ports", map[string]string{web: inForce, extra: "left out: it has 1001 ports", db: inForce, admin: inForce, pod: inForce})
	n.write("service-extra", "")
	n.write("policy-admin", "")
	n.await("objects are deleted", map[string]string{web: inForce, db: inForce, pod: inForce})

	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.events)
	if got, want := slices.Compact(n.events), []string{"PolicyRejected shop/admin", "ServiceRefused shop/extra", "ServiceTooLarge shop/extra"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
