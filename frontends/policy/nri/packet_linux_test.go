package nri_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft/kernel"
)

// onlyWeb lets the pods app=web alone reach the pods app=db, which reach no pod.
const onlyWeb = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec:
  podSelector: {matchLabels: {app: db}}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]
`

// apiPod is a pod of the manifests, with the addresses of namespace i.
func apiPod(name string, i int) string {
	return strings.NewReplacer("NAME", name, "ADDR4", podAddr(0, i).String(), "ADDR6", podAddr(1, i).String()).Replace(`apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop, uid: uid-NAME, labels: {app: NAME}}
spec: {nodeName: node-a, containers: [{name: c, image: c}]}
status: {phase: Running, podIPs: [{ip: ADDR4}, {ip: "ADDR6"}]}
`)
}

// runtimePod is a pod of the container runtime, with the addresses of namespace i.
func runtimePod(name string, i int) *api.PodSandbox {
	return pod(name, podAddr(0, i).String(), podAddr(1, i).String())
}

// packetLab is weft on the node of a network, with manifests as its API server.
type packetLab struct {
	*network
	weft
	rt *runtime
}

// weft has the paths of weft.
type weft struct{ Manifests, State, Socket, Runtime string }

func newPacketLab(t *testing.T) *packetLab {
	t.Helper()
	t.Parallel()
	l := &packetLab{network: newNetwork(t), rt: newRuntime(t)}
	l.weft = weft{Manifests: t.TempDir(), State: t.TempDir(), Socket: aggregatortest.Socket(t), Runtime: l.rt.socket}
	l.write(t, "policy.yaml", onlyWeb)
	return l
}

// write replaces a manifest; an empty text removes it.
func (l *packetLab) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(l.Manifests, name)
	var err error
	if text == "" {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// start runs weft in this process, and waits for its first commit.
func (l *packetLab) start(t *testing.T) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: l.node.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	startWeft(t, conn, l.weft)
}

// startWeft runs an aggregator and a frontend until the test ends, and waits for the first
// commit.
func startWeft(t *testing.T, conn *kernel.Conn, w weft) {
	t.Helper()
	agg := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: conn, StateDir: w.State, Rate: rate.Inf}, Socket: w.Socket})
	src, err := source.NewManifests(w.Manifests, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := policy.New(policy.Config{Source: src, NodeName: "node-a", Socket: agg.Socket, RuntimeSocket: w.Runtime, MinInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return src.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	poll(t, "the first commit", func() bool { return f.Ready() == nil })
}

// processVariable has the weft of TestWeftProcess, as JSON.
const processVariable = "WEFT_TEST_PROCESS"

// TestWeftProcess is the process that startProcess starts. It writes a line once it has
// committed its rules, and ends when it is killed.
func TestWeftProcess(t *testing.T) {
	text := os.Getenv(processVariable)
	if text == "" {
		return
	}
	var w weft
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	conn, err := kernel.Open(kernel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	startWeft(t, conn, w)
	fmt.Println(processVariable)
	<-t.Context().Done()
}

// startProcess runs weft in a process of its own until the function that it returns kills it,
// and waits for its first commit.
func (l *packetLab) startProcess(t *testing.T) (kill func()) {
	t.Helper()
	text, err := json.Marshal(l.weft)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWeftProcess$")
	cmd.Env = append(cmd.Environ(), processVariable+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.node.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == processVariable {
			return kill
		}
	}
	t.Fatal("the process ended")
	return nil
}

// expect tries connections in both families: "+1>2" must be answered, in three attempts on a
// busy machine, "-1>2" must not.
func (l *packetLab) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, w := range want {
		for f := range 2 {
			wg.Go(func() {
				from, to := int(w[1]-'0'), int(w[3]-'0')
				got := l.answers(f, from, to)
				for range 2 {
					got = got || w[0] == '+' && l.answers(f, from, to)
				}
				if got != (w[0] == '+') {
					t.Errorf("%s: IPv%d from %d to %d: answered %v, want %s", when, 4+2*f, from, to, got, w)
				}
			})
		}
	}
	wg.Wait()
}

// await waits until connections are answered, or not.
func (l *packetLab) await(t *testing.T, want string) {
	t.Helper()
	poll(t, want, func() bool { return l.answers(0, int(want[1]-'0'), int(want[3]-'0')) == (want[0] == '+') })
}

// TestPacketsOfNewPod starts a pod, and sends packets from it and to it as soon as its
// containers may start: those that policies do not allow are dropped, before the API reports
// the pod, while it does, and until the runtime has stopped the pod.
//
// Policy behaviour: 46, 49, 50.
func TestPacketsOfNewPod(t *testing.T) {
	l := newPacketLab(t)
	l.rt.start(t)
	l.start(t)
	l.expect(t, "without pods", "+1>2", "+2>1", "+0>1")
	for _, name := range []string{"db", "db-2"} {
		p := runtimePod(name, 1)
		p.Labels["app"] = "db"
		began := time.Now()
		l.rt.run(t, p)
		took := time.Since(began)
		l.expect(t, "after RunPodSandbox", "-2>1", "-1>2", "-3>1", "+0>1")
		t.Logf("RunPodSandbox returned after %s", took.Round(10*time.Microsecond))

		// A pod that is allowed, known to the runtime alone.
		l.rt.run(t, runtimePod("web", 2))
		l.expect(t, "after RunPodSandbox of web", "+2>1", "-1>2", "-3>1")

		end := l.watch(t, 3, 1)
		l.write(t, "db.yaml", strings.ReplaceAll(strings.ReplaceAll(apiPod("db", 1), "name: db,", "name: "+name+","), "uid-db", "uid-"+name))
		l.write(t, "web.yaml", apiPod("web", 2))
		// A policy more, for all pods.
		l.write(t, "policy-2.yaml", strings.NewReplacer("name: db,", "name: third,", "app: db", "app: db", "app: web", "app: third").Replace(onlyWeb))
		l.write(t, "third.yaml", apiPod("third", 3))
		l.await(t, "+3>1")
		end.mayArrive(t)
		l.write(t, "policy-2.yaml", "")
		l.await(t, "-3>1")
		end = l.watch(t, 3, 1)
		for _, name := range []string{"db.yaml", "web.yaml", "third.yaml"} {
			l.write(t, name, "")
		}
		l.write(t, "mark.yaml", strings.ReplaceAll(apiPod("mark", 3), "app: mark", "app: db"))
		l.await(t, "-3>2")
		l.expect(t, "after the API has forgotten the pods", "+2>1", "-1>2", "-3>1")
		l.write(t, "mark.yaml", "")
		l.await(t, "+3>2")
		end.none(t)
		for _, gone := range []*api.PodSandbox{p, runtimePod("web", 2)} {
			if err := l.rt.StopPodSandbox(t.Context(), &api.StopPodSandboxRequest{Pod: gone}); err != nil {
				t.Fatal(err)
			}
		}
		// The address is free.
		l.await(t, "+3>1")
		l.await(t, "+1>2")
	}
}

// TestPacketsDuringRestarts restarts the runtime, and kills weft, in turn while packets that must be
// dropped are sent every millisecond: no packet arrives.
//
// Policy behaviour: 49, 51.
func TestPacketsDuringRestarts(t *testing.T) {
	l := newPacketLab(t)
	db := runtimePod("db", 1)
	l.rt.start(t)
	kill := l.startProcess(t)
	l.rt.run(t, db)
	end := l.watch(t, 2, 1)
	for range 3 {
		l.rt.stop()
		l.expect(t, "without the runtime", "-2>1", "-1>2", "+0>1")
		kill()
		l.expect(t, "without both", "-2>1", "-1>2", "+0>1")
		l.rt.start(t, db)
		kill = l.startProcess(t)
		l.expect(t, "after the restart", "-2>1", "-1>2", "+0>1")
		// The runtime alone: a pod has started before weft is connected again.
		l.rt.stop()
		l.rt.start(t, db, runtimePod("web", 3))
		l.await(t, "+3>1")
		l.expect(t, "after the restart of the runtime", "-2>1", "-1>2")
		if err := l.rt.RemovePodSandbox(t.Context(), &api.RemovePodSandboxRequest{Pod: runtimePod("web", 3)}); err != nil {
			t.Fatal(err)
		}
		l.await(t, "-3>1")
	}
	end.none(t)
	// The pod ended while the runtime was away. Another one is known to the runtime alone.
	l.rt.stop()
	other := runtimePod("other", 3)
	other.Labels["app"] = "db"
	l.rt.start(t, other)
	l.await(t, "+2>1")
	l.expect(t, "after the end of the pod", "-2>3", "-1>3")
	// Without the runtime, weft does not keep its pods. It would if no object had the node's name.
	l.write(t, "node.yaml", "{apiVersion: v1, kind: Node, metadata: {name: node-a}}\n")
	kill()
	l.expect(t, "after the last kill", "+2>1", "-2>3")
	l.weft.Runtime = ""
	l.startProcess(t)
	l.await(t, "+2>3")
}
