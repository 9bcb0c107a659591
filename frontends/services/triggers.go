package services

import (
	"slices"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// maxTriggers bounds the triggers that wait for a commit, which may not come for long.
const maxTriggers = 1000

// trigger is the time of a change of endpoints in the cluster.
type trigger struct {
	at       time.Time
	families [model.Families]bool
}

// triggers are those that no commit carries: the oldest, which wait longest.
type triggers struct{ list []trigger }

// add adds the triggers of a change. The model has no family for them: they count for
// the families whose endpoints the change is about.
func (t *triggers) add(c *model.Changes) {
	if len(c.Triggers) == 0 {
		return
	}
	var families [model.Families]bool
	for i := range c.Services {
		for f := range families {
			families[f] = families[f] || endpointsDiffer(c.Services[i].Old, c.Services[i].New, f)
		}
	}
	for _, at := range c.Triggers[:min(len(c.Triggers), maxTriggers-len(t.list))] {
		t.list = append(t.list, trigger{at, families})
	}
}

// endpointsDiffer reports whether the endpoints of one family differ.
func endpointsDiffer(old, now *model.Service, family int) bool {
	of := func(s *model.Service) (out []model.Backends) {
		if s != nil {
			for i := range s.Ports {
				out = append(out, s.Ports[i].Backends[family])
			}
		}
		return out
	}
	a, b := of(old), of(now)
	// A port without endpoints does not make a difference.
	empty := func(b model.Backends) bool { return b.Empty() }
	a, b = slices.DeleteFunc(a, empty), slices.DeleteFunc(b, empty)
	return !slices.EqualFunc(a, b, func(x, y model.Backends) bool { return x.Equal(&y) })
}
