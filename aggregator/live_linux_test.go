package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// live is a fragment that counts packets to UDP port 9 in all ways that there are.
func live() *weftv1.Fragment {
	return &weftv1.Fragment{Name: "live", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Objects: []*weftv1.Object{object("counter", "hits", ""), object("quota", "most", "over 25 mbytes"), object("limit", "slow", "rate 10/second")},
		Sets: []*weftv1.Set{
			{
				Name: "seen", Type: "ipv4_addr", Flags: []string{"dynamic", "timeout"}, Stateful: []string{"counter"},
				Elements: []*weftv1.Element{{Key: "192.0.2.1", Timeout: durationpb.New(time.Hour)}},
			},
			{Name: "plain", Type: "inet_service", Elements: []*weftv1.Element{{Key: "9"}}},
		},
		Chains: []*weftv1.Chain{{
			Name: "out", Type: "filter", Hook: "output", Priority: "filter",
			Rules: []*weftv1.Rule{
				{Text: "udp dport @plain counter quota over 25 mbytes counter name hits quota name most drop", Comment: "counter packets 7"},
				{Text: "udp dport @plain counter name hits counter update @seen { ip daddr timeout 1m }"},
				{Text: "tcp dport 1 counter"},
				{Text: "tcp dport 2 accept"},
			},
		}},
	}}}
}

// TestKernelLiveValues sends packets and reads what the kernel has counted.
func TestKernelLiveValues(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	mustApply(t, d.Dial(t, "one"), live())
	sendUDP(t, ns, 3)
	got := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true})

	var stateful [][]string
	for _, r := range got.GetChains()[0].GetRules() {
		stateful = append(stateful, r.GetStateful())
	}
	// Not all that is written is sent. The rules and the object count the same.
	hits := countedBy(t, ns, "hits")
	want := [][]string{{"counter " + hits, "quota over 25 mbytes"}, {"counter " + hits}, {"counter packets 0 bytes 0"}, nil}
	stateful[0][1], _, _ = strings.Cut(stateful[0][1], " used ")
	same(t, "rules", stateful, want)
	listed := ns.Run(t, "nft", "-a", "list", "table", "ip", "demo")
	handle := func(what string, n uint64) {
		t.Helper()
		if _, rest, _ := strings.Cut(listed, what+" {"); n == 0 || !strings.HasPrefix(rest, " # handle "+strconv.FormatUint(n, 10)+"\n") {
			t.Errorf("handle of %s is %d, nft lists:\n%s", what, n, listed)
		}
	}
	handle("chain out", got.GetChains()[0].GetHandle())
	texts := map[string]string{}
	for _, o := range got.GetObjects() {
		handle(o.GetObject().GetKind()+" "+o.GetObject().GetName(), o.GetHandle())
		texts[o.GetObject().GetName()] = o.GetObject().GetText()
	}
	for _, s := range got.GetSets() {
		handle("set "+s.GetSet().GetName(), s.GetHandle())
	}
	if texts["hits"] != hits || hits == "packets 0 bytes 0" || !strings.HasPrefix(texts["most"], "over 25 mbytes") || !strings.HasPrefix(texts["slow"], "rate 10/second") {
		t.Errorf("objects %v", texts)
	}
	objects := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true, ObjectsOnly: true})
	got.Chains, got.Sets = nil, nil
	if diff := cmp.Diff(got, objects, protocmp.Transform()); diff != "" {
		t.Errorf("only the objects (-want +got):\n%s", diff)
	}
}

// TestKernelLiveElements reads the elements that packets have added, apart from those of
// the fragment, and their timeouts.
func TestKernelLiveElements(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	mustApply(t, d.Dial(t, "one"), live())
	sendUDP(t, ns, 2)
	req := &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true}
	for _, s := range readTable(ctx, t, d, req).GetSets() {
		switch declared, added := s.GetSet().GetElements(), s.GetAdded(); s.GetSet().GetName() {
		case "seen":
			if len(declared) != 1 || declared[0].GetKey() != "192.0.2.1" || len(added) != 1 || added[0].GetKey() != "127.0.0.1" || s.GetMoreAdded() {
				t.Fatalf("set is %v: want 192.0.2.1 and, added, 127.0.0.1", s)
			}
			checkExpires(t, declared[0], time.Hour)
			checkExpires(t, added[0], time.Minute)
			if words := added[0].GetState().GetStateful(); len(words) != 1 || !strings.HasPrefix(words[0], "counter packets ") {
				t.Errorf("the element has counted %q", words)
			}
		case "plain":
			if len(declared) != 1 || declared[0].GetState() != nil || len(added) != 0 {
				t.Errorf("set is %v: want the element alone", s)
			}
		}
	}
	req.Terse = true
	if s := readTable(ctx, t, d, req).GetSets()[1]; len(s.GetAdded())+len(s.GetSet().GetElements()) != 0 || s.GetHandle() == 0 {
		t.Errorf("terse set is %v: want its handle and no elements", s)
	}
	stateless := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo"})
	for _, r := range stateless.GetChains()[0].GetRules() {
		if len(r.GetStateful()) != 0 {
			t.Errorf("rule %v has live values that were not asked for", r)
		}
	}
	if s := stateless.GetSets()[1]; len(s.GetAdded()) != 0 || s.GetSet().GetElements()[0].GetState() != nil || s.GetHandle() != 0 {
		t.Errorf("set %v has live values that were not asked for", s)
	}
}

// TestKernelCountedElements reads only what has counted something, of the sets that are named.
// A publisher does not see the elements of another one.
func TestKernelCountedElements(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	counted := func(name, element string) *weftv1.Fragment {
		f := live()
		f.Name, f.Tables[0].Chains[0].Rules = name, nil
		f.Tables[0].Sets = []*weftv1.Set{{Name: "counted", Type: "ipv4_addr . inet_service", Stateful: []string{"counter"},
			Elements: []*weftv1.Element{{Key: "127.0.0.1 . 9", Comment: "to port 9"}, {Key: element}}}}
		return f
	}
	mine := counted("mine", "127.0.0.1 . 10")
	mine.Tables[0].Chains[0].Rules = []*weftv1.Rule{{Text: "ip daddr . udp dport @counted"}}
	mustApply(t, d.Dial(t, "one"), mine)
	sendUDP(t, ns, 1)
	ctx := aggregatortest.Context(t)
	req := &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true, ObjectsOnly: true, Sets: []string{"counted", "none"}, Counted: true}
	got := readTable(ctx, t, d, req)
	if len(got.GetChains()) != 0 || len(got.GetSets()) != 1 || len(got.GetObjects()) != 3 {
		t.Fatalf("got %v: want the objects and the set alone", got)
	}
	words := func(s *weftv1.MergedSet) (out []string) {
		for _, e := range s.GetSet().GetElements() {
			out = append(out, e.GetKey()+" "+e.GetComment()+" "+strings.Join(e.GetState().GetStateful(), ";"))
		}
		return out
	}
	want := []string{"127.0.0.1 . 9 to port 9 counter packets 1 bytes 29"}
	same(t, "counted elements", words(got.GetSets()[0]), want)
	req.Counted = false
	if all := words(readTable(ctx, t, d, req).GetSets()[0]); len(all) != 2 {
		t.Errorf("without counted the set has %q, want both elements", all)
	}
	req.Counted, req.Live = true, false
	if all := readTable(ctx, t, d, req).GetSets()[0].GetSet().GetElements(); len(all) != 2 || all[0].GetState() != nil {
		t.Errorf("without live the set has %v, want both elements without a state", all)
	}
	req.Live = true
	for publisher, n := range map[string]int{"one": 1, "two": 0} {
		parts, err := d.Aggregator.GetTable(ctx, req, aggregator.Reader{Publisher: publisher})
		if publisher == "two" {
			if err == nil {
				t.Error("a publisher without a fragment sees the table")
			}
			continue
		}
		must(t, err)
		seen := 0
		for part := range parts {
			for _, s := range part.GetSets() {
				seen += len(words(s)) + len(s.GetAdded())
			}
		}
		if seen != n {
			t.Errorf("publisher %s sees %d elements, want %d", publisher, seen, n)
		}
	}
}

func checkExpires(t *testing.T, e *weftv1.Element, timeout time.Duration) {
	t.Helper()
	if rest := e.GetState().GetExpires().AsDuration(); e.GetTimeout().AsDuration() != timeout || rest <= 0 || rest > timeout {
		t.Errorf("element %v: want a timeout of %v and what remains of it", e, timeout)
	}
}

// TestKernelLiveOfForeignTable asks for a table that weft does not have.
func TestKernelLiveOfForeignTable(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ns.Nft(t, "table ip foreign { counter c { }; }")
	_, err := d.Aggregator.GetTable(aggregatortest.Context(t), &weftv1.GetTableRequest{Family: "ip", Name: "foreign", Live: true}, aggregator.Reader{All: true})
	if !errors.Is(err, aggregator.ErrNoObject) {
		t.Errorf("error is %v: want ErrNoObject", err)
	}
}

// bansOf is a durable fragment with elements that have timeouts.
func bansOf(elements ...*weftv1.Element) *weftv1.Fragment {
	return durable(&weftv1.Fragment{Name: "bans", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Sets: []*weftv1.Set{{Name: "bans", Type: "ipv4_addr", Flags: []string{"timeout"}, Elements: elements}},
	}}})
}

func banned(key string, timeout time.Duration) *weftv1.Element {
	return &weftv1.Element{Key: key, Timeout: durationpb.New(timeout)}
}

// kernelBans returns what is left of the time of the kernel's elements.
func kernelBans(ctx context.Context, t *testing.T, d *aggregatortest.Daemon) map[string]time.Duration {
	t.Helper()
	table := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Live: true})
	left := map[string]time.Duration{}
	for _, s := range table.GetSets() {
		for _, e := range slices.Concat(s.GetSet().GetElements(), s.GetAdded()) {
			left[e.GetKey()] = e.GetState().GetExpires().AsDuration()
		}
	}
	return left
}

// TestKernelLifetimes states, removes and restates elements of a durable fragment at random while they expire,
// another program deletes them, weft restarts, and the machine restarts with another clock. After each step the
// kernel has what a model has, with the same time left.
func TestKernelLifetimes(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	const short, near = time.Second, 2 * time.Minute
	ctx, dir, seed := aggregatortest.Context(t), t.TempDir(), uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	t.Logf("seed %d", seed)
	// shift is how far the clock is ahead: restarts of the machine change it.
	shift := time.Duration(0)
	start := func(ns *nfttest.NS) *aggregatortest.Daemon {
		by := shift
		d, _ := startKernel(t, ns, aggregator.Config{StateDir: dir, Now: func() time.Time { return time.Now().Add(by) }}, true)
		return d
	}
	ns := nfttest.New(t)
	d := start(ns)
	model := map[string]time.Time{} // by time.Now
	keys := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	stream := raw(t, d, "tester")
	snapshot := func() {
		model = map[string]time.Time{}
		var elements []*weftv1.Element
		for _, key := range keys[:rng.IntN(len(keys)+1)] {
			elements, model[key] = append(elements, banned(key, time.Hour)), time.Now().Add(time.Hour)
		}
		wantCommitted(t, exchange(t, stream, snapshotOf(1, bansOf(elements...))))
	}
	snapshot()
	steps := map[string]int{}
	for i := range 40 {
		step := []string{"snapshot", "patch", "patch", "short", "foreign", "restart", "reboot", "refused"}[rng.IntN(8)]
		steps[step]++
		key, other := keys[rng.IntN(3)], keys[rng.IntN(3)]
		change := func(add *weftv1.Element, remove ...string) *weftv1.PublishResponse {
			return exchange(t, stream, patchOf(2, &weftv1.Patch{Fragment: "bans", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "demo", Elements: []*weftv1.ElementPatch{{
				Set: "bans", Add: []*weftv1.Element{add}, Remove: remove,
			}}}}}))
		}
		switch step {
		case "snapshot":
			snapshot()
		case "patch":
			timeout := []time.Duration{time.Hour, 2 * time.Hour}[rng.IntN(2)]
			delete(model, other)
			model[key] = time.Now().Add(timeout)
			wantCommitted(t, change(banned(key, timeout), other))
		case "short":
			wantCommitted(t, change(banned(key, short)))
			delete(model, key)
			aggregatortest.Eventually(t, "the element expires", func() bool {
				_, ok := kernelBans(ctx, t, d)[key]
				list, _ := d.Aggregator.List()
				return !ok && list[0].GetElements() == uint64(len(model))
			})
			if rng.IntN(2) == 0 {
				model[key] = time.Now().Add(time.Hour)
				wantCommitted(t, change(banned(key, time.Hour)))
			}
		case "foreign":
			if _, ok := model[key]; ok {
				ns.Nft(t, "delete element ip demo bans { "+key+" }\n")
				aggregatortest.Eventually(t, "the element is back", func() bool { return strings.Contains(ns.ListRuleset(t), key) })
			}
		case "restart", "reboot":
			must(t, d.Stop())
			if step == "reboot" {
				ns = nfttest.New(t)
				by := []time.Duration{0, 30 * time.Minute, -time.Minute}[rng.IntN(3)]
				shift += by
				for key, at := range model {
					if model[key] = at.Add(-by); at.Add(-by).Before(time.Now().Add(near)) {
						delete(model, key)
					}
				}
			}
			d = start(ns)
			stream = raw(t, d, "tester")
			compare(ctx, t, d, fmt.Sprintf("step %d %s", i, step), model)
			snapshot()
		case "refused":
			if r := change(banned("192.0.2.300", time.Hour)); r.GetRejected() == nil {
				t.Fatalf("answer %v", r)
			}
		}
		compare(ctx, t, d, fmt.Sprintf("step %d %s", i, step), model)
	}
	t.Logf("steps %v", steps)
}

// compare compares the kernel, the counts and the listing with a model.
func compare(ctx context.Context, t *testing.T, d *aggregatortest.Daemon, what string, model map[string]time.Time) {
	t.Helper()
	left := kernelBans(ctx, t, d)
	if len(left) != len(model) {
		t.Fatalf("%s: kernel %v, want %v", what, left, model)
	}
	for key, at := range model {
		// A clock that was set back gives at most the timeout.
		if diff := left[key] - time.Until(at); diff > 5*time.Second || diff < -70*time.Second {
			t.Fatalf("%s: %s has %v left, want %v", what, key, left[key], time.Until(at))
		}
	}
	answer, err := d.Dial(t, "tester").Get(ctx, "", "bans")
	must(t, err)
	if n := len(answer.GetFragment().GetTables()[0].GetSets()[0].GetElements()); n != len(model) || answer.GetStatus().GetElements() != uint64(n) {
		t.Fatalf("%s: %d are listed and %d counted, want %d", what, n, answer.GetStatus().GetElements(), len(model))
	}
}

// TestElementThatPacketsAdd states an element that a packet has added, and one that a packet renews.
func TestElementThatPacketsAdd(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	f := func(elements ...*weftv1.Element) *weftv1.Fragment {
		return &weftv1.Fragment{Name: "bans", Tables: []*weftv1.Table{{
			Family: "ip", Name: "demo",
			Sets: []*weftv1.Set{{Name: "bans", Type: "ipv4_addr", Flags: []string{"timeout", "dynamic"}, Size: 100, Elements: elements}},
			Chains: []*weftv1.Chain{{Name: "input", Type: "filter", Hook: "input", Priority: "filter",
				Rules: []*weftv1.Rule{{Text: "add @bans { ip saddr timeout 10m }"}}}},
		}}}
	}
	c := d.Dial(t, "tester")
	mustApply(t, c, f())
	sendUDP(t, ns, 1)
	if left := kernelBans(ctx, t, d)["127.0.0.1"]; left > 10*time.Minute || left < 5*time.Minute {
		t.Fatalf("a packet gave %v", left)
	}
	for range 2 {
		mustApply(t, c, f(banned("127.0.0.1", time.Hour)))
		if left := kernelBans(ctx, t, d)["127.0.0.1"]; left < 50*time.Minute {
			t.Fatalf("%v is left of an element that is stated", left)
		}
	}
	owner, err := c.Owner(ctx, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{Kind: "element", Family: "ip", Table: "demo", Name: "bans", Key: "127.0.0.1"}})
	if err != nil || !strings.Contains(owner.GetOwners()[0].GetText(), "127.0.0.1 expires ") {
		t.Errorf("owner %v, error %v", owner, err)
	}
}
