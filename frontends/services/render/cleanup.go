package render

import (
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Cleanup implements publish.Cleaner.
func (r *Renderer) Cleanup() *weftv1.Patch {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &weftv1.Patch{Fragment: Fragment}
	for _, t := range r.tables {
		var chains []string
		for _, v := range t.picks.takeIdle() {
			chains = append(chains, v.chain())
		}
		chains = append(chains, slices.Sorted(maps.Keys(t.idleChains))...)
		for _, r := range t.hooks.takeIdle() {
			for _, h := range hooks[r] {
				chains = append(chains, h.name)
			}
		}
		t.idleChains = make(map[string]struct{})
		if len(chains) > 0 && t.on && !t.frozen.on {
			out.Tables = append(out.Tables, &weftv1.TablePatch{Family: t.names.table, Name: Table, DeleteChains: chains})
		}
	}
	if len(out.Tables) == 0 {
		return nil
	}
	return out
}
