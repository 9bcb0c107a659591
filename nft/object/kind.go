package object

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

type kind struct {
	name   nft.ObjectKind
	number uint32
	// l3proto defaults to the family of the table
	family bool
}

// kinds are from nft(8) 1.0.6.
var kinds = [...]kind{
	{name: nft.ObjectCounter, number: unix.NFT_OBJECT_COUNTER},
	{name: nft.ObjectQuota, number: unix.NFT_OBJECT_QUOTA},
	{name: nft.ObjectLimit, number: unix.NFT_OBJECT_LIMIT},
	{name: nft.ObjectCTHelper, number: unix.NFT_OBJECT_CT_HELPER, family: true},
	{name: nft.ObjectCTTimeout, number: unix.NFT_OBJECT_CT_TIMEOUT, family: true},
	{name: nft.ObjectCTExpectation, number: unix.NFT_OBJECT_CT_EXPECT, family: true},
	{name: nft.ObjectSecMark, number: unix.NFT_OBJECT_SECMARK},
	{name: nft.ObjectSynProxy, number: unix.NFT_OBJECT_SYNPROXY},
}

func kindOf(name nft.ObjectKind) *kind {
	if i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.name == name }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// Number returns NFT_OBJECT_*, or 0 for an unknown kind.
func Number(name nft.ObjectKind) uint32 {
	if k := kindOf(name); k != nil {
		return k.number
	}
	return 0
}

// KindOf is the inverse of Number; empty if nft(8) 1.0.6 does not have the kind.
func KindOf(number uint32) nft.ObjectKind {
	for i := range kinds {
		if kinds[i].number == number {
			return kinds[i].name
		}
	}
	return ""
}

func encode(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	if err := check(family, body); err != nil {
		return nil, err
	}
	if f := fields(body); f != nil {
		return f.Append(nil)
	}
	e, err := expr.NewStateful(body.(syntax.Stmt))
	if err != nil {
		return nil, err
	}
	b, err := expr.Marshal(e)
	if err != nil {
		return nil, err
	}
	_, data, err := expr.Split(b)
	return data, err
}

func (k *kind) text(family nft.Family, data []byte) (string, error) {
	absent := ""
	if k.family {
		absent = "l3proto " + family.String()
	}
	body, err := syntax.ParseObject(k.name, absent)
	if err != nil {
		return "", err
	}
	f := fields(body)
	if f == nil {
		s, err := expr.DecodeStateful(string(k.name), data)
		if err != nil {
			return "", err
		}
		return syntax.PrintObject(s.(syntax.ObjectBody)), nil
	}
	if err := f.Read(data); err != nil {
		return "", fmt.Errorf("decode %s: %w", k.name, err)
	}
	if o, ok := body.(*syntax.HelperBody); ok && (o.L3Proto == "bridge" || o.L3Proto == "netdev") {
		// for these families the kernel means both versions of IP
		o.L3Proto = "inet"
	}
	return syntax.PrintObject(body), nil
}
