package syntax

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// newer has the version of nft that brought what begins with one or two words, for all that nft
// 1.0.6 does not have and weft does not either. LANGUAGE.md has the reasons.
var newer = map[[2]string]string{
	{"last"}:              "1.0.7",
	{"vxlan"}:             "1.0.7",
	{"geneve"}:            "1.0.7",
	{"gre"}:               "1.0.7",
	{"gretap"}:            "1.0.7",
	{"meta", "broute"}:    "1.0.7",
	{"icmpv6", "taddr"}:   "1.0.9",
	{"icmpv6", "daddr"}:   "1.0.9",
	{"timeout", "never"}:  "1.1.1",
	{"expires", "never"}:  "1.1.1",
	{"tunnel"}:            "1.1.6",
	{"meta", "ibrhwaddr"}: "1.1.6",
}

// Newer returns why a file cannot contain what two words begin, or "" if that is not because it
// is new in nft.
func Newer(word, next scan.Token) string {
	if word.Kind != scan.Ident {
		return ""
	}
	text := word.Text
	version := newer[[2]string{text}]
	if version == "" && next.Kind == scan.Ident {
		text += " " + next.Text
		version = newer[[2]string{word.Text, next.Text}]
	}
	if version == "" {
		return ""
	}
	return fmt.Sprintf("nft %s has %s; weft does not", version, text)
}

// refuseNewer fails at the current token if it begins what only later versions of nft have.
func (p *parser) refuseNewer() {
	if why := Newer(p.Tok, p.Ahead); why != "" {
		p.Fail(p.Tok, "%s", why)
	}
}
