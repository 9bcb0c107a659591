package differential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// takeover is one way from kube-proxy to weft and back.
type takeover struct {
	name string
	// mode is kube-proxy's; path precedes PATH for its programs.
	mode string
	path string
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
	legacy, err := legacyPath()
	if err != nil {
		t.Fatal(err)
	}
	nftPath, err := programs("iptables-nft")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []takeover{
		{name: "nftables-running", mode: "nftables", overlap: true},
		{name: "nftables-stopped", mode: "nftables"},
		{name: "iptables-nft", mode: "iptables", path: nftPath},
		{name: "iptables-legacy", mode: "iptables", path: legacy},
	} {
		t.Run(o.name, func(t *testing.T) { w.takeOver(t, o) })
	}
}

func legacyPath() (string, error) { return programs("iptables-legacy") }

// programs makes a directory with iptables and ip6tables of one kind.
func programs(kind string) (string, error) {
	dir := filepath.Join(runDir, kind)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	for _, family := range []string{"ip", "ip6"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			target, err := exec.LookPath(strings.Replace(kind, "ip", family, 1) + verb)
			if err != nil {
				return "", fmt.Errorf("find programs of %s: %w", kind, err)
			}
			if err := os.Symlink(target, filepath.Join(dir, family+"tables"+verb)); err != nil {
				return "", fmt.Errorf("link programs of %s: %w", kind, err)
			}
		}
	}
	return dir, nil
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
	argv[slices.Index(argv, "--proxy-mode")+1] = b.o.mode
	var env []string
	if b.o.path != "" {
		env = append(env, "PATH="+b.o.path+":"+os.Getenv("PATH"))
	}
	var err error
	b.peer, err = b.lab.Nodes[0].Start("kube-proxy", filepath.Join(logDir, "takeover-"+b.o.name+"-"+name+".log"), env, argv...)
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
	return within(ctx, 3*time.Minute, func() error {
		if err := b.weft.Err(); err != nil {
			return err
		}
		answer, err := b.actors["host"].get(ctx, "http://127.0.0.1:"+b.healthz[strings.LastIndex(b.healthz, ":")+1:]+"/readyz")
		if err == nil && answer.status != http.StatusOK {
			err = fmt.Errorf("readyz: %d %s", answer.status, answer.body)
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
	step("await kube-proxy", within(ctx, 3*time.Minute, func() error {
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
	traffic := flow(ctx, streams...)
	step("traffic", traffic.more(ctx, 50))

	if !o.overlap {
		step("stop kube-proxy", b.peer.Stop(10*time.Second))
		step("traffic", traffic.more(ctx, 50))
	}
	step("start weft", b.startWeft(ctx))
	step("traffic", traffic.more(ctx, 50))
	look("rules of both, weft's later")
	if o.overlap {
		step("stop kube-proxy", b.peer.Stop(10*time.Second))
	}
	out, err := b.lab.Nodes[0].Run(ctx, program("weft"), "cleanup", "--kube-proxy")
	step("weft cleanup --kube-proxy", err)
	t.Logf("weft cleanup --kube-proxy:\n%s", out)
	step("leftovers of kube-proxy", b.leftovers(ctx, "kube-proxy", "KUBE-SVC", "KUBE-SERVICES", "KUBE-POSTROUTING"))
	step("traffic", traffic.more(ctx, 50))
	look("weft alone")

	if !o.overlap {
		step("stop weft", b.weft.Stop(10*time.Second))
		step("traffic", traffic.more(ctx, 50))
	}
	step("start kube-proxy again", b.startPeer("again"))
	step("await kube-proxy's rules", within(ctx, 3*time.Minute, func() error {
		return errors.Join(b.peerRules(ctx), b.peer.Err())
	}))
	step("traffic", traffic.more(ctx, 250))
	look("rules of both, kube-proxy's later")
	out, err = b.lab.Nodes[0].Run(ctx, program("weft"), "cleanup", "--socket", filepath.Join(runDir, b.name, "weft.sock"))
	step("weft cleanup", err)
	t.Logf("weft cleanup:\n%s", out)
	step("leftovers of weft", b.leftovers(ctx, "table ip weft", "table ip6 weft"))
	step("traffic", traffic.more(ctx, 50))
	look("kube-proxy alone again")

	asked, lost := traffic.stop()
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
		r := &run{world: w, check: c, slug: c.name, blocks: shared, objects: map[string]*corev1.Service{}, ports: map[string]uint16{}}
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
				err := within(ctx, 2*time.Second, func() error {
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

// streams are traffic of all kinds to the plain service.
func (b *both) streams(r *run) ([]*stream, error) {
	var all []*stream
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
		all = append(all, &stream{
			name: p.String() + " " + p.want, from: b.actors[p.from], proto: p.proto, to: to, long: p.want == "long",
			state: func() string { return b.state(p, to) },
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

// state is node-1's route to a destination and its flows that are not established.
func (b *both) state(p probe, to netip.AddrPort) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out strings.Builder
	for _, argv := range [][]string{
		{"ip", "route", "get", to.Addr().String()},
		{"conntrack", "-L", "-f", fmt.Sprintf("ipv%d", p.family), "-p", p.proto, "-d", to.Addr().String()},
	} {
		text, err := b.lab.Nodes[0].Run(ctx, argv[0], argv[1:]...)
		fmt.Fprintf(&out, "%s: %v\n", strings.Join(argv, " "), err)
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "TIME_WAIT") && !strings.Contains(line, "ESTABLISHED") {
				out.WriteString(line)
			}
		}
	}
	return out.String()
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

type answer struct {
	status int
	header http.Header
	body   string
}

func (a *actor) get(ctx context.Context, url string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	transport := &http.Transport{DialContext: a.Dial, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(b)}, err
}
