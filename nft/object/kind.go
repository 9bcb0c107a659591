package object

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// kind describes the objects of one kind.
type kind struct {
	name nft.ObjectKind
	// number is the kernel's number of the kind.
	number uint32
	// check rejects a body that is incomplete or that the kernel does not accept.
	check func(nft.Family, syntax.ObjectBody) error
	// empty returns a body of the type that syntax.ParseObject returns for the kind, and
	// fields describes NFTA_OBJ_DATA with the attributes in nft's order. They are nil for
	// the kinds that have the attributes of the expression of the same name.
	empty  func(nft.Family) syntax.ObjectBody
	fields func(syntax.ObjectBody) attr.Fields
	// align removes the differences that two objects which are declared alike can
	// have. It is nil if there are none.
	align func(a, b syntax.ObjectBody)
}

// kinds are the kinds of objects that nft(8) 1.0.6 knows.
var kinds = [...]kind{
	{name: nft.ObjectCounter, number: unix.NFT_OBJECT_COUNTER, align: alignCounters},
	{name: nft.ObjectQuota, number: unix.NFT_OBJECT_QUOTA, align: alignQuotas},
	{name: nft.ObjectLimit, number: unix.NFT_OBJECT_LIMIT, check: checkLimit},
	{
		nft.ObjectCTHelper, unix.NFT_OBJECT_CT_HELPER, checkHelper,
		func(f nft.Family) syntax.ObjectBody { return &syntax.HelperBody{L3Proto: f.String()} },
		func(b syntax.ObjectBody) attr.Fields { return helperFields(b.(*syntax.HelperBody)) }, alignHelpers,
	},
	{
		nft.ObjectCTTimeout, unix.NFT_OBJECT_CT_TIMEOUT, checkTimeout,
		func(f nft.Family) syntax.ObjectBody { return &syntax.TimeoutBody{L3Proto: f.String()} },
		func(b syntax.ObjectBody) attr.Fields { return timeoutFields(b.(*syntax.TimeoutBody)) }, nil,
	},
	{
		nft.ObjectCTExpectation, unix.NFT_OBJECT_CT_EXPECT, checkExpectation,
		func(f nft.Family) syntax.ObjectBody { return &syntax.ExpectationBody{L3Proto: f.String()} },
		func(b syntax.ObjectBody) attr.Fields { return expectationFields(b.(*syntax.ExpectationBody)) }, nil,
	},
	{
		nft.ObjectSecMark, unix.NFT_OBJECT_SECMARK, checkSecMark,
		func(nft.Family) syntax.ObjectBody { return &syntax.SecMarkBody{} },
		func(b syntax.ObjectBody) attr.Fields { return secMarkFields(b.(*syntax.SecMarkBody)) }, nil,
	},
	{
		nft.ObjectSynProxy, unix.NFT_OBJECT_SYNPROXY, nil,
		func(nft.Family) syntax.ObjectBody { return &syntax.SynProxyBody{} },
		func(b syntax.ObjectBody) attr.Fields { return synProxyFields(b.(*syntax.SynProxyBody)) }, nil,
	},
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
func (k *kind) encode(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	if k.check != nil {
		if err := k.check(family, body); err != nil {
			return nil, err
		}
	}
	if k.fields != nil {
		return k.fields(body).Append(nil)
	}
	e, err := expr.NewStateful(body.(syntax.Stmt))
	if err != nil {
		return nil, err
	}
	b, err := expr.Marshal(uint8(family), e)
	if err != nil {
		return nil, err
	}
	_, data, err := expr.Split(b)
	return data, err
}

// text returns the canonical text of an object that the kernel holds.
func (k *kind) text(family nft.Family, data []byte) (string, error) {
	if k.fields == nil {
		s, err := expr.DecodeStateful(string(k.name), data)
		if err != nil {
			return "", err
		}
		return syntax.PrintObject(s.(syntax.ObjectBody)), nil
	}
	body := k.empty(family)
	if err := k.fields(body).Read(data); err != nil {
		return "", fmt.Errorf("decode %s: %w", k.name, err)
	}
	if o, ok := body.(*syntax.HelperBody); ok && (o.L3Proto == "bridge" || o.L3Proto == "netdev") {
		// The kernel treats a helper for these families as one for both versions of IP.
		o.L3Proto = "inet"
	}
	return syntax.PrintObject(body), nil
}
