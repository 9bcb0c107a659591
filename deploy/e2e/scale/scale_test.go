package scale

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// TestScale measures everything that the flags select, and prints it.
func TestScale(t *testing.T) {
	var sizes []size
	for _, s := range list(sizesFlag) {
		one, err := parseSize(s)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, one)
	}
	var policies policySize
	if *policiesFlag != "" {
		var err error
		if policies, err = parsePolicySize(*policiesFlag); err != nil {
			t.Fatal(err)
		}
	}
	var explain size
	if *explainFlag != "" {
		var err error
		if explain, err = parseSize(*explainFlag); err != nil {
			t.Fatal(err)
		}
	}
	network, err := newNetwork(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	r := newResults(os.Stdout)
	for range *runsFlag {
		for _, s := range sizes {
			measureBare(t, r, s)
			measureAll(t, network, r, s)
		}
	}
	if *policiesFlag != "" {
		t.Run("policies", func(t *testing.T) { measurePolicies(t, network, policies) })
	}
	if *explainFlag != "" {
		t.Run("explain", func(t *testing.T) { measureExplain(t, network, explain) })
	}
	var table bytes.Buffer
	r.table(&table)
	fmt.Printf("\n%s\n", table.Bytes())
}

func measureBare(t *testing.T, r *results, s size) {
	t.Helper()
	f, err := measureFloor(s)
	if err != nil {
		t.Fatalf("floor: %v", err)
	}
	bare := r.of(subject{bareNetlink, s})
	bare.add(floorAll, 1, ms(f.all, "wall-ms"))
	bare.add(floorOne, 1, ms(f.one, "wall-ms"))
}

func measureAll(t *testing.T, network *network, r *results, s size) {
	t.Helper()
	ctx := t.Context()
	a, err := startAPI(ctx, network.Control, s.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}()
	pop := newPopulation(s)
	if err := a.fill(ctx, pop, network.Nodes[0].Addresses.V4); err != nil {
		t.Fatal(err)
	}
	for _, name := range list(proxiesFlag) {
		if err := measure(ctx, network, a, pop, name, r.of(subject{name, s})); err != nil {
			t.Error(err)
		}
	}
}
