package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Candidate is an endpoint in a Service's EndpointSlices for one port, used or not.
type Candidate struct {
	// port 0 if Excluded is NoPort
	Endpoint
	Port string `json:"port,omitempty"`
	// IANA number
	Protocol Protocol `json:"protocol"`
	// membership in the lists of Backends
	Cluster  bool `json:"inCluster,omitempty"`
	ForLocal bool `json:"inLocal,omitempty"`
	Draining bool `json:"draining,omitempty"`
	// why the endpoint is not in Cluster
	Excluded Exclusion `json:"excluded,omitempty"`
	// what the kubelet says of the pod, if the API does not yet and the endpoint is therefore excluded
	Kubelet string `json:"kubelet,omitempty"`
	// ports of the slices, if Port is missing there
	SlicePorts string `json:"slicePorts,omitempty"`
}

// Exclusion is why the traffic policy Cluster does not use an endpoint.
type Exclusion uint8

const (
	NotExcluded Exclusion = iota
	NotReady
	// The pod is being deleted, and other endpoints are ready or it no longer serves.
	Terminating
	// The hints are only for other nodes, and other endpoints have hints for this node.
	OtherNode
	// The hints are only for other zones, and other endpoints have hints for this zone.
	OtherZone
	// The slices lack the name and protocol of the Service's port.
	NoPort
)

var exclusionTexts = [...]string{
	NotExcluded: "", NotReady: "not ready", Terminating: "terminating", OtherNode: "hinted to other nodes",
	OtherZone: "hinted to other zones", NoPort: "no port",
}

// String returns the reason, or "".
func (e Exclusion) String() string {
	if int(e) >= len(exclusionTexts) {
		return "unknown reason"
	}
	return exclusionTexts[e]
}

// MarshalText implements encoding.TextMarshaler.
func (e Exclusion) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Exclusion) UnmarshalText(text []byte) error {
	i := slices.Index(exclusionTexts[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not the reason of an exclusion", text)
	}
	*e = Exclusion(i) //nolint:gosec // few texts
	return nil
}

// Why returns why traffic under the policy Local or Cluster does not reach the endpoint, or "".
func (c *Candidate) Why(local bool) string {
	switch {
	case c.Excluded == NoPort:
		return fmt.Sprintf("no EndpointSlice has it with port %s: the slices have %s; compare the Service's targetPort with the names of its pods' ports",
			portText(c.Port, c.Protocol), c.SlicePorts)
	case local && c.ForLocal:
		return ""
	case local && !c.Local:
		return "on another node (traffic policy Local)"
	case c.Kubelet != "":
		return "the kubelet says that its pod is " + c.Kubelet + "; the API does not yet"
	}
	if c.Excluded == NotExcluded && local {
		return NotReady.String() // another local endpoint is ready
	}
	return c.Excluded.String()
}

func portText(name string, protocol Protocol) string {
	if name == "" {
		name = "(no name)"
	}
	return name + "/" + protocol.String()
}

// Candidates returns the endpoints of a Service by port, family and address. Unlike Service, it includes
// events after the last Refresh.
func (m *Model) Candidates(key Key) (out []Candidate, ok bool) {
	r := m.records[key]
	if r == nil || r.parsed == nil {
		return nil, false
	}
	out = m.lists.candidates(r)
	m.pods.explain(r, out)
	return out, true
}

func (l *lists) candidates(r *record) (out []Candidate) {
	for i := range r.parsed.ports {
		p := &r.parsed.ports[i]
		for f := range NumFamilies {
			width := widths[f]
			of := source{name: p.name, protocol: p.protocol, family: f}
			list, c := l.selected(r, of)
			chosen := c.choose(r.parsed, p)
			first := len(out)
			for ; list != ""; list = list[width:] {
				e := list[:width]
				t := flags(e[width-1])
				out = append(out, Candidate{
					Endpoint: Endpoint{Addr: unpack(e), Local: t.local()},
					Port:     p.name.Value(), Protocol: p.protocol,
					Cluster: chosen.inCluster(t), ForLocal: chosen.hasLocal && chosen.inLocal(t), Draining: chosen.hasDraining && chosen.inDraining(t),
					Excluded: chosen.excluded(t),
				})
			}
			out = l.appendOthers(out, first, r, of)
		}
	}
	return out
}

// appendOthers appends the endpoints of slices without the port. out[first:] has those of slices with it.
func (l *lists) appendOthers(out []Candidate, first int, r *record, of source) []Candidate {
	have := make(map[netip.Addr]bool)
	for _, c := range out[first:] {
		have[c.Addr.Addr()] = true
	}
	var ports []string
	var others []entry
	for s := r.slices; s != nil; s = s.next {
		if s.family != of.family || slices.ContainsFunc(s.ports, func(p port) bool { return p.name == of.name && p.protocol == of.protocol }) {
			continue
		}
		others = s.gather(others, 0, l.zoneFlags(s))
		for _, p := range s.ports {
			ports = append(ports, portText(p.name.Value(), p.protocol))
		}
	}
	slices.Sort(ports)
	text := strings.Join(slices.Compact(ports), ", ")
	if text == "" {
		text = "none"
	}
	width := widths[of.family]
	for list := packSorted(others, width); list != ""; list = list[width:] {
		e := list[:width]
		addr := unpack(e)
		if have[addr.Addr()] {
			continue
		}
		have[addr.Addr()] = true
		out = append(out, Candidate{
			Endpoint: Endpoint{Addr: addr, Local: flags(e[len(e)-1]).local()}, Port: of.name.Value(), Protocol: of.protocol,
			Excluded: NoPort, SlicePorts: text,
		})
	}
	return out
}

func (c choice) excluded(t flags) Exclusion {
	switch {
	case c.inCluster(t):
		return NotExcluded
	case t.state() > c.cluster && t&terminating != 0:
		return Terminating
	case t.state() > c.cluster:
		return NotReady
	case c.near == sameNode:
		return OtherNode
	default:
		return OtherZone
	}
}
