package model

import (
	"cmp"
	"errors"
	"slices"

	"github.com/weft-proxy/weft/frontends/source/network"
)

var errPortOrder = errors.New("the last port is lower than the first")

func parsePortRange(p Protocol, first, last int32) (PortRange, error) {
	from, err := network.ParsePort(first)
	if err != nil {
		return PortRange{}, err
	}
	to, err := network.ParsePort(last)
	if err != nil {
		return PortRange{}, err
	}
	if to < from {
		return PortRange{}, errPortOrder
	}
	return PortRange{Protocol: p, First: from, Last: to}, nil
}

// MergePorts sorts ranges in place, and joins overlapping and adjacent ones of a protocol.
func MergePorts(in []PortRange) []PortRange {
	// The range of all ports of a protocol comes first.
	slices.SortFunc(in, func(a, b PortRange) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	out := in[:0]
	for _, r := range in {
		if n := len(out); n > 0 && out[n-1].Protocol == r.Protocol {
			last := &out[n-1]
			if last.First == 0 {
				continue
			}
			if int(r.First) <= int(last.Last)+1 {
				last.Last = max(last.Last, r.Last)
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
