package render

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// end is a key to the chains of a pod: an address, or the host's end of the interface.
type end struct {
	addr netip.Addr
	link string
}

func at(a netip.Addr) end { return end{addr: a} }

func (e end) key() string {
	if e.link != "" {
		return `"` + e.link + `"`
	}
	return e.addr.String()
}

func (e end) chains(l lookup) string {
	if e.link != "" {
		return mapNames[l] + linkSuffix
	}
	return mapNames[l]
}

// lookups excludes untracked for interfaces, whose maps are only about connections.
func (e end) lookups() lookup {
	if e.link != "" {
		return untracked
	}
	return numLookups
}

const linkSuffix = "-links"

func compareEnds(a, b end) int {
	return cmp.Or(a.addr.Compare(b.addr), strings.Compare(a.link, b.link))
}

// An interface is in both tables, regardless of the pod's addresses, a bridge port in the table of
// bridges.
func (f *family) ends(pod *model.Pod) (out []end) {
	if pod == nil {
		return nil
	}
	for _, a := range pod.Addresses {
		if f.has(a) {
			out = append(out, at(a))
		}
	}
	if pod.Link.Name != "" && !pod.Link.Bridged {
		out = append(out, end{link: pod.Link.Name})
	}
	return out
}
