package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
)

// ungranted is what a fragment shares with other publishers in one table, if they declared
// it first, without a grant for it.
type ungranted struct {
	table nft.TableID
	// parts are in nft's words, such as "chain input".
	parts []string
	// publishers may use the table too.
	publishers []string
	// where is the line that decides.
	where string
}

// ungrantedParts returns the parts of an update for which a publisher would need a grant, in
// the tables that other publishers of the configuration may use. Without a daemon it is not
// known who declared them first.
func ungrantedParts(policy *access.Policy, p *access.Publisher, update *desired.Update) []ungranted {
	var all []ungranted
	for i := range update.Tables {
		tu := &update.Tables[i]
		u := ungranted{table: tu.Table, publishers: othersOf(policy, p, tu.Table)}
		if len(u.publishers) == 0 {
			continue
		}
		for _, at := range tu.Parts() {
			if p.Shared(at.Table, at.Kind, at.Name, u.publishers[0]) == nil {
				continue
			}
			if at.Kind == "" {
				u.parts = append(u.parts, "flag dormant")
			} else {
				u.parts = append(u.parts, at.Kind+" "+at.Name)
			}
		}
		if len(u.parts) > 0 {
			u.where = p.Where("allow.shared")
			all = append(all, u)
		}
	}
	return all
}

// othersOf returns the other publishers of the configuration that may use a table.
func othersOf(policy *access.Policy, p *access.Publisher, table nft.TableID) []string {
	var names []string
	for _, other := range policy.Publishers {
		if other != p && other.Table(table) == nil {
			names = append(names, other.Name)
		}
	}
	return names
}

// printUngranted prints what a fragment is admitted without only as long as no other
// publisher declared it first.
func printUngranted(w io.Writer, all []ungranted) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "It would be refused if another publisher declared one of these parts first (weft plan asks the daemon):")
	for _, u := range all {
		fmt.Fprintf(w, "  table %s, which %s may use: %s: no grant names %s (%s)\n", u.table, strings.Join(u.publishers, ", "),
			strings.Join(u.parts, ", "), map[bool]string{true: "it", false: "them"}[len(u.parts) == 1], u.where)
	}
}
