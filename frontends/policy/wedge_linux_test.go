package policy

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// The size of TestWedge. CONTRIBUTING has the flags of a long run.
var (
	wedgeObjects = flag.Int("wedge.objects", 100, "random objects of TestWedge")
	wedgeGood    = flag.Int("wedge.good", 20, "good policies among them")
	wedgeSeed    = flag.Uint64("wedge.seed", 0, "seed of TestWedge; 0 means another one each time")
	wedgeLate    = flag.Duration("wedge.late", 0, "fail if a good policy takes longer; 0 means never")
)

// wildPods is the number of pods that random policies select.
const wildPods = 20

// wedgeSource is a source that delivers what the test tells it to.
type wedgeSource struct {
	sub     source.Subscription
	changes func(before, after source.Object) []source.Event
	first   []source.Object
}

func (s *wedgeSource) Subscribe(sub source.Subscription) (err error) {
	s.sub = sub
	s.changes, err = sub.Changes()
	return err
}

func (s *wedgeSource) Run(ctx context.Context) error {
	for _, o := range s.first {
		s.deliver(nil, o)
	}
	s.sub.Synced()
	<-ctx.Done()
	return nil
}

func (s *wedgeSource) deliver(before, after source.Object) {
	if after != nil {
		after = after.DeepCopyObject().(source.Object)
	}
	s.sub.Deliver(s.changes(before, after))
}

// wedge is a node with good policies, among which there are others at and over every limit.
type wedge struct {
	t *testing.T
	*rand.Rand
	socket string
	// kernel reads the node's rules.
	kernel  *kernel.Conn
	objects map[string]source.Object
	src     *wedgeSource
	f       *Frontend
	stop    func()
	// waits are the times until good policies were in force, starts those after a restart.
	waits, starts []time.Duration
	started       bool
	// down is true while there is no process: the next good one changes then.
	down bool
	// commits is the largest number of commits from an event of a good one to that with it.
	commits uint64
}

func (w *wedge) set(o source.Object) {
	w.objects[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o
	if w.src != nil {
		w.src.deliver(nil, o)
	}
}

func (w *wedge) remove(o source.Object) {
	delete(w.objects, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
	w.src.deliver(o, nil)
}

// start starts the frontend, which learns of all objects that exist.
func (w *wedge) start() {
	w.src = &wedgeSource{first: slices.Collect(maps.Values(w.objects))}
	w.f, w.stop = runFrontend(w.t, "", Config{Source: w.src, Socket: w.socket})
	await(w.t, "the objects", w.f.isSynced)
	w.started = true
}

// pod makes the n-th pod of a namespace.
func (w *wedge) pod(namespace string, n int, addr netip.Addr) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", n), UID: types.UID(fmt.Sprint(namespace, n)), Labels: map[string]string{"n": fmt.Sprint(n)}}}
	p.Spec.NodeName, p.Status.Phase = "node-a", corev1.PodRunning
	p.Status.PodIPs = []corev1.PodIP{{IP: addr.String()}}
	w.set(p)
}

// podAddr returns the address of the n-th pod.
func podAddr(namespace string, n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 244, byte(len(namespace)<<4 + n>>8), byte(n)})
}

// policyOf makes a policy of the n-th pod of a namespace, with rules.
func policyOf(namespace, name string, pod, rules int, port func(i int) int32) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.PodSelector.MatchLabels = map[string]string{"n": fmt.Sprint(pod)}
	for i := range rules {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(port(i)))}},
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"from": fmt.Sprint(name, i)}}}},
		})
	}
	return p
}

// matching changes the selectors of pods of a policy to ones that all pods of the namespace match, and
// that no other policy has.
func matching(p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	for _, r := range p.Spec.Ingress {
		for i := range r.From {
			if s := r.From[i].PodSelector; s != nil && s.MatchLabels != nil {
				r.From[i].PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "from", Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.MatchLabels["from"]}}}}
			}
		}
	}
	return p
}

// wild makes a random policy: at and over limits, valid and not.
func (w *wedge) wild(i int) *networkingv1.NetworkPolicy {
	rules := []int{0, 1, 1, 2, 5, 99, 100, 101}[w.IntN(8)]
	if w.IntN(100) == 0 {
		rules = []int{1000, 10_050, 20_001}[w.IntN(3)]
	}
	p := policyOf("wilder", fmt.Sprint("w", i), w.IntN(wildPods), rules, func(int) int32 { return int32(1 + w.IntN(60_000)) })
	for i := range p.Spec.Ingress[:min(len(p.Spec.Ingress), 100)] {
		r := &p.Spec.Ingress[i]
		change := []func(){
			func() {}, func() {}, func() {},
			func() { r.Ports = nil },
			func() { r.From = nil },
			func() { r.Ports[0].EndPort = ptr.To(int32(w.IntN(70_000))) },
			func() { r.Ports[0].Port = ptr.To(intstr.FromString("http")) },
			func() { r.Ports[0].Port = ptr.To(intstr.FromInt32(-5)) },
			func() { r.Ports[0].Protocol = ptr.To(corev1.Protocol("ICMP")) },
			func() {
				r.From[0] = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{address("10.1.0.0", w.IntN(1<<16)) + "/32", "10.0.0.0/7"}}}
			},
			func() {
				r.From[0] = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: address("10.1.0.0", w.IntN(1<<16)) + "/30"}}
			},
			func() {
				r.From[0].PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near", Values: []string{"b"}}}}
			},
			func() { r.From[0].NamespaceSelector = &metav1.LabelSelector{} },
		}
		change[w.IntN(len(change))]()
	}
	if w.IntN(4) == 0 {
		matching(p)
	}
	if w.IntN(4) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{"Ingress", "Egress"}
	}
	return p
}

// address returns the n-th address of a network.
func address(network string, n int) string {
	a := netip.MustParseAddr(network).As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a).String()
}

// good changes a good policy, and waits until the change is in force.
func (w *wedge) good(n int) {
	id := model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "good", Name: fmt.Sprint("good", n)}
	before, revision, began := w.f.publisher.Outcome(id), w.f.publisher.Status().Revision, time.Now()
	port := 1 + w.IntN(60_000)
	if w.down {
		w.src = nil
	}
	w.set(matching(policyOf("good", id.Name, n, 1, func(int) int32 { return int32(port) })))
	if w.down {
		w.down = false
		w.start()
	}
	var now publish.Outcome
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the good policy %s is %+v, and the publisher %+v", id.Name, now, w.f.publisher.Status())
		}
	}()
	await(w.t, "good policy "+id.Name, func() bool {
		now = w.f.publisher.Outcome(id)
		return now.State == publish.InForce && now.Revision > before.Revision
	})
	if !w.started {
		w.commits = max(w.commits, now.Revision-revision)
	}
	if w.started {
		w.started = false
		w.starts = append(w.starts, time.Since(began))
	} else if w.waits = append(w.waits, time.Since(began)); *wedgeLate > 0 && time.Since(began) > *wedgeLate {
		w.t.Errorf("the good policy %s took %v", id.Name, time.Since(began))
	}
	if time.Since(began) > time.Second {
		w.t.Logf("%s took %v", id.Name, time.Since(began))
	}
	text := ""
	for chain, rules := range w.reached(podAddr("good", n)) {
		text += chain + " " + rules
	}
	if !strings.Contains(text, fmt.Sprintf("proto-src %d ", port)) {
		w.t.Errorf("the good policy %s with port %d is in force, and its pod reaches %s", id.Name, port, text)
	}
}

// entries returns the chains of pods that the kernel has. The name of a chain has a hash of its
// content.
func (w *wedge) entries() map[netip.Addr]string {
	decl, err := set.CompileMap(nft.FamilyIP, &nft.Map{Name: "ingress", Type: "ipv4_addr : verdict"})
	must(w.t, err)
	elements, err := w.kernel.DumpSet(nft.TableID{Family: nft.FamilyIP, Name: "weft-policy"}, decl)
	must(w.t, err)
	out := make(map[netip.Addr]string)
	for _, e := range elements {
		v, err := set.ParseVerdictData(e.Data)
		must(w.t, err)
		out[netip.AddrFrom4([4]byte([]byte(e.Key)))] = v.Chain
	}
	return out
}

// rules returns the text of the rules of each chain.
func (w *wedge) rules() map[string]string {
	out := make(map[string]string)
	for _, t := range w.f.content.Snapshot().GetTables() {
		if t.GetFamily() != "ip" {
			continue
		}
		for _, c := range t.GetChains() {
			var text strings.Builder
			for _, r := range c.GetRules() {
				text.WriteString(r.GetText() + "\n")
			}
			out[c.GetName()] += text.String()
		}
	}
	return out
}

// reached returns the chains that packets to pods reach, from their elements in the kernel.
func (w *wedge) reached(pods ...netip.Addr) map[string]string {
	rules, entries := w.rules(), w.entries()
	out := make(map[string]string)
	var walk func(name string)
	walk = func(name string) {
		out[name] = rules[name]
		for line := range strings.Lines(rules[name]) {
			to, ok := strings.CutPrefix(strings.TrimSpace(line), "jump ")
			if _, known := out[to]; ok && !known {
				walk(to)
			}
		}
	}
	for _, pod := range pods {
		if first, ok := entries[pod]; ok {
			walk(first)
		}
	}
	return out
}

// check compares what is said with what the kernel has, policy by policy.
func (w *wedge) check() {
	await(w.t, "the end of the backlog", func() bool { return w.f.Status().Pending.IsZero() })
	var pods []netip.Addr
	for n := range wildPods {
		pods = append(pods, podAddr("wilder", n))
	}
	reached := w.reached(pods...)
	entries := w.entries()
	for _, p := range w.f.state.State().Policies {
		if p.ID.Namespace != "wilder" {
			continue
		}
		o := w.f.publisher.Outcome(p.ID)
		in := false
		for chain := range reached {
			in = in || strings.HasSuffix(chain, "wilder/"+p.ID.Name+"-ingress") && strings.HasPrefix(chain, "policy-")
		}
		accepts := slices.ContainsFunc(p.Rules[model.Ingress], func(r model.Rule) bool {
			// No pod has the label or a port with a name.
			peer := r.Any || len(r.Blocks) > 0 || slices.ContainsFunc(r.Pods, func(id model.SetID) bool { return !strings.Contains(string(id), "from=") })
			return peer && (r.AllPorts || len(r.Ports) > 0)
		})
		if want := o.State == publish.InForce && accepts; in != want {
			w.t.Errorf("policy %s with %+v is %+v, and in the kernel: %t", p.ID.Name, p.Rules[model.Ingress][:min(len(p.Rules[model.Ingress]), 3)], o, in)
		}
		if (o.State == publish.InForce) != (o.Reason == nil) || o.State == publish.Wanted {
			w.t.Errorf("policy %s: %+v", p.ID.Name, o)
		}
	}
	// A pod stays isolated, whatever becomes of its policies.
	for _, p := range w.f.state.State().Pods {
		if _, isolated := entries[p.Addresses[0]]; isolated != (len(p.Policies[model.Ingress]) > 0) {
			w.t.Errorf("pod %s has policies %v, and is isolated: %t", p.Name, p.Policies, isolated)
		}
	}
}

// TestWedge has random policies at and over every limit among good ones: the good ones are in
// force soon after their event, always, and what is said is what the kernel holds.
func TestWedge(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	w := &wedge{t: t, objects: make(map[string]source.Object)}
	seed := *wedgeSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-wedge.seed %d", seed)
	w.Rand = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test repeats it
	var conns [2]*kernel.Conn
	for i := range conns {
		var err error
		if conns[i], err = kernel.Open(kernel.Config{NetNS: ns.FD()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conns[i].Close() })
	}
	w.kernel = conns[1]
	w.socket = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: conns[0], StateDir: t.TempDir(), Rate: rate.Inf}}).Socket
	w.set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
	for _, name := range []string{"good", "wilder"} {
		w.set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}})
	}
	for n := range *wedgeGood {
		w.pod("good", n, podAddr("good", n))
	}
	for n := range wildPods {
		w.pod("wilder", n, podAddr("wilder", n))
	}
	w.start()
	for n := range *wedgeGood {
		w.good(n)
	}
	// The objects that stopped everything once.
	one := func(i int) int32 { return int32(i + 1) }
	change := matching
	if *wedgeObjects <= 100 {
		// The sets of 20,000 selectors take half a minute.
		change = func(p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy { return p }
	}
	w.set(change(policyOf("wilder", "large", 0, 10_050, one)))
	for i := range 105 {
		w.set(change(policyOf("wilder", fmt.Sprint("hundred", i), i%wildPods, 100, one)))
	}
	w.good(0)
	w.check()
	w.stop()
	w.down = true
	w.good(1)
	w.check()
	for i := range 105 {
		w.remove(policyOf("wilder", fmt.Sprint("hundred", i), 0, 0, one))
	}
	w.remove(policyOf("wilder", "large", 0, 0, one))
	const each = 10
	for step := range *wedgeObjects / each {
		for range each {
			i := w.IntN(*wedgeObjects)
			if w.IntN(4) == 0 {
				w.remove(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "wilder", Name: fmt.Sprint("w", i)}})
				continue
			}
			w.set(w.wild(i))
		}
		w.good(w.IntN(*wedgeGood))
		if step%10 == 9 {
			w.check()
			w.stop()
			w.down = true
			w.good(w.IntN(*wedgeGood))
			w.check()
		}
	}
	// The update in flight, its own, and what a bisection commits in between.
	if w.commits > 20 {
		t.Errorf("a good one waited for %d commits", w.commits)
	}
	slices.Sort(w.waits)
	states := make(map[publish.State]int)
	for _, p := range w.f.state.State().Policies {
		states[w.f.publisher.Outcome(p.ID).State]++
	}
	t.Logf("%d events of good policies: half in force within %v, all within %v and %d commits; after %d restarts within %v; %v", len(w.waits), w.waits[len(w.waits)/2], w.waits[len(w.waits)-1], w.commits, len(w.starts), slices.Max(w.starts), states)
}
