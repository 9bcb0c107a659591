package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// pause is longer than a change takes from the API to the kernel.
const pause = 500 * time.Millisecond

type difference struct {
	sort differenceSort
	// the address and port, or the endpoint
	what, service string
}

type differenceSort int

const (
	// The kernel lacks missingListener; leftListener has no Service.
	missingListener differenceSort = iota
	leftListener
	// The rules do not use missingEndpoint; wrongEndpoint is not of the Service.
	missingEndpoint
	wrongEndpoint
)

// checkDisagree compares Services with elements in the kernel, twice to ignore updates in progress.
func checkDisagree(ctx context.Context, n *node, r *findings) error {
	state, err := n.services()
	if err != nil {
		return err
	}
	if state.Revision == 0 {
		return nil
	}
	kernel, err := readElements()
	if err != nil {
		return err
	}
	families := publish.Families(filepath.Join(n.Root, "proc"))
	found := differences(state, kernel, families)
	if len(found) == 0 {
		return nil
	}
	if !cli.Pause(ctx, pause) {
		return fmt.Errorf("the Services of the API and the kernel differ in %d places, and there was no time to look whether that lasts", len(found))
	}
	if state, err = n.readServices(ctx); err != nil {
		return err
	}
	if kernel, err = readElements(); err != nil {
		return err
	}
	lasting := make(map[difference]bool)
	for _, d := range differences(state, kernel, families) {
		lasting[d] = true
	}
	r.describe(slices.DeleteFunc(found, func(d difference) bool { return !lasting[d] }))
	return nil
}

// differences compares all families; without weft's table a family has no elements.
func differences(state *model.Snapshot, kernel *elements, families [model.NumFamilies]bool) (out []difference) {
	var known [model.NumFamilies]map[string]bool
	for family := range known {
		known[family] = make(map[string]bool)
	}
	for _, s := range state.Services {
		for i := range s.Ports {
			for family := range model.NumFamilies {
				if !families[family] || !s.ClusterIPs[family].IsValid() {
					continue
				}
				t := &kernel[family]
				for _, l := range listenersOf(s, &s.Ports[i], family) {
					known[family][l.key] = true
					if !t.listeners[l.key] {
						out = append(out, difference{missingListener, l.key, s.Name.String()})
					} else if s.Affinity == 0 {
						out = l.compare(out, s.Name.String(), t.slots[l.key])
					}
				}
			}
		}
	}
	for family, t := range kernel {
		var left []difference
		for key := range t.listeners {
			if !known[family][key] {
				left = append(left, difference{sort: leftListener, what: key})
			}
		}
		slices.SortFunc(left, func(a, b difference) int { return strings.Compare(a.what, b.what) })
		out = append(out, left...)
	}
	return out
}

// listener is an address and port, or a NodePort.
type listener struct {
	// the key of elements, as nft writes it
	key string
	// the necessary and the possible endpoints
	main     model.Endpoints
	backends *model.Backends
}

func listenersOf(s *model.Service, p *model.Port, family model.Family) (out []listener) {
	b := &p.Backends[family]
	for i, key := range get.ElementKeys(p, family) {
		main := b.Cluster
		if i == 0 && p.ClusterIPs[family].IsValid() && s.InternalLocal {
			main = b.Local
		}
		out = append(out, listener{key, main, b})
	}
	return out
}

func (l *listener) compare(out []difference, service string, slots []string) []difference {
	may := make(map[string]bool)
	for _, list := range []model.Endpoints{l.backends.Cluster, l.backends.Local, l.backends.Draining} {
		for e := range list.All() {
			may[endpointText(e)] = true
		}
	}
	has := make(map[string]bool, len(slots))
	for _, slot := range slots {
		has[slot] = true
		if !may[slot] {
			out = append(out, difference{wrongEndpoint, slot + " for " + l.key, service})
		}
	}
	for e := range l.main.All() {
		if text := endpointText(e); !has[text] {
			out = append(out, difference{missingEndpoint, text + " for " + l.key, service})
		}
	}
	return out
}

func endpointText(e model.Endpoint) string {
	return fmt.Sprintf("%s . %d", e.Addr.Addr(), e.Addr.Port())
}

func (r *findings) describe(found []difference) {
	const restart = "Look at weft's log for updates that were rejected (`weft get`), and restart weft: at its start it compares the kernel with the API, and writes what differs"
	for sort, f := range [...]struct{ found, meaning, remedy string }{
		missingListener: {"%d addresses of Services in the API are not in the kernel: %s", "Connections to them are not forwarded on this node", restart},
		leftListener: {
			"%d addresses in weft's maps are of no Service: %s", "Connections to them are forwarded or rejected, although no Service has them any more",
			"`weft get element ip weft services KEY` names the fragment: withdraw it if another publisher has it; if it is of before weft's start, restart weft",
		},
		missingEndpoint: {"%d endpoints of Services in the API are not in the kernel: %s", "They get no connections from this node", restart},
		wrongEndpoint: {
			"%d endpoints in the kernel are not endpoints of their Services: %s", "Connections that are given to them fail, or reach another program",
			"`weft get element ip weft endpoints KEY` names the fragment: withdraw it if it is not services/services, and restart weft otherwise",
		},
	} {
		var names []string
		for _, d := range found {
			if d.sort != differenceSort(sort) {
				continue
			}
			name := d.what
			if d.service != "" {
				name += " of " + d.service
			}
			names = append(names, name)
		}
		r.addSome(names, f.found, f.meaning, f.remedy)
	}
}
