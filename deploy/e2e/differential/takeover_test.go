package differential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// takeover is one way from kube-proxy to weft and back.
type takeover struct {
	name string
	// mode is kube-proxy's, for iptables with the kind of its programs.
	mode string
	// overlap starts one proxy while the other still runs; otherwise that is stopped first, as with
	// DaemonSets, and only its rules remain for a while.
	overlap bool
}

// TestTakeover replaces a running kube-proxy by weft and back, as in deploy/kubernetes/README.md, under
// traffic: all is answered, and both rulesets together act as one.
//
// Behaviour: 139, 140.
func TestTakeover(t *testing.T) {
	w := newWorld(t)
	for _, o := range []takeover{
		{name: "nftables-running", mode: "nftables", overlap: true},
		{name: "nftables-stopped", mode: "nftables"},
		{name: "iptables-nft", mode: "iptables-nft"},
		{name: "iptables-legacy", mode: "iptables-legacy"},
	} {
		t.Run(o.name, func(t *testing.T) { w.takeOver(t, o) })
	}
}

type both struct {
	*side
	w               *world
	o               takeover
	peer, weft      *lab.Process
	healthz, metric string
}

// name identifies the start in the log.
func (b *both) startPeer(name string) error {
	argv := kubeProxy(b.side, b.w.kubeconfig, config{})
	argv[slices.Index(argv, "--proxy-mode")+1], _, _ = strings.Cut(b.o.mode, "-")
	programs := filepath.Join(runDir, "programs")
	err := cluster.LinkPrograms(programs, b.o.mode)
	if err != nil {
		return err
	}
	b.peer, err = b.lab.Nodes[0].Start("kube-proxy", filepath.Join(logDir, "takeover-"+b.o.name+"-"+name+".log"),
		[]string{"PATH=" + programs + ":" + os.Getenv("PATH")}, argv...)
	return err
}

// startWeft waits until weft is ready.
func (b *both) startWeft(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(runDir, b.name, "state"), 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	argv := weft(b.side, b.w.kubeconfig, config{})
	argv[slices.Index(argv, "--healthz-bind-address")+1] = b.healthz
	argv[slices.Index(argv, "--metrics-bind-address")+1] = b.metric
	var err error
	b.weft, err = b.lab.Nodes[0].Start("weft", filepath.Join(logDir, "takeover-"+b.o.name+"-weft.log"), nil, argv...)
	if err != nil {
		return err
	}
	return lab.Within(ctx, 3*time.Minute, func() error {
		if err := b.weft.Err(); err != nil {
			return err
		}
		answer, err := b.actors["host"].Get(ctx, "http://127.0.0.1:"+b.healthz[strings.LastIndex(b.healthz, ":")+1:]+"/readyz", time.Second)
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("readyz: %d %s", answer.Status, answer.Body)
		}
		return err
	})
}

func (w *world) takeOver(t *testing.T, o takeover) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	b := &both{side: w.weft, w: w, o: o, healthz: "0.0.0.0:10256", metric: "127.0.0.1:10249"}
	if o.overlap {
		// Only one of the two can have the ports.
		b.healthz, b.metric = "0.0.0.0:11256", "127.0.0.1:11249"
	}
	defer w.clear(t)
	defer b.end(t)
	if err := b.empty(ctx); err != nil {
		t.Fatal(err)
	}
	r, runs, err := w.takeoverObjects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A loss has the time of its question, and the log the times of steps.
	step := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s done: %s", time.Now().Format(time.StampMilli), what)
	}
	step("start kube-proxy", b.startPeer("first"))
	to, err := r.target(b.side, probe{proto: "tcp", family: 4}, "cluster:80")
	step("find ClusterIP", err)
	step("await kube-proxy", lab.Within(ctx, 3*time.Minute, func() error {
		_, err := b.actors["pod"].ask(ctx, "tcp", to, 300*time.Millisecond)
		return errors.Join(err, b.peer.Err())
	}))
	look := func(when string) {
		b.look(t, ctx, when, runs)
		step("look: "+when, nil)
	}
	look("kube-proxy alone")
	// A SYN of the first look, before the rules, went to the router untranslated, and its flow stays
	// for two minutes. A connection with the same port would follow it, so the flows go.
	_, err = b.lab.Nodes[0].Run(ctx, "conntrack", "-F")
	step("flush flows", err)
	streams, err := b.streams(r)
	step("find addresses", err)
	traffic := lab.StartTraffic(ctx, streams...)
	step("traffic", traffic.More(ctx, 50))

	if !o.overlap {
		step("stop kube-proxy", b.peer.Stop(10*time.Second))
		step("traffic", traffic.More(ctx, 50))
	}
	step("start weft", b.startWeft(ctx))
	step("traffic", traffic.More(ctx, 50))
	look("rules of both, weft's later")
	if o.overlap {
		step("stop kube-proxy", b.peer.Stop(10*time.Second))
	}
	out, err := b.lab.Nodes[0].Run(ctx, program("weft"), "cleanup", "--kube-proxy")
	step("weft cleanup --kube-proxy", err)
	t.Logf("weft cleanup --kube-proxy:\n%s", out)
	step("leftovers of kube-proxy", b.leftovers(ctx, "kube-proxy", "KUBE-SVC", "KUBE-SERVICES", "KUBE-POSTROUTING"))
	step("traffic", traffic.More(ctx, 50))
	look("weft alone")

	if !o.overlap {
		step("stop weft", b.weft.Stop(10*time.Second))
		step("traffic", traffic.More(ctx, 50))
	}
	step("start kube-proxy again", b.startPeer("again"))
	step("await kube-proxy's rules", lab.Within(ctx, 3*time.Minute, func() error {
		return errors.Join(b.peerRules(ctx), b.peer.Err())
	}))
	step("traffic", traffic.More(ctx, 250))
	look("rules of both, kube-proxy's later")
	out, err = b.lab.Nodes[0].Run(ctx, program("weft"), "cleanup", "--socket", filepath.Join(runDir, b.name, "weft.sock"))
	step("weft cleanup", err)
	t.Logf("weft cleanup:\n%s", out)
	step("leftovers of weft", b.leftovers(ctx, "table ip weft", "table ip6 weft"))
	step("traffic", traffic.More(ctx, 50))
	look("kube-proxy alone again")

	asked, lost := traffic.Stop()
	for _, l := range lost {
		t.Errorf("lost: %s", l)
	}
	t.Logf("%d questions asked in %d streams, %d lost", asked, len(streams), len(lost))
}

// takeoverObjects writes a plain service for the traffic, and checks of conflicts between two rulesets.
func (w *world) takeoverObjects(ctx context.Context) (*run, []*run, error) {
	shared := &blocks{number: map[string]int{}}
	var runs []*run
	for _, c := range takeoverChecks() {
		r := newRun(w, c, c.name, shared)
		if err := r.step(ctx, 0); err != nil {
			return nil, nil, err
		}
		runs = append(runs, r)
	}
	return runs[0], runs, nil
}

// takeoverChecks must hold with either proxy's rules and with both.
func takeoverChecks() []check {
	balancer := corev1.ServiceTypeLoadBalancer
	return []check{
		{
			name: "plain", services: []service{{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: all}},
			probes: lines(`
				pod tcp cluster:80 = ` + all + ` as self
				web-1 tcp cluster:80 = ` + all + ` as node+self
				outside tcp node:80 = ` + all + ` as node
				host udp cluster:80 = ` + all + ` as node
			`),
		},
		{name: "empty", services: []service{{name: "web", kind: corev1.ServiceTypeNodePort}}, probes: lines(`
			pod udp cluster:80 = refused
			outside udp node:80 = refused
		`)},
		{name: "local", services: []service{{name: "web", kind: balancer, endpoints: "web-1 web-3", ingress: 1, change: policy(false, true)}}, probes: lines(`
			outside tcp node:80 = web-1 as self
			outside tcp lb:80 = web-1 as self
		`)},
		{name: "ranges", services: []service{{name: "web", kind: balancer, endpoints: "web-1", ingress: 1, change: ranges("192.168.200.100/32", "fd00:200::64/128")}}, probes: lines(`
			outside tcp lb:80 = web-1 as node
			pod udp lb:80 = dropped
		`)},
	}
}

func (b *both) look(t *testing.T, ctx context.Context, when string, runs []*run) {
	t.Helper()
	var wait sync.WaitGroup
	for _, r := range runs {
		for _, p := range r.probesOf(0) {
			wait.Go(func() {
				var got string
				err := lab.Within(ctx, 2*time.Second, func() error {
					if got = r.observe(ctx, b.side, p); got != p.want {
						return errors.New(got)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s: %s: %s: %s, want %s", when, r.check.name, p, got, p.want)
				}
			})
		}
	}
	wait.Wait()
}

// late bounds an answer: a dropped first packet is retransmitted after a second.
const late = 950 * time.Millisecond

// streams are traffic of all kinds to the plain service.
func (b *both) streams(r *run) ([]*lab.Stream, error) {
	var all []*lab.Stream
	for _, p := range lines(`
		pod tcp cluster:80 v4 = new
		pod tcp cluster:80 v6 = new
		pod udp cluster:80 v4 = new
		host tcp cluster:80 v4 = new
		outside tcp node:80 v4 = new
		outside udp node:80 v6 = new
		pod tcp cluster:80 v4 = long
		pod tcp cluster:80 v6 = long
		pod udp cluster:80 v4 = long
		outside udp node:80 v4 = long
		outside tcp node:80 v6 = long
	`) {
		to, err := r.target(b.side, p, p.to)
		if err != nil {
			return nil, err
		}
		all = append(all, &lab.Stream{
			Name: p.String() + " " + p.want, From: b.actors[p.from].Namespace, Network: p.proto, To: to, Long: p.want == "long",
			Every: 4 * time.Millisecond, Late: late,
		})
	}
	return all, nil
}

// leftovers returns an error that names the words still in the ruleset.
func (b *both) leftovers(ctx context.Context, words ...string) error {
	var found []string
	for _, argv := range [][]string{{"nft", "list", "ruleset"}, {"iptables-legacy-save"}, {"ip6tables-legacy-save"}} {
		text, err := b.lab.Nodes[0].Run(ctx, argv[0], argv[1:]...)
		if err != nil {
			return err
		}
		for _, word := range words {
			if strings.Contains(text, word) {
				found = append(found, argv[0]+": "+word)
			}
		}
	}
	if len(found) > 0 {
		return errors.New(strings.Join(found, ", "))
	}
	return nil
}

// peerRules returns an error unless kube-proxy, in any mode, translates to endpoints in both families.
// It syncs the families one after the other.
func (b *both) peerRules(ctx context.Context) error {
	for family, legacy := range map[string]string{"ip": "iptables-legacy-save", "ip6": "ip6tables-legacy-save"} {
		found := false
		for _, look := range []struct {
			word string
			argv []string
		}{
			{"dnat", []string{"nft", "list", "table", family, "kube-proxy"}},
			{"KUBE-SEP", []string{"nft", "list", "table", family, "nat"}},
			{"KUBE-SEP", []string{legacy}},
		} {
			// nft fails if the table is missing.
			text, err := b.lab.Nodes[0].Run(ctx, look.argv[0], look.argv[1:]...)
			found = found || err == nil && strings.Contains(text, look.word)
		}
		if !found {
			return fmt.Errorf("kube-proxy has no rules in family %s", family)
		}
	}
	return nil
}

func (b *both) empty(ctx context.Context) error {
	if _, err := b.lab.Nodes[0].Run(ctx, "nft", "flush", "ruleset"); err != nil {
		return err
	}
	for _, program := range []string{"iptables-legacy", "ip6tables-legacy"} {
		for _, table := range []string{"nat", "filter", "mangle"} {
			for _, verb := range []string{"-F", "-X"} {
				if _, err := b.lab.Nodes[0].Run(ctx, program, "-t", table, verb); err != nil {
					return err
				}
			}
		}
	}
	_, err := b.lab.Nodes[0].Run(ctx, "conntrack", "-F")
	return err
}

func (b *both) end(t *testing.T) {
	for _, p := range []*lab.Process{b.weft, b.peer} {
		if p != nil {
			if err := p.Stop(10 * time.Second); err != nil {
				t.Error(err)
			}
		}
	}
	if t.Failed() && b.weft != nil {
		t.Logf("last lines of weft:\n%s", b.weft.Tail(10))
	}
	if err := b.empty(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
