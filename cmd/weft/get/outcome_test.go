package get

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := services.New(services.Config{Source: src, NodeName: "node-1", Socket: n.services.Socket, Events: n, Registerer: n.reg, MinSyncPeriod: -1, SyncPeriod: time.Second})
	if err != nil {
		n.t.Fatal(err)
	}
	p, err := policy.New(policy.Config{Source: src, NodeName: "node-1", Socket: n.policies.Socket, Events: n, Registerer: n.reg, MinInterval: -1, MaxRetry: time.Second})
	if err != nil {
		n.t.Fatal(err)
	}
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
	if err != nil {
		n.t.Fatal(err)
	}
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

var acceptedPort = regexp.MustCompile(`proto-src (\d+)`)

// kernel returns what is committed: the endpoint of each ClusterIP, the port that each policy
// accepts, and the pods that are isolated, by name.
func (n *node) kernel() map[string]string {
	out := make(map[string]string)
	for k, value := range n.services.Elements() {
		of := nametest.Parse(k)
		if addr, rest, _ := strings.Cut(of.GetKey(), " . "); of.GetName() == "endpoints" && strings.HasPrefix(rest, "tcp . 80 ") {
			out["service "+addr] = value
		}
	}
	elements := n.policies.Elements()
	for k := range elements {
		if of := nametest.Parse(k); of.GetName() == "ingress" {
			out["pod "+of.GetKey()] = "isolated"
		}
	}
	for _, rules := range inUse(elements, n.policies.Chains()) {
		for rule := range strings.Lines(rules) {
			_, comment, _ := strings.Cut(strings.TrimSpace(rule), " # ")
			if name, ok := strings.CutSuffix(comment, " ingress[0]"); ok {
				out["policy "+name] = acceptedPort.FindStringSubmatch(rule)[1]
			}
		}
	}
	return out
}

// inUse returns the chains that elements lead to, directly or not. Chains that are replaced stay for a
// while.
func inUse(elements, chains map[string]string) (out []string) {
	queue := slices.Collect(maps.Values(elements))
	for len(queue) > 0 {
		text := queue[0]
		queue = queue[1:]
		for name, rules := range chains {
			if strings.Contains(text+" ", nametest.Parse(name).GetName()+" ") {
				out, queue = append(out, rules), append(queue, rules)
				delete(chains, name)
			}
		}
	}
	return out
}

// view is what the views say of an object: its outcome, and its value as kernel has it.
type view struct{ state, revision, value, reason string }

// views asks the frontends as "weft get" does. An error means that one does not know everything yet.
func (n *node) views() (map[string]view, error) {
	n.t.Helper()
	out := make(map[string]view)
	state, err := ReadServices(n.t.Context(), &n.conn, model.Key{})
	if err != nil {
		return nil, err
	}
	rows := stateRows(state, time.Now())
	for _, s := range state.Services {
		row := find(rows, s.Namespace+"/"+s.Name)
		v := view{state: row["STATE"], revision: row["REVISION"], reason: s.Reason}
		for _, e := range s.Ports[0].Endpoints {
			v.value = strings.ReplaceAll(e.Address.String(), ":", " . ")
		}
		out["service "+s.ClusterIPs[0].String()] = v
		if s.State != row["STATE"] || (s.Revision == 0) != (row["REVISION"] == "-") {
			n.t.Errorf("Service %s is %+v in JSON and %v in the table", s.Name, s.OutcomeRow, row)
		}
	}
	all, err := policies.ask(n.t.Context(), &n.conn, nil)
	if err != nil {
		return nil, err
	}
	policyTable := policyRows(all, time.Now())
	for _, p := range all {
		row := find(policyTable, p.Text())
		out["policy "+p.Text()] = view{row["STATE"], row["REVISION"], strings.TrimPrefix(p.Ingress[0].Ports[0], "tcp "), p.Reason}
	}
	pods, err := ReadPods(n.t.Context(), &n.conn)
	if err != nil {
		return nil, err
	}
	podTable := podRows(pods, time.Now())
	for _, p := range pods {
		row := find(podTable, p.Text())
		value := ""
		if row["ISOLATED"] == "ingress" {
			value = "isolated"
		}
		out["pod "+p.Addresses[0]] = view{row["STATE"], row["REVISION"], value, p.Reason}
	}
	return out, nil
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

// await waits until each object of want is in its state, and compares all that is said with what
// is committed. States are such as "in force" and "refused: no room", with a part of the reason.
func (n *node) await(step string, want map[string]string) {
	n.t.Helper()
	reached := func(views map[string]view) bool {
		for name, text := range want {
			state, reason, _ := strings.Cut(text, ": ")
			if v := views[name]; v.state != state || !strings.Contains(v.reason, reason) {
				return false
			}
		}
		return len(views) == len(want)
	}
	held := func(views map[string]view, kernel map[string]string) bool {
		for name, v := range views {
			// A pod that is isolated by a policy that is refused stays so.
			if _, ok := kernel[name]; ok != (v.revision != "-") {
				return false
			}
		}
		return true
	}
	var views map[string]view
	var err error
	for deadline := time.Now().Add(3 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		views, err = n.views()
		// What is said before and after to be in force is committed in between.
		kernel := n.kernel()
		after, _ := n.views()
		for name, v := range views {
			if v.state == stateInForce && after[name] == v && (kernel[name] != v.value || v.revision == "-") {
				n.t.Fatalf("%s: %s is %+v, and committed is %q", step, name, v, kernel[name])
			}
		}
		if reached(views) && held(views, n.kernel()) {
			break
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: the views are %+v, %v; want %v; committed is %v", step, views, err, want, kernel)
		}
	}
	kernel := n.kernel()
	for name, v := range views {
		if v.state == stateWanted && v.value != "isolated" && v.revision != "-" && kernel[name] == v.value {
			n.t.Errorf("%s: %s is %+v, and its value is committed", step, name, v)
		}
	}
	n.compareMetrics(step, views)
}

// compareMetrics compares the metrics of outcomes with the views.
func (n *node) compareMetrics(step string, views map[string]view) {
	n.t.Helper()
	want := make(map[string]float64)
	for name, v := range views {
		switch kind, _, _ := strings.Cut(name, " "); kind {
		case "service":
			want["weft_services_outcomes "+v.state]++
		case "policy":
			want["weft_policy_outcomes "+v.state]++
		}
	}
	families, err := n.reg.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if strings.HasSuffix(f.GetName(), "_outcomes") && m.GetGauge().GetValue() != 0 {
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if !maps.Equal(got, want) {
		n.t.Errorf("%s: the metrics are %v, want %v", step, got, want)
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

// TestViewsSayWhatIsCommitted: whatever the aggregator does, the views say of Services, policies and
// pods what it committed.
func TestViewsSayWhatIsCommitted(t *testing.T) {
	const (
		web, extra, db, admin, pod = "service 10.96.0.1", "service 10.96.0.2", "policy shop/db", "policy shop/admin", "pod 10.244.1.2"
		wanted, inForce            = "wanted", "in force"
	)
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

	release = n.hold()
	n.service("web", "10.96.0.1", 8081, 0)
	n.service("extra", "10.96.0.2", 8080, 0)
	n.policy("db", 5433)
	n.policy("admin", 22)
	n.await("changes wait", map[string]string{web: wanted, extra: wanted, db: wanted, admin: wanted, pod: wanted})
	release()
	n.await("they are committed", map[string]string{web: inForce, extra: inForce, db: inForce, admin: inForce, pod: inForce})

	n.services.Judge(rejects("10.96.0.2", "23"))
	n.policies.Judge(rejects("10.96.0.2", "23"))
	n.service("extra", "10.96.0.2", 8082, 0)
	n.service("web", "10.96.0.1", 8082, 0)
	n.policy("admin", 23)
	n.policy("db", 5434)
	n.await("some are rejected", map[string]string{web: inForce, extra: "refused: no room", db: inForce, admin: "refused: no room", pod: inForce})
	n.services.Judge(nil)
	n.policies.Judge(nil)
	n.service("extra", "10.96.0.2", 8083, 0)
	n.policy("admin", 24)
	n.await("they are changed", map[string]string{web: inForce, extra: inForce, db: inForce, admin: inForce, pod: inForce})

	n.services.Stop()
	n.policies.Stop()
	away := "wanted: the aggregator does not answer"
	n.service("web", "10.96.0.1", 8084, 0)
	n.policy("db", 5435)
	n.await("the aggregator is away", map[string]string{web: away, extra: inForce, db: away, admin: inForce, pod: inForce})
	// The first changes have been sent, and have no answer.
	const more, client = "service 10.96.0.3", "policy shop/client"
	n.service("more", "10.96.0.3", 8080, 0)
	n.policy("client", 80)
	n.service("web", "10.96.0.1", 8085, 0)
	n.await("objects come", map[string]string{web: away, extra: inForce, more: away, db: away, admin: inForce, client: away, pod: away})
	n.services.Start(t)
	n.policies.Start(t)
	n.await("it is back", map[string]string{web: inForce, extra: inForce, more: inForce, db: inForce, admin: inForce, client: inForce, pod: inForce})
	n.write("service-more", "")
	n.write("policy-client", "")
	n.write("pod-a", "")
	n.pod("b", "10.244.1.3")
	n.await("another pod", map[string]string{web: inForce, extra: inForce, db: inForce, admin: inForce, "pod 10.244.1.3": inForce})

	n.service("extra", "10.96.0.2", 8080, 1000)
	n.await("a Service has too many ports", map[string]string{web: inForce, extra: "left out: it has 1001 ports", db: inForce, admin: inForce, "pod 10.244.1.3": inForce})
	n.write("service-extra", "")
	n.write("policy-admin", "")
	n.await("objects are deleted", map[string]string{web: inForce, db: inForce, "pod 10.244.1.3": inForce})

	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.events)
	if got, want := slices.Compact(n.events), []string{"PolicyRejected shop/admin", "ServiceRefused shop/extra", "ServiceTooLarge shop/extra"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
