package syntax

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// newer has the nft version of a construct by its first words; LANGUAGE.md has the reasons.
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

// Newer returns the reason to reject a construct of later nft versions, or "".
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

func (p *parser) refuseNewer() {
	if why := Newer(p.Tok, p.Ahead); why != "" {
		p.Fail(p.Tok, "%s", why)
	}
}
