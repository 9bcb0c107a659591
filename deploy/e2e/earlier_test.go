package e2e

import (
	"slices"
	"testing"
)

// TestEarlier runs scenarios against the API servers of the two minor versions before the current one.
func TestEarlier(t *testing.T) {
	list := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !s.earlier })
	for _, minor := range []string{"1.36", "1.35"} {
		t.Run(minor, func(t *testing.T) { runScenarios(t, binary(minor), list) })
	}
}
