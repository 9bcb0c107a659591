package migration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// TestUpgrade takes all nodes from an earlier version of weft to this one and back, under traffic: as
// DaemonSets, also with mixed versions, and as processes.
func TestUpgrade(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	u := &upgrade{world: newWorld(t, ctx, without)}
	defer u.logs(t, ctx)
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"DaemonSet, single: the earlier one to this one", u.rolls("single", this, this)},
		{"DaemonSet, single: back to the earlier one", u.rolls("single", old, old)},
		{"DaemonSet, single: to this one again", u.rolls("single", this, this)},
		{"DaemonSet, split: the aggregator is this one, the frontend the earlier one", u.rolls("split", this, old)},
		{"DaemonSet, split: the aggregator is the earlier one, the frontend this one", u.rolls("split", old, this)},
		{"DaemonSet, split: both are this one", u.rolls("split", this, this)},
		{"processes in place of the DaemonSet, single: this one", u.leavesDaemonSet},
		{"processes, single: the earlier one", u.restarts(run{old})},
		{"processes, single: this one", u.restarts(run{this})},
		{"processes, split: the aggregator is this one, the frontend the earlier one", u.restarts(split{this, old})},
		{"processes, split: the aggregator is the earlier one, the frontend this one", u.restarts(split{old, this})},
		{"processes, split: both are this one", u.restarts(split{this, this})},
	}
	if err := u.rolls("single", old, old)(ctx); err != nil {
		t.Fatalf("install the earlier one: %v", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	away := watchAbsences(watching, u.Lab.Nodes)
	traffic, err := u.startService(ctx, away.in)
	if err != nil {
		t.Fatal(err)
	}
	u.startThirds(t, ctx)
	churn := u.startChurn(ctx, traffic)
	began := time.Now()
	for _, step := range steps {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for i, p := range u.thirds {
			p.goesOn(t, ctx, u.durable[i])
		}
		t.Logf("%s: %.1f s, without a weft for %.2f s at most", step.name, time.Since(start).Seconds(), away.longest(start).Seconds())
	}
	if err := churn(); err != nil {
		t.Error(err)
	}
	added := 0
	for _, p := range u.thirds {
		n, err := p.stop()
		if err != nil {
			t.Errorf("%s: the third publisher: %v", p.node.Name(), err)
		}
		added += n
	}
	t.Logf("%d updates of weft on %d nodes in %.0f s: %s; %d answers of pods that left while no weft was on the node; %d elements of a third publisher of the earlier version, none lost",
		len(steps), len(u.Lab.Nodes), time.Since(began).Seconds(), traffic.finish(t), traffic.frozen, added)
}

// version is the name of a weft's program and image.
type version string

const (
	this version = "weft"
	old  version = "weft-earlier"
)

type upgrade struct {
	*world
	// processes replace the DaemonSet's containers on each node.
	processes [][]*lab.Process
	thirds    []*third
	// the durable fragment's table by node
	durable []string
}

func (u *upgrade) manifest(v version, file string) string {
	if v == old {
		return filepath.Join(tests.Source(string(old)), "deploy/kubernetes", file)
	}
	return filepath.Join("../../kubernetes", file)
}

// apply replaces values of this cluster, and pairs of texts, in a manifest.
func (u *upgrade) apply(ctx context.Context, file string, replace ...string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read manifest: %w", err)
	}
	server, err := url.Parse(u.Cluster.URL())
	if err != nil {
		return "", err
	}
	text := strings.NewReplacer(append(replace,
		"192.0.2.10", server.Hostname(), `"6443"`, `"`+server.Port()+`"`, "10.244.0.0/16", lab.Join(lab.ClusterCIDRs()),
		"maxUnavailable: 10%", "maxUnavailable: "+*unavailableFlag)...).Replace(string(b))
	out := filepath.Join(runDir, "manifest.yaml")
	if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write manifest: %w", err)
	}
	return u.Kubectl(ctx, "apply", "-f", out)
}

const manifestImage = "ghcr.io/weft-proxy/weft:v0.1.0"

// rolls applies the manifests of a version, for split containers with another version's image in one
// container.
func (u *upgrade) rolls(mode string, aggregator, frontend version) func(context.Context) error {
	return func(ctx context.Context) error {
		// Versions meet in one pod when the images of the newer manifests are replaced.
		v, others, set := this, []string{mode + "/rbac.yaml"}, mode+"/weft.yaml"
		if aggregator == old && frontend == old {
			v, others, set = old, []string{"rbac.yaml", "config.yaml"}, map[string]string{"single": "daemonset-single.yaml", "split": "daemonset.yaml"}[mode]
		}
		for _, file := range others {
			if _, err := u.apply(ctx, u.manifest(v, file)); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(u.manifest(v, set))
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		before, after, _ := strings.Cut(string(text), "- name: services\n")
		images := strings.ReplaceAll(before, manifestImage, "example/"+string(aggregator))
		if after != "" {
			images += "- name: services\n" + strings.ReplaceAll(after, manifestImage, "example/"+string(frontend))
		}
		file := filepath.Join(runDir, "images.yaml")
		if v == this {
			images = withThird(images, aggregator)
		}
		if err := os.WriteFile(file, []byte(images), 0o600); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
		if _, err := u.apply(ctx, file); err != nil {
			return err
		}
		return u.rollout(ctx, "weft")
	}
}

// enter is a command prefix for the directories of a node.
func (u *upgrade) enter(i int) []string {
	return []string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", u.Kubelets[i].PID())}
}

const socket = "/run/weft/weft.sock"

// startThirds starts a third publisher on each node, and applies a durable fragment there, with the
// earlier version.
func (u *upgrade) startThirds(t *testing.T, ctx context.Context) {
	t.Helper()
	file := filepath.Join(runDir, "keep.nft")
	if err := os.WriteFile(file, []byte(durableRules), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, n := range u.Lab.Nodes {
		argv := append(u.enter(i), program(string(old)), "apply", "-f", file, "--lifetime", "durable", "--socket", socket)
		if _, err := n.Run(ctx, argv[0], argv[1:]...); err != nil {
			t.Fatal(err)
		}
		u.durable = append(u.durable, durableTable(t, ctx, n))
		p, err := startThird(n, filepath.Join(u.world.logs, n.Name()+"-third.log"), u.enter(i), socket)
		if err != nil {
			t.Fatal(err)
		}
		u.thirds = append(u.thirds, p)
	}
}

// leavesDaemonSet replaces the DaemonSet by processes. The rules stay.
func (u *upgrade) leavesDaemonSet(ctx context.Context) error {
	if _, err := u.Kubectl(ctx, "--namespace", metav1.NamespaceSystem, "delete", "daemonset", "weft", "--cascade=foreground"); err != nil {
		return err
	}
	return u.restarts(run{this})(ctx)
}

type process struct {
	name    string
	version version
	args    []string
	// standby is true if it can start while its predecessor runs.
	standby bool
}

// layout is the processes of a node.
type layout interface {
	processes(u *upgrade, n *lab.Node) []process
}

// run is one process, split are two.
type (
	run   struct{ version version }
	split struct{ aggregator, frontend version }
)

func (r run) processes(u *upgrade, n *lab.Node) []process {
	return []process{{
		name: "run", version: r.version, standby: true,
		args: append([]string{"run", "--standby", "--state-dir=/var/lib/weft"}, u.proxyArgs(n)...),
	}}
}

func (s split) processes(u *upgrade, n *lab.Node) []process {
	return []process{
		{name: "aggregator", version: s.aggregator, standby: true, args: []string{
			"aggregator", "--standby", "--socket", socket, "--state-dir=/var/lib/weft", "--metrics-bind-address=", "--healthz-bind-address=127.0.0.1:10246",
		}},
		{name: "services", version: s.frontend, args: append([]string{"services"}, u.proxyArgs(n)...)},
	}
}

func (u *upgrade) proxyArgs(n *lab.Node) []string {
	return []string{
		"--socket", socket, "--kubeconfig", u.Kubeconfig, "--hostname-override", n.Name(), "--cluster-cidr", lab.Join(lab.ClusterCIDRs()),
		"--metrics-bind-address=", "--healthz-bind-address=0.0.0.0:10256",
	}
}

// A process with standby starts before its predecessor ends.
func (u *upgrade) restarts(l layout) func(context.Context) error {
	return func(ctx context.Context) error {
		if u.processes == nil {
			u.processes = make([][]*lab.Process, len(u.Lab.Nodes))
		}
		for i, n := range u.Lab.Nodes {
			if err := u.restart(ctx, i, l.processes(u, n)); err != nil {
				return fmt.Errorf("%s: %w", n.Name(), err)
			}
		}
		return nil
	}
}

func (u *upgrade) restart(ctx context.Context, i int, wanted []process) error {
	before := u.processes[i]
	u.processes[i] = nil
	start := func(p process) error {
		n := u.Lab.Nodes[i]
		argv := append(u.enter(i), append([]string{program(string(p.version))}, p.args...)...)
		name := n.Name() + "-" + p.name
		running, err := n.Start(name, filepath.Join(u.world.logs, name+".log"), nil, argv...)
		if err == nil {
			u.processes[i] = append(u.processes[i], running)
		}
		return err
	}
	var errs []error
	for _, p := range wanted {
		if p.standby {
			errs = append(errs, start(p))
		}
	}
	for _, p := range before {
		errs = append(errs, p.Err(), p.Stop(time.Minute))
	}
	for _, p := range wanted {
		if !p.standby {
			errs = append(errs, start(p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return lab.Within(ctx, time.Minute, func() error {
		for _, p := range u.processes[i] {
			if err := p.Err(); err != nil {
				return err
			}
		}
		return ready(ctx, u.Lab.Nodes[i].Namespace)
	})
}

// logs prints the ends of logs after a failure, and stops all processes.
func (u *upgrade) logs(t *testing.T, ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if t.Failed() {
		out, err := u.Kubectl(ctx, "--namespace", metav1.NamespaceSystem, "logs", "--selector", "app.kubernetes.io/name=weft", "--all-containers", "--prefix", "--tail", "8")
		t.Logf("weft's logs: %v\n%s", err, out)
	}
	for _, all := range u.processes {
		for _, p := range all {
			if t.Failed() {
				t.Logf("--- %s\n%s", p.Name, p.Tail(8))
			}
			if err := p.Stop(time.Minute); err != nil {
				t.Error(err)
			}
		}
	}
	for _, p := range u.thirds {
		_ = p.cmd.Process.Kill()
	}
}
