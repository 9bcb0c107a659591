package main

import (
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// formatFragment prints a fragment as a .nft file.
func formatFragment(f *weftv1.Fragment) (string, error) {
	tables := make([]nft.Table, 0, len(f.GetTables()))
	for _, t := range f.GetTables() {
		family, err := nft.ParseFamily(t.GetFamily())
		if err != nil {
			return "", fmt.Errorf("format fragment %s: %w", f.GetName(), err)
		}
		table := nft.Table{Family: family, Name: t.GetName(), Comment: t.GetComment()}
		for _, c := range t.GetChains() {
			table.Chains = append(table.Chains, chainOf(c))
		}
		for _, s := range t.GetSets() {
			table.Sets = append(table.Sets, setOf(s))
		}
		for _, m := range t.GetMaps() {
			table.Maps = append(table.Maps, nft.Map(setOf(m)))
		}
		tables = append(tables, table)
	}
	return syntax.FormatFile(tables), nil
}

func chainOf(c *weftv1.Chain) nft.Chain {
	chain := nft.Chain{
		Name: c.GetName(), Type: c.GetType(), Hook: c.GetHook(), Priority: c.GetPriority(),
		Policy: c.GetPolicy(), Device: c.GetDevice(), Comment: c.GetComment(),
	}
	for _, r := range c.GetRules() {
		chain.Rules = append(chain.Rules, nft.Rule{Text: r.GetText(), Comment: r.GetComment()})
	}
	return chain
}

func setOf(s *weftv1.Set) nft.Set {
	set := nft.Set{
		Name: s.GetName(), Type: s.GetType(), TypeOf: s.GetTypeof(), Flags: s.GetFlags(),
		Timeout: s.GetTimeout().AsDuration(), GCInterval: s.GetGcInterval().AsDuration(), Size: s.GetSize(),
		Policy: s.GetPolicy(), AutoMerge: s.GetAutoMerge(), Comment: s.GetComment(),
	}
	for _, e := range s.GetElements() {
		set.Elements = append(set.Elements, nft.Element{
			Key: e.GetKey(), Value: e.GetValue(), Comment: e.GetComment(),
			Timeout: time.Duration(e.GetTimeoutMs()) * time.Millisecond,
		})
	}
	return set
}
