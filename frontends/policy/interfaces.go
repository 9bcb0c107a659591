package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	// A shorter time is not reported: pods start before their interface exists.
	interfaceGrace = 30 * time.Second
	maxInterfaces  = 5
)

type unlinked struct {
	name  string
	since time.Time
}

// noteLinks notes since when interfaces are unknown. The lock of the state is held.
func (f *Frontend) noteLinks(pods []model.PodChange) {
	for _, c := range pods {
		pod := cmp.Or(c.New, c.Old)
		if c.New == nil || pod.Link.Name != "" || len(pod.Policies[model.Ingress])+len(pod.Policies[model.Egress]) == 0 {
			delete(f.unlinked, pod.UID)
		} else if f.unlinked[pod.UID].name == "" {
			f.unlinked[pod.UID] = unlinked{pod.Name.String(), f.cfg.Now()}
		}
	}
}

// Interfaces returns an error about pods with policies and an interface unknown for long.
func (f *Frontend) Interfaces() error {
	var names []string
	f.state.mu.Lock()
	for _, u := range f.unlinked {
		if f.cfg.Now().Sub(u.since) > interfaceGrace {
			names = append(names, u.name)
		}
	}
	f.state.mu.Unlock()
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	if n := len(names) - maxInterfaces; n > 0 {
		names = append(names[:maxInterfaces], fmt.Sprintf("%d more", n))
	}
	return fmt.Errorf("network policies: the interfaces of pods are not known: %s: policies hold for the addresses of these pods only", strings.Join(names, ", "))
}
