package scale

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// explained are the policies beside the Services: each selects a pod of this node.
var explained = policySize{pods: 2000, namespaces: localPods / 10, policies: 1000}

const explainRounds = 25

// measureExplain measures `weft explain` on a node with Services and policies, beside `weft version`,
// and its cost to concurrent commits. A missed target does not fail.
func measureExplain(t *testing.T, network *network, s size) {
	t.Helper()
	ctx := t.Context()
	a, pop, p := withPolicies(t, network, s, explained)
	if err := addPods(ctx, network.Nodes[0]); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := lab.Within(ctx, startPatience, func() error {
		answer, err := p.get(ctx, "/readyz")
		if err != nil {
			return errors.Join(err, p.process.Err())
		}
		return answer.Close()
	}); err != nil {
		t.Fatal(err)
	}
	if err := answering(ctx, p.node, s, startPatience); err != nil {
		t.Fatal(err)
	}
	monitor, err := newMonitor(network.Nodes[0].Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := monitor.close(); err != nil {
			t.Error(err)
		}
	}()
	m := &explainMeasurement{measurement{proxy: p, api: a, pop: pop, monitor: monitor}}
	fmt.Printf("\nweft explain: %s Services and endpoints, %s pods, namespaces and policies\n\n", s, explained)
	if err := errors.Join(m.answers(ctx), m.commits(ctx)); err != nil {
		t.Fatal(err)
	}
}

// addPods makes the link of the node's pods.
func addPods(ctx context.Context, n *lab.Node) error {
	first, err := netip.MustParseAddr(explained.pod(0).Status.PodIP).Prefix(25)
	if err != nil {
		return fmt.Errorf("addresses of the node's pods: %w", err)
	}
	for _, argv := range [][]string{
		{"link", "add", "pods", "type", "veth", "peer", "name", "pods-peer"},
		{"link", "set", "pods", "up"}, {"link", "set", "pods-peer", "up"},
		{"route", "add", first.String(), "dev", "pods"},
	} {
		if _, err := n.Run(ctx, "ip", argv...); err != nil {
			return err
		}
	}
	return nil
}

type explainMeasurement struct{ measurement }

func (m *explainMeasurement) explain(ctx context.Context, to string) (time.Duration, error) {
	return m.timed(ctx, "explain", "--socket", filepath.Join(m.dir, "weft.sock"), "--from", explained.pod(0).Status.PodIP, "--to", to)
}

func (m *explainMeasurement) timed(ctx context.Context, arguments ...string) (time.Duration, error) {
	start := time.Now()
	_, err := m.node.Run(ctx, tests.Path(weft), arguments...)
	return time.Since(start), err
}

// questions are the destinations of packets from a pod of this node.
func (m *explainMeasurement) questions() []string {
	service := m.pop.services / 2
	port := ":" + strconv.Itoa(int(newService(service).Spec.Ports[0].Port))
	return []string{
		namespaceName(service) + "/" + serviceName(service) + port,
		clusterIP(service).String() + port,
		explained.pod(1).Status.PodIP + ":8080",
	}
}

// answers alternates questions and the floor.
func (m *explainMeasurement) answers(ctx context.Context) error {
	questions := m.questions()
	var floor []time.Duration
	took := make([][]time.Duration, len(questions))
	for range explainRounds {
		d, err := m.timed(ctx, "version")
		if err != nil {
			return err
		}
		floor = append(floor, d)
		for i, to := range questions {
			if d, err = m.explain(ctx, to); err != nil {
				return err
			}
			took[i] = append(took[i], d)
		}
	}
	fmt.Println("| process | median | p90 | of the floor | must reach |\n| --- | --- | --- | --- | --- |")
	row := func(what string, d []time.Duration, limit string) {
		fmt.Printf("| %s | %s | %s | %.2f | %s |\n", what, milliseconds(ms(quantile(d, 0.5), "").n), milliseconds(ms(quantile(d, 0.9), "").n),
			quantile(d, 0.5).Seconds()/quantile(floor, 0.5).Seconds(), limit)
	}
	row("weft version, the floor", floor, "")
	for i, to := range questions {
		row("weft explain --to "+to, took[i], "50 ms")
	}
	return nil
}

// commits measures changes of endpoints, every second one while weft explain runs repeatedly.
func (m *explainMeasurement) commits(ctx context.Context) error {
	var quiet, asked change
	to := m.questions()[0]
	for range *changesFlag {
		i, slice := m.slice()
		if err := m.one(ctx, &quiet, i, m.pop.replace(slice, m.turn, 1)...); err != nil {
			return err
		}
		ends, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			for ends.Err() == nil {
				if _, err := m.explain(ctx, to); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		i, slice = m.slice()
		err := m.one(ctx, &asked, i, m.pop.replace(slice, m.turn, 1)...)
		stop()
		if err := errors.Join(err, <-done); err != nil {
			return err
		}
	}
	fmt.Println("\n| an endpoint changes, until it is in the kernel | median | p90 | longest |\n| --- | --- | --- | --- |")
	row := func(what string, d []time.Duration) (median time.Duration) {
		fmt.Printf("| %s | %s | %s | %s |\n", what, milliseconds(ms(quantile(d, 0.5), "").n), milliseconds(ms(quantile(d, 0.9), "").n), milliseconds(ms(quantile(d, 1), "").n))
		return quantile(d, 0.5)
	}
	before := row("nothing else runs", quiet.latencies)
	during := row("weft explain runs again and again", asked.latencies)
	fmt.Printf("| delay of the median; must reach 5 ms | %s | | |\n", milliseconds((during-before).Seconds()*1e3))
	return nil
}
