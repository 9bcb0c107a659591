package object

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// kind describes the objects of one kind.
type kind struct {
	name nft.ObjectKind
	// number is the kernel's number of the kind.
	number uint32
	// encode returns the payload of NFTA_OBJ_DATA, with the attributes in the
	// order in which nft(8) sends them. The body is of the type that
	// syntax.ParseObject returns for the kind.
	encode func(nft.Family, syntax.ObjectBody) ([]byte, error)
	// decode is the inverse of encode.
	decode func(nft.Family, attributes) (syntax.ObjectBody, error)
	// align removes the differences that two objects which are declared alike can
	// have. It is nil if there are none.
	align func(a, b syntax.ObjectBody)
}

// kinds are the kinds of objects that nft(8) 1.0.6 knows.
var kinds = [...]kind{
	{nft.ObjectCounter, unix.NFT_OBJECT_COUNTER, encodeStateful, decodeStateful("counter"), alignCounters},
	{nft.ObjectQuota, unix.NFT_OBJECT_QUOTA, encodeStateful, decodeStateful("quota"), alignQuotas},
	{nft.ObjectLimit, unix.NFT_OBJECT_LIMIT, encodeLimit, decodeStateful("limit"), nil},
	{nft.ObjectCTHelper, unix.NFT_OBJECT_CT_HELPER, encodeHelper, decodeHelper, alignHelpers},
	{nft.ObjectCTTimeout, unix.NFT_OBJECT_CT_TIMEOUT, encodeTimeout, decodeTimeout, nil},
	{nft.ObjectCTExpectation, unix.NFT_OBJECT_CT_EXPECT, encodeExpectation, decodeExpectation, nil},
	{nft.ObjectSecMark, unix.NFT_OBJECT_SECMARK, encodeSecMark, decodeSecMark, nil},
	{nft.ObjectSynProxy, unix.NFT_OBJECT_SYNPROXY, encodeSynProxy, decodeSynProxy, nil},
}

// kindOf returns the kind of a name, or nil.
func kindOf(name nft.ObjectKind) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
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

// text returns the canonical text of an object that the kernel holds.
func (k *kind) text(family nft.Family, data []byte) (string, error) {
	a := attributes{data: data}
	r := attr.NewReader(data)
	for r.Next() {
		if int(r.Type()) < len(a.byType) {
			a.byType[r.Type()] = r.Bytes()
		}
	}
	if err := r.Err(); err != nil {
		return "", err
	}
	body, err := k.decode(family, a)
	if err != nil {
		return "", err
	}
	return syntax.PrintObject(body), nil
}

// attributes are the attributes of an object. The types of all kinds are few, and
// begin at 1.
type attributes struct {
	data   []byte
	byType [8][]byte
}

// number returns a big-endian number of any width, 0 if the attribute is missing.
func (a *attributes) number(typ uint16) uint64 {
	var n uint64
	for _, c := range a.byType[typ] {
		n = n<<8 | uint64(c)
	}
	return n
}

// text returns a string up to its NUL, if it has one.
func (a *attributes) text(typ uint16) string {
	for i, c := range a.byType[typ] {
		if c == 0 {
			return string(a.byType[typ][:i])
		}
	}
	return string(a.byType[typ])
}

// start is the position of errors about what an object lacks.
var start = syntax.Pos{Line: 1, Column: 1}
