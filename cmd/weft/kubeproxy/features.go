package kubeproxy

import (
	"maps"
	"slices"
	"strings"
)

// externalIPs is the only feature gate that has an effect in weft. It is enabled by
// default.
const externalIPs = "AllowServiceExternalIPs"

// warnGates adds a warning for feature gates without effect. weft does not refuse
// unknown gates: releases of Kubernetes add and remove them.
func (s *Settings) warnGates(set map[string]bool) {
	names := slices.Sorted(maps.Keys(set))
	names = slices.DeleteFunc(names, func(name string) bool { return name == externalIPs })
	if len(names) > 0 {
		s.Warnings = append(s.Warnings, "feature gates "+strings.Join(names, ", ")+": no effect in weft")
	}
}
