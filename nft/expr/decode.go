package expr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// Unknown is an unknown expression. It cannot be marshalled.
type Unknown struct {
	// such as "match" of iptables
	Name string
	// NFTA_EXPR_DATA
	Data []byte
}

func (e *Unknown) table(t *table) {
	t.format = "unknown " + e.Name
	if name, rev, _, ok := e.Extension(); ok {
		t.format = fmt.Sprintf("%s name %s rev %d", e.Name, name, rev)
	}
}

// Extension returns the name, revision and data (include/uapi/linux/netfilter) of a match or target
// of iptables (nft_compat).
func (e *Unknown) Extension() (name string, rev uint32, info []byte, ok bool) {
	if e.Name != "match" && e.Name != "target" {
		return "", 0, nil, false
	}
	// same numbers as NFTA_TARGET_*
	err := attr.Fields{
		attr.Always(unix.NFTA_MATCH_NAME, &name), attr.Always(unix.NFTA_MATCH_REV, &rev), attr.Always(unix.NFTA_MATCH_INFO, &info),
	}.Read(e.Data)
	return name, rev, info, err == nil
}

// Decode decodes NFTA_RULE_EXPRESSIONS of any program. The kernel refers to anonymous sets by name,
// so every SetID is 0. Errors wrap [attr.ErrMalformed].
func Decode(list []byte) ([]Expr, error) {
	var out []Expr
	r := attr.NewReader(list)
	for r.Next() {
		e, err := decode(r.Bytes())
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, r.Err()
}

func decode(b []byte) (Expr, error) {
	name, data, err := Split(b)
	if err != nil {
		return nil, err
	}
	e := newExpr(name, data)
	if e == nil || !knows(e, data) {
		return &Unknown{Name: name, Data: bytes.Clone(data)}, nil
	}
	return e, Unmarshal(data, e)
}

func knows(e Expr, data []byte) bool {
	var t table
	e.table(&t)
	r := attr.NewReader(data)
	for r.Next() {
		if !slices.ContainsFunc(t.attributes, func(a attribute) bool { return a.typ == r.Type() }) {
			return false
		}
	}
	return true
}

func has(data []byte, typ uint16) bool {
	_, ok := attr.Find(data, typ)
	return ok
}

func number(data []byte, typ uint16) uint32 {
	r, ok := attr.Find(data, typ)
	if !ok || len(r.Bytes()) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(r.Bytes())
}

func newExpr(name string, data []byte) Expr {
	if f := newExprs[name]; f != nil {
		return f(data)
	}
	return nil
}

var newExprs = map[string]func(data []byte) Expr{
	"bitwise":      func([]byte) Expr { return &Bitwise{} },
	"byteorder":    func([]byte) Expr { return Library{&google.Byteorder{}} },
	"cmp":          func([]byte) Expr { return Library{&google.Cmp{}} },
	"connlimit":    func([]byte) Expr { return Library{&google.Connlimit{}} },
	"counter":      func([]byte) Expr { return Library{&google.Counter{}} },
	"ct":           func([]byte) Expr { return &CT{} },
	"dup":          func([]byte) Expr { return &Dup{} },
	"dynset":       func([]byte) Expr { return &Dynset{} },
	"exthdr":       newExthdr,
	"fib":          func([]byte) Expr { return &Fib{} },
	"flow_offload": func([]byte) Expr { return &FlowOffload{} },
	"fwd":          func([]byte) Expr { return &Fwd{} },
	"hash":         func([]byte) Expr { return &Hash{} },
	"immediate":    newImmediate,
	"limit":        func([]byte) Expr { return Library{&google.Limit{}} },
	"log":          func([]byte) Expr { return &Log{} },
	"lookup": func(data []byte) Expr {
		return Library{&google.Lookup{IsDestRegSet: has(data, unix.NFTA_LOOKUP_DREG)}}
	},
	"masq":     func([]byte) Expr { return &Masq{} },
	"meta":     func(data []byte) Expr { return Library{&google.Meta{SourceRegister: has(data, unix.NFTA_META_SREG)}} },
	"nat":      func([]byte) Expr { return &NAT{} },
	"notrack":  func([]byte) Expr { return Library{&google.Notrack{}} },
	"numgen":   func([]byte) Expr { return Library{&google.Numgen{}} },
	"objref":   newObjref,
	"osf":      func([]byte) Expr { return &OSF{} },
	"payload":  newPayload,
	"queue":    func([]byte) Expr { return &Queue{} },
	"quota":    func([]byte) Expr { return Library{&google.Quota{}} },
	"range":    func([]byte) Expr { return Library{&google.Range{}} },
	"redir":    func([]byte) Expr { return Library{&google.Redir{}} },
	"reject":   func([]byte) Expr { return Library{&google.Reject{}} },
	"rt":       func([]byte) Expr { return Library{&google.Rt{}} },
	"socket":   func([]byte) Expr { return &Socket{} },
	"synproxy": func([]byte) Expr { return Library{&google.SynProxy{}} },
	"tproxy":   func([]byte) Expr { return &TProxy{} },
	"xfrm":     func([]byte) Expr { return &Xfrm{} },
}

func newExthdr(data []byte) Expr {
	return &Exthdr{Dest: number(data, unix.NFTA_EXTHDR_DREG), Source: number(data, unix.NFTA_EXTHDR_SREG)}
}

func newImmediate(data []byte) Expr {
	if number(data, unix.NFTA_IMMEDIATE_DREG) == unix.NFT_REG_VERDICT {
		return Library{&google.Verdict{}}
	}
	return Library{&google.Immediate{}}
}

func newObjref(data []byte) Expr {
	if has(data, unix.NFTA_OBJREF_SET_NAME) {
		return &ObjrefMap{}
	}
	return &Objref{}
}

func newPayload(data []byte) Expr {
	if has(data, unix.NFTA_PAYLOAD_SREG) {
		return &PayloadWrite{}
	}
	return Library{&google.Payload{OperationType: google.PayloadLoad}}
}
