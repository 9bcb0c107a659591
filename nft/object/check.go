package object

import (
	"cmp"
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

var start = syntax.Pos{Line: 1, Column: 1}

func check(family nft.Family, body syntax.ObjectBody) error {
	problem := ""
	switch o := body.(type) {
	case *syntax.Limit:
		if o.Per == "" {
			problem = "a limit has a rate: write one such as rate 10/second"
		}
	case *syntax.HelperBody:
		switch {
		case o.Type == "":
			problem = `a ct helper has a type and a protocol: write them such as type "ftp" protocol tcp`
		case o.L3Proto == "arp" || o.L3Proto == "" && family == nft.FamilyARP:
			problem = "a ct helper is not possible for family arp"
		}
	case *syntax.TimeoutBody:
		if o.Protocol == "" {
			problem = "a ct timeout has a protocol: write protocol tcp or protocol udp"
		}
	case *syntax.ExpectationBody:
		return checkExpectation(family, o)
	case *syntax.SecMarkBody:
		if o.Context == "" {
			problem = `a secmark has a security context: write it in double quotes, such as "system_u:object_r:ssh_server_packet_t:s0"`
		}
	case *syntax.Counter, *syntax.Quota, *syntax.SynProxyBody:
	default:
		return fmt.Errorf("unknown kind of object %T", body)
	}
	if problem != "" {
		return syntax.ErrorAt(start, "%s", problem)
	}
	return nil
}

func checkExpectation(family nft.Family, o *syntax.ExpectationBody) error {
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

// align removes allowed differences.
func align(a, b syntax.ObjectBody) {
	switch x := a.(type) {
	case *syntax.Counter:
		*x, *b.(*syntax.Counter) = syntax.Counter{}, syntax.Counter{}
	case *syntax.Quota:
		x.UsedUnit, b.(*syntax.Quota).UsedUnit = "", ""
	case *syntax.HelperBody:
		// The kernel reports a helper for inet with the family in which it found the helper.
		if y := b.(*syntax.HelperBody); x.L3Proto == "inet" || y.L3Proto == "inet" {
			x.L3Proto, y.L3Proto = "", ""
		}
	}
}
