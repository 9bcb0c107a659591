package render

import (
	"maps"
	"slices"
)

// uses counts references to keys and records the keys that became used or unused since the last changed.
type uses[K comparable] struct {
	compare func(a, b K) int
	count   map[K]int
	before  map[K]bool
}

func newUses[K comparable](compare func(a, b K) int) uses[K] {
	return uses[K]{compare: compare, count: make(map[K]int), before: make(map[K]bool)}
}

func (u *uses[K]) add(k K, by int) {
	n := u.count[k]
	if _, seen := u.before[k]; !seen {
		u.before[k] = n > 0
	}
	if n += by; n == 0 {
		delete(u.count, k)
		return
	}
	u.count[k] = n
}

func (u *uses[K]) changed() (began, ended []K) {
	for k, had := range u.before {
		switch has := u.count[k] > 0; {
		case has && !had:
			began = append(began, k)
		case had && !has:
			ended = append(ended, k)
		}
	}
	if len(u.before) > 0 {
		// Clearing or ranging over a map costs its past maximum size.
		u.before = make(map[K]bool)
	}
	slices.SortFunc(began, u.compare)
	slices.SortFunc(ended, u.compare)
	return began, ended
}

func (u *uses[K]) keys() []K {
	out := slices.AppendSeq(make([]K, 0, len(u.count)), maps.Keys(u.count))
	slices.SortFunc(out, u.compare)
	return out
}

// onDemand are chains declared on first use. Unused chains stay until Cleanup: before kernel 6.2 a deleted
// element keeps its chain busy for a moment.
type onDemand[K comparable] struct {
	uses[K]
	idle map[K]struct{}
}

func newOnDemand[K comparable](compare func(a, b K) int) onDemand[K] {
	return onDemand[K]{uses: newUses(compare), idle: make(map[K]struct{})}
}

func (d *onDemand[K]) update(declare func(K)) {
	began, ended := d.changed()
	for _, k := range began {
		if _, declared := d.idle[k]; declared {
			delete(d.idle, k)
		} else {
			declare(k)
		}
	}
	for _, k := range ended {
		d.idle[k] = struct{}{}
	}
}

func (d *onDemand[K]) declared() []K {
	all := maps.Clone(d.idle)
	for k := range d.count {
		all[k] = struct{}{}
	}
	return slices.SortedFunc(maps.Keys(all), d.compare)
}

func (d *onDemand[K]) takeIdle() []K {
	out := slices.SortedFunc(maps.Keys(d.idle), d.compare)
	d.idle = make(map[K]struct{})
	return out
}
