package admission

import (
	"fmt"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
)

// An accept ends only its own base chain: a later drop still drops the packet. Package access
// describes honoured accepts.

func honoured(p *access.Publisher, r *compile.Rule, scope compile.Scope) (*compile.Rule, error) {
	if p == nil || p.Honoured == 0 || !filters(r.Family) || !accepts(r) {
		return r, nil
	}
	set := fmt.Sprintf("meta mark set meta mark | 0x%08x accept", p.Honoured)
	rest, ok := strings.CutSuffix(r.Text, "accept")
	if !ok || strings.HasSuffix(r.Text, set) {
		return r, nil
	}
	return compile.CompileRule(r.Family, nft.Rule{Text: rest + set, Comment: r.Comment}, scope)
}

// accepts reports whether a rule ends in the verdict accept.
func accepts(r *compile.Rule) bool {
	if len(r.Exprs) == 0 {
		return false
	}
	last, ok := r.Exprs[len(r.Exprs)-1].(expr.Library)
	if !ok {
		return false
	}
	v, ok := last.Any.(*google.Verdict)
	return ok && v.Kind == google.VerdictAccept
}

// honouring returns the first rule for a base chain of a publisher that honours accepts, else nil.
func honouring(p *access.Publisher, family nft.Family, decl *object.Chain) (*compile.Rule, error) {
	if p == nil || p.Accept == nil || !filters(family) || decl == nil || decl.Base == nil || decl.Base.Type != "filter" {
		return nil, nil //nolint:nilnil // see above
	}
	switch decl.Base.Hook {
	case unix.NF_INET_LOCAL_IN, unix.NF_INET_FORWARD, unix.NF_INET_LOCAL_OUT:
	default:
		return nil, nil //nolint:nilnil // see above
	}
	return compile.CompileRule(family, nft.Rule{
		Text:    fmt.Sprintf("meta mark & 0x%08x == 0x%08x accept", p.Accept.Mark, p.Accept.Mark),
		Comment: "weft: accepted by publishers that " + p.Name + " honours",
	}, nil)
}

// filters reports whether tables of a family see packets of IPv4 or IPv6.
func filters(f nft.Family) bool {
	return f == nft.FamilyIP || f == nft.FamilyIP6 || f == nft.FamilyInet
}
