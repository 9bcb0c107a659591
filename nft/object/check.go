package object

import (
	"cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// start is the position of errors about what an object lacks.
var start = syntax.Pos{Line: 1, Column: 1}

func checkLimit(_ nft.Family, body syntax.ObjectBody) error {
	if body.(*syntax.Limit).Per == "" {
		return syntax.ErrorAt(start, "a limit has a rate: write one such as rate 10/second")
	}
	return nil
}

func checkHelper(family nft.Family, body syntax.ObjectBody) error {
	switch o := body.(*syntax.HelperBody); {
	case o.Type == "":
		return syntax.ErrorAt(start, `a ct helper has a type and a protocol: write them such as type "ftp" protocol tcp`)
	case o.L3Proto == "arp" || o.L3Proto == "" && family == nft.FamilyARP:
		return syntax.ErrorAt(start, "a ct helper is not possible for family arp")
	}
	return nil
}

func checkTimeout(_ nft.Family, body syntax.ObjectBody) error {
	if body.(*syntax.TimeoutBody).Protocol == "" {
		return syntax.ErrorAt(start, "a ct timeout has a protocol: write protocol tcp or protocol udp")
	}
	return nil
}

func checkExpectation(family nft.Family, body syntax.ObjectBody) error {
	o := body.(*syntax.ExpectationBody)
	for _, a := range []struct {
		name    string
		missing bool
	}{{"protocol", o.Protocol == ""}, {"dport", o.DPort == 0}, {"timeout", o.Timeout == 0}, {"size", o.Size == 0}} {
		if a.missing {
			return syntax.ErrorAt(start, "a ct expectation has protocol, dport, timeout and size, and none of them is 0: missing %s", a.name)
		}
	}
	if l3proto := cmp.Or(o.L3Proto, family.String()); l3proto != "ip" && l3proto != "ip6" {
		return syntax.ErrorAt(start, "a ct expectation is not possible for family %s: add l3proto ip or l3proto ip6", l3proto)
	}
	return nil
}

func checkSecMark(_ nft.Family, body syntax.ObjectBody) error {
	if body.(*syntax.SecMarkBody).Context == "" {
		return syntax.ErrorAt(start, `a secmark has a security context: write it in double quotes, such as "system_u:object_r:ssh_server_packet_t:s0"`)
	}
	return nil
}

// alignCounters ignores what has been counted.
func alignCounters(a, b syntax.ObjectBody) {
	*a.(*syntax.Counter) = syntax.Counter{}
	*b.(*syntax.Counter) = syntax.Counter{}
}

// alignQuotas ignores what has been used.
func alignQuotas(a, b syntax.ObjectBody) {
	a.(*syntax.Quota).UsedUnit = ""
	b.(*syntax.Quota).UsedUnit = ""
}

// alignHelpers makes a helper for inet equal to one for the family in which the
// kernel has found the helper.
func alignHelpers(a, b syntax.ObjectBody) {
	x, y := a.(*syntax.HelperBody), b.(*syntax.HelperBody)
	if x.L3Proto == "inet" || y.L3Proto == "inet" {
		x.L3Proto, y.L3Proto = "", ""
	}
}
