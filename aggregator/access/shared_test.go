package access

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

func TestShared(t *testing.T) {
	p := mustParse(t, `publishers:
- name: cni
  match: {uid: 1}
  allow:
    shared:
    - {family: ip, table: filter, chains: [input, fw-*], objects: [quota-*]}
    - {table: "nat*", sets: ["*"]}
    - {family: ip, table: filter, flags: [dormant]}
- {name: plain, match: {uid: 2}}
`)
	cni, plain := p.Publisher("cni"), p.Publisher("plain")
	filter, nat := nft.TableID{Family: nft.FamilyIP, Name: "filter"}, nft.TableID{Family: nft.FamilyIP6, Name: "nat6"}
	for _, tt := range []struct {
		p          *Publisher
		table      nft.TableID
		kind, name string
		// want is the text of the refusal; "" means that there is none.
		want string
	}{
		{cni, filter, "chain", "input", ""},
		{cni, filter, "chain", "fw-new", ""},
		{cni, filter, "chain", "output", "publisher cni may not use chain output of table ip filter: publisher owner declared it first, and no grant names it (allow.shared at weft.yaml:7)"},
		{cni, filter, "set", "input", "publisher cni may not use set input of table ip filter"},
		{cni, filter, "quota", "quota-a", ""},
		{cni, filter, "flowtable", "quota-a", ""},
		{cni, filter, "counter", "other", "publisher cni may not use counter other of table ip filter"},
		{cni, filter, "", "", ""},
		{cni, nat, "map", "any", ""},
		{cni, nat, "set", "any", ""},
		{cni, nat, "chain", "any", "publisher cni may not use chain any of table ip6 nat6"},
		{cni, nat, "", "", "publisher cni may not make table ip6 nat6 dormant: publisher owner has fragments in it, and no grant names the flag (allow.shared at weft.yaml:7)"},
		{plain, filter, "chain", "input", "publisher owner declared it first, and no grant names it (no allow.shared at weft.yaml:11)"},
		{plain, filter, "chain", strings.Repeat("x", 100), "may not use chain " + strings.Repeat("x", 80) + "... of table ip filter"},
	} {
		r := tt.p.Shared(tt.table, tt.kind, tt.name, "owner")
		switch {
		case tt.want == "" && r != nil:
			t.Errorf("%s %s of %s: refused: %v", tt.kind, tt.name, tt.table, r)
		case tt.want != "" && (r == nil || !strings.Contains(r.Text, tt.want) || r.Limit != LimitShared || !errors.Is(r, ErrDenied)):
			t.Errorf("%s %s of %s: %v, want %s", tt.kind, tt.name, tt.table, r, tt.want)
		}
	}
}
