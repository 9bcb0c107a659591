package object

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// kind is a kind of objects.
type kind struct {
	name nft.ObjectKind
	// number is the kernel's number of the kind.
	number uint32
	// family is true if an object without l3proto is for the family of its table.
	family bool
}

// kinds are the kinds of objects that nft(8) 1.0.6 knows.
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

// kindOf returns the kind of a name, or nil.
func kindOf(name nft.ObjectKind) *kind {
	if i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.name == name }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// Number returns the kernel's number of a kind (NFT_OBJECT_*), 0 for an unknown
// kind.
func Number(name nft.ObjectKind) uint32 {
	if k := kindOf(name); k != nil {
		return k.number
	}
	return 0
}

// KindOf returns the kind that has the number, or an empty kind if nft(8) 1.0.6
// knows none.
func KindOf(number uint32) nft.ObjectKind {
	for i := range kinds {
		if kinds[i].number == number {
			return kinds[i].name
		}
	}
	return ""
}

// encode returns the payload of NFTA_OBJ_DATA.
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

// text returns the canonical text of an object that the kernel holds.
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
		// The kernel treats a helper for these families as one for both versions of IP.
		o.L3Proto = "inet"
	}
	return syntax.PrintObject(body), nil
}
