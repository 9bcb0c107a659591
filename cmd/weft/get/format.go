package get

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// formatFragment prints a fragment as a .nft file.
func formatFragment(f *weftv1.Fragment) (string, error) {
	tables := make([]nft.Table, 0, len(f.GetTables()))
	for _, t := range f.GetTables() {
		family, err := nft.ParseFamily(t.GetFamily())
		if err != nil {
			return "", fmt.Errorf("format fragment %s: %w", f.GetName(), err)
		}
		table := nft.Table{Family: family, Name: t.GetName(), Comment: t.GetComment(), Flags: t.GetFlags()}
		for _, o := range t.GetObjects() {
			table.Objects = append(table.Objects, objectOf(o))
		}
		for _, f := range t.GetFlowtables() {
			table.Flowtables = append(table.Flowtables, flowtableOf(f))
		}
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
	return ruleset.Format(tables), nil
}

func objectOf(o *weftv1.Object) nft.Object {
	return nft.Object{Kind: nft.ObjectKind(o.GetKind()), Name: o.GetName(), Text: o.GetText(), Comment: o.GetComment()}
}

func flowtableOf(f *weftv1.Flowtable) nft.Flowtable {
	return nft.Flowtable{
		Name: f.GetName(), Hook: f.GetHook(), Priority: f.GetPriority(), Devices: f.GetDevices(), Flags: f.GetFlags(), Counter: f.GetCounter(),
	}
}

func chainOf(c *weftv1.Chain) nft.Chain {
	chain := nft.Chain{
		Name: c.GetName(), Type: c.GetType(), Hook: c.GetHook(), Priority: c.GetPriority(),
		Policy: c.GetPolicy(), Device: c.GetDevice(), Devices: c.GetDevices(), Flags: c.GetFlags(), Comment: c.GetComment(),
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
		Policy: s.GetPolicy(), AutoMerge: s.GetAutoMerge(), Stateful: s.GetStateful(), Comment: s.GetComment(),
	}
	for _, e := range s.GetElements() {
		set.Elements = append(set.Elements, nft.Element{
			Key: e.GetKey(), Value: e.GetValue(), Comment: e.GetComment(),
			Timeout: e.GetTimeout().AsDuration(),
			Expires: e.GetState().GetExpires().AsDuration(), Stateful: e.GetState().GetStateful(),
		})
	}
	return set
}
