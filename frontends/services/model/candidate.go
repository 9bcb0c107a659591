package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// Candidate is an endpoint in the EndpointSlices of a Service for one of its ports, whether it
// is used or not.
type Candidate struct {
	// Endpoint has the port 0 with the exclusion NoPort.
	Endpoint
	// Port is the name of the Service's port.
	Port     string
	Protocol Protocol
	// Cluster, ForLocal and Draining tell in which lists of Backends it is.
	Cluster, ForLocal, Draining bool
	// Excluded is why it is not in the list Cluster.
	Excluded Exclusion
	// SlicePorts are the ports of the slices that have the endpoint, if none of these is Port.
	SlicePorts string
}

// Exclusion is why the traffic policy Cluster does not use an endpoint.
type Exclusion uint8

// The exclusions.
const (
	// NotExcluded means that the endpoint is used.
	NotExcluded Exclusion = iota
	// NotReady means that the condition ready is false.
	NotReady
	// Terminating means that its pod is being deleted, and that others are ready or it does
	// not serve any more.
	Terminating
	// OtherNode means that it has hints for other nodes, and others have hints for this one.
	OtherNode
	// OtherZone means that it has hints for other zones, and others have hints for this node's.
	OtherZone
	// NoPort means that no slice has it with a port of the name and protocol of the Service's.
	NoPort
)

// Why returns why traffic under the policy Local, or else Cluster, does not reach the endpoint;
// nothing if it does.
func (c *Candidate) Why(local bool) string {
	switch {
	case c.Excluded == NoPort:
		return fmt.Sprintf("no EndpointSlice has it with port %s: the slices have %s; compare the Service's targetPort with the names of its pods' ports",
			portText(c.Port, c.Protocol), c.SlicePorts)
	case local && c.ForLocal:
		return ""
	case local && !c.Local:
		return "on another node (traffic policy Local)"
	}
	switch c.Excluded {
	case NotExcluded:
		if !local {
			return ""
		}
		return "not ready" // another one on this node is
	case NotReady:
		return "not ready"
	case Terminating:
		return "terminating"
	case OtherNode:
		return "hinted to other nodes"
	case OtherZone:
		return "hinted to other zones"
	default:
		return "unknown reason"
	}
}

// portText returns a port of a slice as text, such as "http/tcp".
func portText(name string, protocol Protocol) string {
	if name == "" {
		name = "(no name)"
	}
	return name + "/" + protocol.String()
}

// Candidates returns the endpoints of a Service's ports, by port, family and address. It is
// about the events so far; Service is about those before the last Refresh. Its cost is that of
// all endpoints of the Service. ok is false if the Service does not exist.
func (m *Model) Candidates(key Key) (out []Candidate, ok bool) {
	r := m.records[key]
	if r == nil || r.parsed == nil {
		return nil, false
	}
	for i := range r.parsed.ports {
		p := &r.parsed.ports[i]
		for f := range NumFamilies {
			width := widths[f]
			all := withoutRepeats(m.merged(r, source{name: p.name, protocol: p.protocol, family: f}), width)
			c := count(all, width)
			chosen := c.choose(r.parsed, p)
			first := len(out)
			for j := range all {
				t := flags(all[j][width-1])
				out = append(out, Candidate{
					Endpoint: Endpoint{Addr: unpack(string(all[j][:width])), Local: t.local()},
					Port:     p.name.Value(), Protocol: p.protocol,
					Cluster: chosen.inCluster(t), ForLocal: chosen.inLocal(t), Draining: chosen.inDraining(t),
					Excluded: chosen.excluded(t),
				})
			}
			out = m.appendOthers(out, first, r, source{name: p.name, protocol: p.protocol, family: f})
		}
	}
	return out, true
}

// appendOthers appends the endpoints of slices without the port of a source. Those that a slice
// has with the port begin at first.
func (m *Model) appendOthers(out []Candidate, first int, r *record, of source) []Candidate {
	have := make(map[netip.Addr]bool)
	for _, c := range out[first:] {
		have[c.Addr.Addr()] = true
	}
	var ports []string
	var others []packedEndpoint
	for s := r.slices; s != nil; s = s.next {
		if s.family != of.family || slices.ContainsFunc(s.ports, func(p slicePort) bool { return p.name == of.name && p.protocol == of.protocol }) {
			continue
		}
		others = s.gather(others, 0, m.zoneFlags(s))
		for _, p := range s.ports {
			ports = append(ports, portText(p.name.Value(), p.protocol))
		}
	}
	slices.Sort(ports)
	text := strings.Join(slices.Compact(ports), ", ")
	if text == "" {
		text = "none"
	}
	slices.SortFunc(others, comparePacked)
	for i := range others {
		e := others[i][:widths[of.family]]
		addr := unpack(string(e))
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

// excluded returns why an endpoint with these flags is not in the list Cluster.
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

// Proto returns the message of a candidate.
func (c *Candidate) Proto() *modelpb.Candidate {
	return &modelpb.Candidate{
		PortName: c.Port, Protocol: uint32(c.Protocol),
		Endpoint: &modelpb.Endpoint{Address: c.Addr.Addr().AsSlice(), Port: uint32(c.Addr.Port()), Local: c.Local},
		Cluster:  c.Cluster, Local: c.ForLocal, Draining: c.Draining, Excluded: modelpb.Exclusion(c.Excluded), SlicePorts: c.SlicePorts,
	}
}

// CandidateFromProto returns the candidate of a message.
//
// Possible errors: one that names what is invalid.
func CandidateFromProto(m *modelpb.Candidate) (Candidate, error) {
	var d decoder
	e := m.GetEndpoint()
	c := Candidate{
		Endpoint: Endpoint{Addr: netip.AddrPortFrom(d.addr(e.GetAddress()), d.optionalPort(e.GetPort())), Local: e.GetLocal()},
		Port:     m.GetPortName(), Protocol: d.protocol(m.GetProtocol()),
		Cluster: m.GetCluster(), ForLocal: m.GetLocal(), Draining: m.GetDraining(), Excluded: Exclusion(m.GetExcluded()), SlicePorts: m.GetSlicePorts(), //nolint:gosec // few values
	}
	return c, d.err
}
