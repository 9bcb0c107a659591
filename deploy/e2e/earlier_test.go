package e2e

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var earlierFlag = flag.String("earlier", "1.36", "minor versions of the API servers of TestEarlier, with commas: 1.36, 1.35; 1.35 takes minutes to build")

func earlier() []string { return strings.Split(*earlierFlag, ",") }

// TestEarlier runs scenarios against the API servers of earlier minor versions.
func TestEarlier(t *testing.T) {
	list := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !s.earlier })
	for _, minor := range earlier() {
		t.Run(minor, func(t *testing.T) { runScenarios(t, binary(minor), list) })
	}
}
