package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// Findings returns what package lint finds in all files together, the rules of context included. If there
// are several files, each that is not context is a party of its own.
func (r *Result) Findings() ([]lint.Finding, error) {
	m := merger{owners: make(map[ruleset.DeclarationID][]string)}
	for _, u := range r.units {
		owner := ""
		if !u.Context && len(r.units) > 1 {
			owner = strings.TrimSuffix(filepath.Base(u.Name), ".nft")
		}
		for i := range u.parsed {
			m.add(&u.parsed[i], owner)
		}
	}
	rules, err := load.Tables(m.tables)
	if err != nil {
		return nil, fmt.Errorf("look for findings: %w", err)
	}
	for i := range rules.Tables {
		t := &rules.Tables[i]
		for j := range t.Chains {
			c := &t.Chains[j]
			owners := m.owners[ruleset.DeclarationID{Table: t.ID, Kind: "chain", Name: c.Decl.Name}]
			c.Owner, owners = owners[0], owners[1:]
			for k := range c.Rules {
				c.Rules[k].Owner = owners[k]
			}
		}
		for j := range t.Sets {
			t.Sets[j].Owner = m.owners[ruleset.DeclarationID{Table: t.ID, Kind: "set", Name: t.Sets[j].Decl.Name}][0]
		}
	}
	return lint.Run(rules, lint.Options{Needs: lint.NodeNeeds}), nil
}

// merger joins the tables of files.
type merger struct {
	tables []nft.Table
	// owners are those of a chain and of its rules, in order, and those of a set.
	owners map[ruleset.DeclarationID][]string
}

// add adds the table of a file.
func (m *merger) add(t *nft.Table, owner string) {
	i := slices.IndexFunc(m.tables, func(o nft.Table) bool { return o.ID() == t.ID() })
	if i < 0 {
		i = len(m.tables)
		m.tables = append(m.tables, nft.Table{Family: t.Family, Name: t.Name, Flags: t.Flags})
	}
	to := &m.tables[i]
	for _, c := range t.Chains {
		id := ruleset.DeclarationID{Table: t.ID(), Kind: "chain", Name: c.Name}
		at := slices.IndexFunc(to.Chains, func(o nft.Chain) bool { return o.Name == c.Name })
		if at < 0 {
			at = len(to.Chains)
			declaration := c
			declaration.Rules = nil
			to.Chains = append(to.Chains, declaration)
			m.owners[id] = []string{owner}
		} else if to.Chains[at].Hook == "" {
			// The other file declared it without its hook.
			rules := to.Chains[at].Rules
			to.Chains[at] = c
			to.Chains[at].Rules = rules
			m.owners[id][0] = owner
		}
		to.Chains[at].Rules = append(to.Chains[at].Rules, c.Rules...)
		for range c.Rules {
			m.owners[id] = append(m.owners[id], owner)
		}
	}
	for _, s := range t.Sets {
		to.Sets = m.addSet(to.Sets, t.ID(), s, owner)
	}
	for _, s := range t.Maps {
		maps := cli.Map(to.Maps, func(s nft.Map) nft.Set { return nft.Set(s) })
		to.Maps = cli.Map(m.addSet(maps, t.ID(), nft.Set(s), owner), func(s nft.Set) nft.Map { return nft.Map(s) })
	}
	to.Objects = append(to.Objects, t.Objects...)
	to.Flowtables = append(to.Flowtables, t.Flowtables...)
}

// addSet adds a set, or the elements of one that is there.
func (m *merger) addSet(all []nft.Set, table nft.TableID, s nft.Set, owner string) []nft.Set {
	i := slices.IndexFunc(all, func(o nft.Set) bool { return o.Name == s.Name })
	if i < 0 {
		m.owners[ruleset.DeclarationID{Table: table, Kind: "set", Name: s.Name}] = []string{owner}
		return append(all, s)
	}
	there := make(map[string]bool, len(all[i].Elements))
	for _, e := range all[i].Elements {
		there[e.Key] = true
	}
	for _, e := range s.Elements {
		if !there[e.Key] {
			all[i].Elements = append(all[i].Elements[:len(all[i].Elements):len(all[i].Elements)], e)
		}
	}
	return all
}
