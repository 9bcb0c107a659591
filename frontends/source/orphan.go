package source

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// orphans reports the slices among new events that no Service uses. With an API
// server that is a state on the way; in files it is most often a slip in a name.
// The slice is kept: its Service may come.
func (m *Manifests) orphans(events []Event) {
	for _, e := range events {
		set, ok := e.(SliceSet)
		if !ok {
			continue
		}
		id := identity{kind: "EndpointSlice", namespace: set.Slice.Namespace, name: set.Slice.Name}
		file, line := m.owners[id][0], m.current(id).line
		owner := set.Slice.Labels[discoveryv1.LabelServiceName]
		service := identity{kind: "Service", namespace: set.Slice.Namespace, name: owner}
		switch {
		case owner == "":
			m.log.Warn("slice has no label "+discoveryv1.LabelServiceName+": no Service uses it", "object", id.String(), "file", file, "line", line)
		case len(m.owners[service]) == 0:
			m.log.Warn("slice of a Service that no manifest has: it waits for it", "object", id.String(), "file", file, "line", line, "service", service.namespace+"/"+service.name)
		}
	}
}
