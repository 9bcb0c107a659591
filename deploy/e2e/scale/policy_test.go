package scale

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// policyServices are the Services beside the policies.
var policyServices = size{1000, 10}

// metricPolicyLatency has the time from an event to the commit that it needs.
const metricPolicyLatency = "weft_policy_event_to_commit_seconds"

// policyFigure is one that NetworkPolicies are held to. n is -1 if it could not be measured.
type policyFigure struct {
	what     string
	n, limit float64
	unit     string
}

// measurePolicies measures "weft run --network-policy" on a cluster with policies, and prints
// the figures against what they are held to. A figure that is not reached does not fail.
func measurePolicies(t *testing.T, network *lab.Lab, s policySize) {
	t.Helper()
	ctx := t.Context()
	a, err := startAPI(ctx, network, replay, policyServices)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := a.fill(ctx, newPopulation(policyServices), network.Nodes[0].Addresses.V4); err != nil {
		t.Fatal(err)
	}
	if err := a.fillPolicies(ctx, s); err != nil {
		t.Fatal(err)
	}
	p, err := newProxy(ctx, network.Nodes[0], a, weft, policyServices)
	if err != nil {
		t.Fatal(err)
	}
	p.argv = append(p.argv, "--network-policy")
	defer func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}()
	m := &policyMeasurement{proxy: p, api: a, size: s}
	if err := m.run(ctx); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nNetworkPolicies: %s pods, namespaces and policies, %d pods of this node, %s Services and endpoints\n\n", s, localPods, policyServices)
	fmt.Println("| what | measured | must reach |\n| --- | --- | --- |")
	for _, f := range m.figures {
		fmt.Printf("| %s | %.2f %s | %.4g %s |\n", f.what, f.n, f.unit, f.limit, f.unit)
	}
}

// policyMeasurement is one run.
type policyMeasurement struct {
	*proxy
	api     *api
	size    policySize
	figures []policyFigure
	turn    int
}

func (m *policyMeasurement) add(what string, n, limit float64, unit string) {
	m.figures = append(m.figures, policyFigure{what, n, limit, unit})
}

func (m *policyMeasurement) run(ctx context.Context) error {
	if err := m.measureStart(ctx); err != nil {
		return err
	}
	remote, local := m.size.pods-1, 0
	phases := []struct {
		name       string
		cpu, ms    float64
		change     func(context.Context, int) error
		committing bool
	}{
		{"a pod elsewhere changes a label that no selector has", 1, 0, func(ctx context.Context, turn int) error {
			return m.writePod(ctx, remote, func(p *corev1.Pod) { p.Labels["pod-template-hash"] = strconv.Itoa(turn) })
		}, false},
		{"a pod elsewhere enters or leaves sets of this node", 2, 5, func(ctx context.Context, turn int) error {
			return m.writePod(ctx, remote, func(p *corev1.Pod) { p.Labels["app"] = "app-" + strconv.Itoa(9*(turn%2)) })
		}, true},
		{"a pod of this node changes its policies", 2, 5, func(ctx context.Context, turn int) error {
			return m.writePod(ctx, local, func(p *corev1.Pod) { p.Labels["app"] = "app-" + strconv.Itoa(turn%2) })
		}, true},
		{"a namespace changes a label", 1, 0, func(ctx context.Context, turn int) error {
			o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: policyNamespace(m.size.namespaces - 1), Labels: map[string]string{"team": strconv.Itoa(turn)}}}
			_, err := m.api.client.CoreV1().Namespaces().Update(ctx, o, metav1.UpdateOptions{})
			return err
		}, false},
		{"a policy of this node changes", 10, 10, func(ctx context.Context, turn int) error {
			o := m.size.policy(0)
			o.Spec.Ingress[0].Ports[0].Port.IntVal = int32(8080 + turn%2)
			_, err := m.api.client.NetworkingV1().NetworkPolicies(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
			return err
		}, true},
	}
	for _, f := range phases {
		if err := m.changes(ctx, f.name, f.cpu, f.ms, f.committing, f.change); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return m.stream(ctx)
}

// measureStart starts weft, and waits until it enforces.
func (m *policyMeasurement) measureStart(ctx context.Context) error {
	if err := m.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if n, err := m.metric(ctx, "weft_policy_committed_revision"); err == nil && n > 0 {
			break
		}
		if err := m.process.Err(); err != nil {
			return err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the policies: %w", err)
		}
	}
	m.add("start until enforcing", time.Since(m.started).Seconds(), 3, "s")
	if err := pause(ctx, restTime); err != nil {
		return err
	}
	cpu, err := m.cpu()
	if err != nil {
		return err
	}
	resident, _, err := m.memory()
	m.add("the same, CPU", cpu.Seconds(), 4, "s")
	m.add("resident memory, settled", resident, 150, "MiB")
	return err
}

// writePod writes a pod that is changed.
func (m *policyMeasurement) writePod(ctx context.Context, i int, change func(*corev1.Pod)) error {
	o := m.size.pod(i)
	change(o)
	_, err := m.api.client.CoreV1().Pods(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
	return err
}

// latency returns how many changes were committed, and how long they took together.
func (m *policyMeasurement) latency(ctx context.Context) (n float64, sum time.Duration, err error) {
	if n, err = m.metric(ctx, metricPolicyLatency+"_count"); err != nil {
		return 0, 0, err
	}
	seconds, err := m.metric(ctx, metricPolicyLatency+"_sum")
	return n, time.Duration(seconds * float64(time.Second)), err
}

// collectTime is how long before CPU is measured nothing happens, in a run that is not short:
// an idle weft collects the garbage of what was before, such as the reading of metrics.
const collectTime = 6 * time.Second

// changes makes isolated changes: half of them to measure CPU, half to measure how long each
// takes until it is committed.
func (m *policyMeasurement) changes(ctx context.Context, what string, cpuLimit, msLimit float64, committing bool, change func(context.Context, int) error) error {
	turn := func() error {
		m.turn++
		if err := change(ctx, m.turn); err != nil {
			return err
		}
		return pause(ctx, gap)
	}
	if err := pause(ctx, min(collectTime, *duration)); err != nil {
		return err
	}
	before, err := m.cpu()
	if err != nil {
		return err
	}
	for range *changesFlag {
		if err := turn(); err != nil {
			return err
		}
	}
	after, err := m.cpu()
	if err != nil {
		return err
	}
	m.add(what+": CPU", (after-before).Seconds()*1e3/float64(*changesFlag), cpuLimit, "ms")
	if !committing {
		return nil
	}
	var took []time.Duration
	for range *changesFlag {
		n, sum, err := m.latency(ctx)
		if err != nil {
			return err
		}
		if err := turn(); err != nil {
			return err
		}
		now, total, err := m.latency(ctx)
		if err != nil {
			return err
		}
		if now == n+1 {
			took = append(took, total-sum)
		}
	}
	if len(took) < *changesFlag/2 {
		m.add(what+": commits seen", float64(len(took)), float64(*changesFlag), "of them")
		return nil
	}
	m.add(what+": event to commit, median", quantile(took, 0.5).Seconds()*1e3, msLimit, "ms")
	m.add(what+": event to commit, p99", quantile(took, 0.99).Seconds()*1e3, msLimit, "ms")
	return nil
}

// stream writes 1,000 pods a second, each of which enters or leaves sets.
func (m *policyMeasurement) stream(ctx context.Context) error {
	const rate = 1000
	began, err := m.cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	n := 0
	for ; time.Since(start) < *duration; n += 10 {
		var work []func() error
		for i := range 10 {
			work = append(work, func() error {
				return m.writePod(ctx, m.size.pods-1-(n+i)%(m.size.pods/2), func(p *corev1.Pod) { p.Labels["app"] = "app-" + strconv.Itoa((n+i)%10) })
			})
		}
		if err := parallel(writers, work); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(start.Add(time.Duration(n+10)*time.Second/rate))); err != nil {
			return err
		}
	}
	took := time.Since(start)
	ended, err := m.cpu()
	if err != nil {
		return err
	}
	m.add(fmt.Sprintf("%.0f pod events a second: CPU", float64(n)/took.Seconds()), (ended-began).Seconds()/took.Seconds()*100, 25, "% of a core")
	return nil
}
