package scale

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var policyServices = size{1000, 10}

// the time from an event to the commit that it needs
const metricPolicyLatency = "weft_policy_event_to_commit_seconds"

// policyFigure has a target. n is -1 if it could not be measured.
type policyFigure struct {
	what     string
	n, limit float64
	unit     string
}

// measurePolicies measures "weft run --network-policy" on a cluster with policies. A missed target does
// not fail.
func measurePolicies(t *testing.T, network *network, s policySize) {
	t.Helper()
	a, _, p := withPolicies(t, network, policyServices, s)
	m := &policyMeasurement{proxy: p, api: a, size: s}
	if err := m.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nNetworkPolicies: %s pods, namespaces and policies, %d pods of this node, %s Services and endpoints\n\n", s, localPods, policyServices)
	fmt.Println("| what | measured | must reach |\n| --- | --- | --- |")
	for _, f := range m.figures {
		fmt.Printf("| %s | %.2f %s | %.4g %s |\n", f.what, f.n, f.unit, f.limit, f.unit)
	}
}

// Both end with the test.
func withPolicies(t *testing.T, network *network, services size, s policySize) (*api, *population, *proxy) {
	t.Helper()
	ctx := t.Context()
	a, err := startAPI(ctx, network.Control, services.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	})
	pop := newPopulation(services)
	if err := errors.Join(a.fill(ctx, pop, network.Nodes[0].Addresses.V4), a.fillPolicies(ctx, s)); err != nil {
		t.Fatal(err)
	}
	p, err := newProxy(ctx, network.Nodes[0], a, weft, services)
	if err != nil {
		t.Fatal(err)
	}
	p.argv = append(p.argv, "--network-policy")
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return a, pop, p
}

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
	for _, f := range m.phases() {
		if err := m.measureChanges(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return m.stream(ctx)
}

// policyPhase is one kind of change.
type policyPhase struct {
	name    string
	cpu, ms float64
	change  func(context.Context, int) error
	commits bool
}

func (m *policyMeasurement) phases() []policyPhase {
	remote, local := m.size.pods-1, 0
	return []policyPhase{
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
}

// measureStart waits until weft enforces.
func (m *policyMeasurement) measureStart(ctx context.Context) error {
	if err := m.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		// Reading metrics as often would cost weft more than the start.
		if answer, err := m.get(ctx, "/readyz"); err == nil {
			answer.Close()
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
	if err := pause(ctx, *restFlag); err != nil {
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

func (m *policyMeasurement) writePod(ctx context.Context, i int, change func(*corev1.Pod)) error {
	o := m.size.pod(i)
	change(o)
	_, err := m.api.client.CoreV1().Pods(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
	return err
}

// latency returns the times of all changes so far.
func (m *policyMeasurement) latency(ctx context.Context) (*dto.Histogram, error) {
	body, err := m.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	metrics := families[metricPolicyLatency].GetMetric()
	if len(metrics) != 1 {
		return nil, fmt.Errorf("read metrics: %d of %s", len(metrics), metricPolicyLatency)
	}
	return metrics[0].GetHistogram(), nil
}

// atMost returns the bound of the bucket with the quantile q of the samples between before and after.
func atMost(before, after *dto.Histogram, q float64) time.Duration {
	rank := q * float64(after.GetSampleCount()-before.GetSampleCount())
	for i, b := range after.GetBucket() {
		if float64(b.GetCumulativeCount()-before.GetBucket()[i].GetCumulativeCount()) >= rank {
			return time.Duration(b.GetUpperBound() * float64(time.Second))
		}
	}
	return math.MaxInt64
}

func (m *policyMeasurement) make(ctx context.Context, f policyPhase) error {
	m.turn++
	if err := f.change(ctx, m.turn); err != nil {
		return err
	}
	return pause(ctx, gap)
}

// measureChanges measures the CPU and the time until the commit of isolated changes.
func (m *policyMeasurement) measureChanges(ctx context.Context, f policyPhase) error {
	changes := 2 * *changesFlag
	earlier, err := m.latency(ctx)
	if err != nil {
		return err
	}
	before, err := m.cpu()
	if err != nil {
		return err
	}
	for range changes {
		if err := m.make(ctx, f); err != nil {
			return err
		}
	}
	after, err := m.cpu()
	if err != nil {
		return err
	}
	m.add(f.name+": CPU", (after-before).Seconds()*1e3/float64(changes), f.cpu, "ms")
	later, err := m.latency(ctx)
	if err != nil || !f.commits {
		return err
	}
	// A delayed change can share its commit with the next one.
	if n := later.GetSampleCount() - earlier.GetSampleCount(); n < uint64(changes*9/10) || n > uint64(changes) { //nolint:gosec // a small number
		return fmt.Errorf("%d changes made %d commits", changes, n)
	}
	m.add(f.name+": event to commit, median, at most", atMost(earlier, later, 0.5).Seconds()*1e3, f.ms, "ms")
	m.add(f.name+": event to commit, p99, at most", atMost(earlier, later, 0.99).Seconds()*1e3, f.ms, "ms")
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
