package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

var againstRows = []struct{ what, phase, unit string }{
	{"start until every Service answers", "start", "wall-ms"},
	{"the same, CPU", "start", "cpu-ms"},
	{"one endpoint replaced alone, CPU", "replace", "cpu-ms"},
	{"the same, until committed: median", "replace", "p50-ms"},
	{"five a second, CPU of one", "5-a-second", "cpu-ms"},
	{"rolling update of a fifth of the endpoints, CPU", "rolling-update", "cpu-ms"},
	{"a pod enters or leaves sets, CPU", podEvent, "cpu-ms"},
	{"memory after the start", "start", "settled-MiB"},
	{"memory, peak", "rolling-update", "peak-MiB"},
}

const (
	podEvent = "pod-event"
	// per weft
	restarts, rolls = 3, 3
)

// side is one of the two wefts, on its own node with its own API server, so that neither pays for the
// other.
type side struct {
	name string
	host *lab.Host
	node *lab.Node
	// flags is the program's help.
	flags string
}

// TestAgainst compares this weft with that of -scale.against on the same objects. They change in turns,
// this one first in every second turn, so that other load affects both.
func TestAgainst(t *testing.T) {
	if *againstFlag == "" {
		t.Skip("no commit to compare with: set -scale.against")
	}
	ctx := t.Context()
	network, err := newNetwork(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	sides := []side{{name: weft, host: network.Control, node: network.Nodes[0]}, {name: base, host: network.Outside, node: network.Nodes[1]}}
	for i := range sides {
		s := &sides[i]
		if s.flags, err = s.host.Run(ctx, tests.Path(s.name), "run", "--help"); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range list(sizesFlag) {
		size, err := parseSize(s)
		if err != nil {
			t.Fatal(err)
		}
		r := newResults(os.Stdout)
		if err := compare(ctx, r, sides, size); err != nil {
			t.Errorf("%s: %v", size, err)
		}
		if err := comparePods(ctx, r, sides, size); err != nil {
			t.Errorf("pod events: %s: %v", size, err)
		}
		fmt.Printf("\n%s", r.against(size))
	}
}

// compare runs the phases without policies.
func compare(ctx context.Context, r *results, sides []side, s size) (err error) {
	var all []*measurement
	defer func() {
		for _, m := range all {
			err = errors.Join(err, m.stop(), m.api.stop())
			if m.monitor != nil {
				err = errors.Join(err, m.monitor.close())
			}
		}
	}()
	for i := range sides {
		m := &measurement{pop: newPopulation(s), report: r.of(subject{sides[i].name, s})}
		if m.api, err = startAPI(ctx, sides[i].host, sides[i].name); err != nil {
			return err
		}
		m.proxy = &proxy{name: sides[i].name}
		all = append(all, m)
		if err := m.api.fill(ctx, m.pop, sides[i].node.Addresses.V4); err != nil {
			return err
		}
	}
	err = inTurns(restarts, all, func(m *measurement) error {
		i := slices.Index(all, m)
		if err := m.stop(); err != nil {
			return err
		}
		if m.proxy, err = sides[i].proxy(ctx, m.api, s); err != nil {
			return err
		}
		return m.firstStart(ctx)
	})
	if err != nil {
		return err
	}
	for i, m := range all {
		if m.monitor, err = newMonitor(sides[i].node.Namespace); err != nil {
			return err
		}
	}
	return errors.Join(
		inTurns(*turnsFlag, all, func(m *measurement) error { return m.replace(ctx) }),
		inTurns(*turnsFlag, all, func(m *measurement) error { return m.steady(ctx) }),
		inTurns(rolls, all, func(m *measurement) error { return m.roll(ctx) }))
}

// comparePods measures pods that enter or leave sets. A weft without policies has no figure.
func comparePods(ctx context.Context, r *results, sides []side, s size) (err error) {
	policies, err := parsePolicySize(*policiesFlag)
	if err != nil {
		return err
	}
	var all []*policyMeasurement
	defer func() {
		for _, m := range all {
			err = errors.Join(err, m.stop(), m.api.stop())
		}
	}()
	for i := range sides {
		if !sides[i].knows("--network-policy") {
			continue
		}
		a, err := startAPI(ctx, sides[i].host, sides[i].name)
		if err != nil {
			return err
		}
		p, err := sides[i].proxy(ctx, a, s, "--network-policy")
		if err != nil {
			return errors.Join(err, a.stop())
		}
		m := &policyMeasurement{proxy: p, api: a, size: policies}
		all = append(all, m)
		if err := errors.Join(a.fill(ctx, newPopulation(policyServices), sides[i].node.Addresses.V4), a.fillPolicies(ctx, policies), m.measureStart(ctx)); err != nil {
			return err
		}
	}
	const changes = 20
	return inTurns(*turnsFlag, all, func(m *policyMeasurement) error {
		before, err := m.cpu()
		if err != nil {
			return err
		}
		for range changes {
			if err := m.make(ctx, m.phases()[1]); err != nil {
				return err
			}
		}
		after, err := m.cpu()
		r.of(subject{m.name, s}).add(podEvent, changes, ms((after-before)/changes, "cpu-ms"))
		return err
	})
}

// inTurns calls f n times for each, in alternating order.
func inTurns[T any](n int, all []T, f func(T) error) error {
	for i := range n {
		order := slices.Clone(all)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, m := range order {
			if err := f(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *side) knows(flag string) bool { return strings.Contains(s.flags, " "+flag+" ") }

// proxy omits the flags that this weft lacks.
func (s *side) proxy(ctx context.Context, a *api, n size, flags ...string) (*proxy, error) {
	p, err := newProxy(ctx, s.node, a, s.name, n)
	if err != nil {
		return nil, err
	}
	p.argv = slices.DeleteFunc(append(p.argv, flags...), func(arg string) bool {
		name, _, joined := strings.Cut(arg, "=")
		return joined && strings.HasPrefix(name, "--") && !s.knows(name)
	})
	return p, nil
}

// against returns a Markdown table of medians and of the medians of turns' ratios.
func (r *results) against(s size) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | this | %s | ratio |\n| --- | --- | --- | --- |\n", title(subject{size: s}), *againstFlag)
	for _, row := range againstRows {
		one, other := figure{subject{weft, s}, row.phase, row.unit}, figure{subject{base, s}, row.phase, row.unit}
		n, ok := r.median(one)
		of, both := r.median(other)
		if !ok {
			continue
		}
		_, unit, _ := strings.Cut(row.unit, "-")
		line := fmt.Sprintf("| %s | %.3g %s |", row.what, n, unit)
		if !both {
			fmt.Fprintln(&b, line+" | |")
			continue
		}
		fmt.Fprintf(&b, "%s %.3g %s |%s\n", line, of, unit, ratio(middle(quotients(r.figures[one], r.figures[other])), 1))
	}
	return b.String()
}

// quotients divides the figures of turns by the other side's.
func quotients(one, other []float64) []float64 {
	out := make([]float64, min(len(one), len(other)))
	for i := range out {
		out[i] = one[i] / other[i]
	}
	return out
}

func middle(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
