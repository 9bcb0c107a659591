package selector

import (
	"cmp"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Key is a key of a meta, ct, rt, socket or xfrm expression.
type Key struct {
	// after "ip " or "ip6 " if rules name the protocol
	Name string
	// older name in nft
	alias string
	Key   uint32
	// libnftnl's name if different
	dump  string
	Type  *datatype.Type
	Bits  uint32
	Order datatype.Order
	// of a meta key with a protocol's number, else 0
	Layer     Layer
	Direction directionUse
	// of a ct key, if any
	Protocol             *Header
	Settable, Unreadable bool
	// only in the bridge family
	Bridge bool
	// 0 or 1
	Flag bool
}

// Keys are the keys of an expression.
type Keys []Key

// ByName returns the key with a name or alias, or nil. l3 is "ip", "ip6" or "".
func (k Keys) ByName(l3, name string) *Key {
	return find(k, func(k *Key) bool {
		rest, ok := strings.CutPrefix(k.Name, l3)
		if l3 != "" && ok {
			rest, ok = strings.CutPrefix(rest, " ")
		}
		return ok && rest == name || name != "" && k.alias == name
	})
}

func (k Keys) find(of, l3, name string, pos syntax.Pos) (*Key, *syntax.Error) {
	if key := k.ByName(l3, name); key != nil {
		return key, nil
	}
	return nil, syntax.ErrorAt(pos, "unknown %s key %q: want %s", of, name, names(k, func(k Key) string { return k.Name }))
}

// KeyOf returns the key of a *syntax.Meta, CT, Rt, Socket or IPsec.
func KeyOf(x syntax.Expr) (*Key, *syntax.Error) {
	switch x := x.(type) {
	case *syntax.CT:
		return CTKeys.find("ct", x.L3, x.Key, x.KeyPos)
	case *syntax.Rt:
		return rtKey(x)
	case *syntax.Socket:
		return SocketKeys.find("socket", "", x.Key, x.KeyPos)
	case *syntax.IPsec:
		return IPsecKeys.find("ipsec", x.L3, x.Key, x.Pos)
	default:
		m := x.(*syntax.Meta) //nolint:forcetypeassert // the last of them
		return MetaKeys.find("meta", "", m.Key, m.KeyPos)
	}
}

// ByNumber returns the first key with the number, or nil.
func (k Keys) ByNumber(number uint32) *Key {
	return find(k, func(k *Key) bool { return k.Key == number })
}

// DumpName returns libnftnl's name, or "unknown".
func (k Keys) DumpName(number uint32) string {
	if key := k.ByNumber(number); key != nil {
		return cmp.Or(key.dump, key.Name)
	}
	return "unknown"
}
