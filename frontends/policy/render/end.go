package render

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// end is what leads to the chains of a pod: an address, or the host's end of its interface.
// One of the two is set.
type end struct {
	addr netip.Addr
	link string
}

// at is the end with an address.
func at(a netip.Addr) end { return end{addr: a} }

// key is its key in maps and sets.
func (e end) key() string {
	if e.link != "" {
		return `"` + e.link + `"`
	}
	return e.addr.String()
}

// chains is the name of the map from such ends to the chains of a direction.
func (e end) chains(l lookup) string {
	if e.link != "" {
		return mapNames[l] + linkSuffix
	}
	return mapNames[l]
}

// lookups is the number of maps that have such ends: those of interfaces are about connections.
func (e end) lookups() lookup {
	if e.link != "" {
		return untracked
	}
	return numLookups
}

// linkSuffix ends the name of a map or set whose keys are interfaces.
const linkSuffix = "-links"

func compareEnds(a, b end) int {
	return cmp.Or(a.addr.Compare(b.addr), strings.Compare(a.link, b.link))
}

// ends returns those of a pod in a table. The interface is one of both tables, whatever
// addresses the status of the pod has; a port of a bridge is one of the table of bridges.
func (t *table) ends(pod *model.Pod) (out []end) {
	if pod == nil {
		return nil
	}
	for _, a := range pod.Addresses {
		if t.has(a) {
			out = append(out, at(a))
		}
	}
	if pod.Link.Name != "" && !pod.Link.Bridged {
		out = append(out, end{link: pod.Link.Name})
	}
	return out
}
