package kubeproxy

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// known lists the feature gates of Kubernetes 1.36, one a line: the name, its
// default, and "locked" where that cannot be changed. From the sources of
// k8s.io/kubernetes v1.36.3: pkg/features and those of the libraries it takes in.
//
//go:embed features.txt
var known string

// externalIPs is the one gate that changes what weft does.
const externalIPs = "AllowServiceExternalIPs"

// gate is a feature of Kubernetes.
type gate struct {
	enabled, locked bool
}

func gates() map[string]gate {
	// These two stand for many.
	out := map[string]gate{"AllAlpha": {}, "AllBeta": {}}
	for line := range strings.Lines(known) {
		if words := strings.Fields(line); len(words) >= 2 {
			out[words[0]] = gate{enabled: words[1] == "true", locked: len(words) > 2}
		}
	}
	return out
}

// checkGates judges feature gates as kube-proxy does: wrong is what it would
// refuse, idle those that are known, say something else than the default, and do
// nothing in weft.
func checkGates(set map[string]bool) (wrong map[string]string, idle []string) {
	wrong = make(map[string]string)
	all := gates()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		switch g, ok := all[name]; {
		case !ok:
			wrong[name] = "unknown feature gate: kube-proxy 1.36 has none of this name"
		case g.locked && set[name] != g.enabled:
			wrong[name] = fmt.Sprintf("got %v: want %v, which is locked since the feature is stable", set[name], g.enabled)
		case name != externalIPs && set[name] != g.enabled:
			idle = append(idle, name)
		}
	}
	return wrong, idle
}
