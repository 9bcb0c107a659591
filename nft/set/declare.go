package set

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"
)

// enum nftnl_udata_set_types and nftnl_udata_set_typeof_types
const (
	udataSetKeyOrder     = 0
	udataSetDataOrder    = 1
	udataSetMerge        = 2
	udataSetKeyTypeOf    = 3
	udataSetDataTypeOf   = 4
	udataSetDataInterval = 6
	udataSetComment      = 7

	udataTypeOfExpr = 0
	udataTypeOfData = 1
)

type declaration struct {
	word, text          string
	key, data           []Part
	isMap               bool
	verdict             bool
	interval            bool
	object              nft.ObjectKind
	keyExprs, dataExprs []TypeOfExpr
}

func declaredTypes(s *nft.Set) (*declaration, error) {
	switch {
	case s.Type != "" && s.TypeOf != "":
		return nil, fmt.Errorf("both type %q and typeof %q are given: want one", s.Type, s.TypeOf)
	case s.Type != "":
		d, err := parseTypes(s.Type)
		if err != nil {
			return nil, fmt.Errorf("type %q: %w", s.Type, err)
		}
		return d, nil
	case s.TypeOf != "":
		d, err := parseTypeOf(s.TypeOf)
		if err != nil {
			return nil, fmt.Errorf("typeof %q: %w", s.TypeOf, err)
		}
		return d, nil
	default:
		return nil, errors.New("no type given: want type or typeof")
	}
}

func parseTypes(text string) (*declaration, error) {
	d := &declaration{word: "type", text: text}
	key, data, isMap := strings.Cut(text, ":")
	d.isMap = isMap
	var err error
	if d.key, err = parseTypeList(key); err != nil {
		return nil, err
	}
	if !isMap {
		return d, nil
	}
	data = strings.TrimSpace(data)
	if data == datatype.Verdict.Name {
		d.verdict = true
		return d, nil
	}
	if kind := nft.ObjectKind(data); slices.Contains(nft.ObjectKinds[:], kind) {
		// nft 1.0.6 has only anonymous maps of ct objects
		if strings.HasPrefix(data, "ct ") {
			return nil, fmt.Errorf("maps of %s are possible in rules only: write %s set KEY map { ... }", data, data)
		}
		d.object = kind
		return d, nil
	}
	if rest, ok := strings.CutPrefix(data, "interval "); ok {
		d.interval, data = true, rest
	}
	d.data, err = parseTypeList(data)
	return d, err
}

func parseTypeList(text string) ([]Part, error) {
	var parts []Part
	for name := range strings.SplitSeq(text, ".") {
		name = strings.TrimSpace(name)
		t, ok := datatype.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("unknown datatype %q: want names such as ipv4_addr, ipv6_addr, inet_proto, inet_service, mark or ifname, joined by \" . \"", name)
		}
		parts = append(parts, partOf(t))
	}
	return parts, nil
}

func (d *declaration) userData(s *Set) {
	data := TypeOf{OrderOf(d.data), d.dataExprs, len(d.data)}
	if d.verdict && d.word == "typeof" {
		data = VerdictTypeOf
	}
	s.SetUserData(TypeOf{OrderOf(d.key), d.keyExprs, len(d.key)}, data)
}

// TypeOf is nft's record of a key's or data's type.
type TypeOf struct {
	Order datatype.Order
	// Exprs are the expressions of a typeof declaration, as many as nft can store.
	Exprs []TypeOfExpr
	// Parts is 0 if nft stores only Order.
	Parts int
}

// VerdictTypeOf is a verdict map's data.
var VerdictTypeOf = TypeOf{Exprs: []TypeOfExpr{{expr: exprVerdict}}, Parts: 1}

// SetUserData sets UserData as nft 1.0.6 does (mnl_nft_set_add). The other fields must be complete.
func (s *Set) SetUserData(key, data TypeOf) {
	b := userdata.AppendUint32(nil, udataSetKeyOrder, uint32(key.Order))
	if s.Map && s.Object == "" {
		b = userdata.AppendUint32(b, udataSetDataOrder, uint32(data.Order))
	}
	if s.AutoMerge {
		b = userdata.AppendUint32(b, udataSetMerge, 1)
	}
	b = key.append(b, udataSetKeyTypeOf)
	b = data.append(b, udataSetDataTypeOf)
	if s.Map {
		interval := uint32(0)
		if s.DataInterval {
			interval = 1
		}
		b = userdata.AppendUint32(b, udataSetDataInterval, interval)
	}
	if s.Comment != "" {
		b = userdata.AppendString(b, udataSetComment, nft.CommentText(s.Comment))
	}
	s.UserData = b
}

// OrderOf returns the byte order that nft stores: a single part's, or NoOrder.
func OrderOf(parts []Part) datatype.Order {
	if len(parts) != 1 {
		return datatype.NoOrder
	}
	return parts[0].Order
}

func (t *TypeOf) append(b []byte, record byte) []byte {
	switch {
	case t.Parts == 1 && len(t.Exprs) == 1:
		return appendNested(b, record, t.Exprs[0].append)
	case t.Parts > 1:
		return appendNested(b, record, func(b []byte) []byte {
			b = userdata.AppendUint32(b, udataTypeOfExpr, exprConcat)
			return appendNested(b, udataTypeOfData, func(b []byte) []byte {
				for i, e := range t.Exprs {
					b = appendNested(b, byte(i), e.append)
				}
				return b
			})
		})
	default:
		return b
	}
}

// A record too long for its length byte makes the userdata too long, and compileSet rejects it.
func appendNested(b []byte, record byte, f func([]byte) []byte) []byte {
	at := len(b)
	b = f(append(b, record, 0))
	b[at+1] = byte(len(b) - at - 2)
	return b
}

// TypeOfExpr is an expression as nft stores it (enum expr_types).
type TypeOfExpr struct {
	expr  uint32
	attrs []typeOfAttr
}

type typeOfAttr struct {
	typ   byte
	value uint32
}

func (e TypeOfExpr) append(b []byte) []byte {
	b = userdata.AppendUint32(b, udataTypeOfExpr, e.expr)
	return appendNested(b, udataTypeOfData, func(b []byte) []byte {
		for _, a := range e.attrs {
			b = userdata.AppendUint32(b, a.typ, a.value)
		}
		return b
	})
}
