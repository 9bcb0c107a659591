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

// Unknown is an expression that Decode does not know, or that has attributes which it does
// not know. It cannot be marshalled.
type Unknown struct {
	// Name is the kernel's name of the expression, such as "match" for a match of iptables.
	Name string
	// Data are its attributes, the payload of NFTA_EXPR_DATA.
	Data []byte
}

// table implements Expr.
func (e *Unknown) table(t *table) {
	t.format = "unknown " + e.Name
	if name, rev, _, ok := e.Extension(); ok {
		t.format = fmt.Sprintf("%s name %s rev %d", e.Name, name, rev)
	}
}

// Extension returns the name, revision and data of a match or target of iptables, which
// iptables-nft puts into rules (nft_compat). ok is false for other expressions. The data is a structure
// of include/uapi/linux/netfilter.
func (e *Unknown) Extension() (name string, rev uint32, info []byte, ok bool) {
	if e.Name != "match" && e.Name != "target" {
		return "", 0, nil, false
	}
	// NFTA_TARGET_* are the same numbers.
	err := attr.Fields{
		attr.Always(unix.NFTA_MATCH_NAME, &name), attr.Always(unix.NFTA_MATCH_REV, &rev), attr.Always(unix.NFTA_MATCH_INFO, &info),
	}.Read(e.Data)
	return name, rev, info, err == nil
}

// Decode is the inverse of Encode for the expressions of any program's rule: list is the
// payload of NFTA_RULE_EXPRESSIONS from the kernel. In what the kernel sends, expressions refer
// to anonymous sets by name, so every SetID is 0. An expression that is not known becomes an
// *[Unknown]. Errors wrap [attr.ErrMalformed].
func Decode(list []byte) ([]Expr, error) {
	var out []Expr
	r := attr.NewReader(list)
	for r.Next() {
		name, data, err := Split(r.Bytes())
		if err != nil {
			return nil, err
		}
		e, err := decode(name, data)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, r.Err()
}

// decode decodes the attributes of an expression.
func decode(name string, data []byte) (Expr, error) {
	e := newExpr(name, data)
	if e == nil || !knows(e, data) {
		return &Unknown{Name: name, Data: bytes.Clone(data)}, nil
	}
	if err := Unmarshal(data, e); err != nil {
		return nil, err
	}
	if k, ok := e.(Library); ok {
		complete(k.Any, data)
	}
	if d, ok := e.(*Dynset); ok {
		return e, d.decodeExprs(data)
	}
	return e, nil
}

// knows reports whether the table of an expression has all of the attributes. Those without a
// table are read by complete.
func knows(e Expr, data []byte) bool {
	var t table
	e.table(&t)
	r := attr.NewReader(data)
	for len(t.attributes) > 0 && r.Next() {
		if !slices.ContainsFunc(t.attributes, func(a attribute) bool { return a.typ == r.Type() }) {
			return false
		}
	}
	return true
}

// has reports whether an attribute exists.
func has(data []byte, typ uint16) bool {
	_, ok := attr.Find(data, typ)
	return ok
}

// number returns an attribute that is a number of 32 bits, 0 if there is none.
func number(data []byte, typ uint16) uint32 {
	r, ok := attr.Find(data, typ)
	if !ok || len(r.Bytes()) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(r.Bytes())
}

// newExpr returns an expression for Unmarshal, or nil for a name that is not known.
func newExpr(name string, data []byte) Expr {
	switch name {
	case "bitwise":
		return &Bitwise{}
	case "ct":
		return &CT{}
	case "dup":
		return &Dup{}
	case "dynset":
		return &Dynset{}
	case "exthdr":
		// Unmarshal sets what the table sends for the registers that there are.
		return &Exthdr{Dest: number(data, unix.NFTA_EXTHDR_DREG), Source: number(data, unix.NFTA_EXTHDR_SREG)}
	case "flow_offload":
		return &FlowOffload{}
	case "fwd":
		return &Fwd{}
	case "hash":
		return &Hash{}
	case "masq":
		return &Masq{}
	case "osf":
		return &OSF{}
	case "queue":
		return &Queue{}
	case "socket":
		return &Socket{}
	case "tproxy":
		return &TProxy{}
	case "xfrm":
		return &Xfrm{}
	case "objref":
		if has(data, unix.NFTA_OBJREF_SET_NAME) {
			return &ObjrefMap{}
		}
		return Library{&google.Objref{}}
	case "payload":
		if has(data, unix.NFTA_PAYLOAD_SREG) {
			return &PayloadWrite{}
		}
		return Library{&google.Payload{OperationType: google.PayloadLoad}}
	case "immediate":
		if number(data, unix.NFTA_IMMEDIATE_DREG) == unix.NFT_REG_VERDICT {
			return Library{&google.Verdict{}}
		}
		return Library{&google.Immediate{}}
	default:
		if e := newLibrary(name, data); e != nil {
			return Library{e}
		}
		return nil
	}
}

// newLibrary returns an expression of google/nftables whose name says which one it is.
func newLibrary(name string, data []byte) google.Any {
	switch name {
	case "meta":
		return &google.Meta{SourceRegister: has(data, unix.NFTA_META_SREG)}
	case "lookup":
		return &google.Lookup{IsDestRegSet: has(data, unix.NFTA_LOOKUP_DREG)}
	case "byteorder":
		return &google.Byteorder{}
	case "cmp":
		return &google.Cmp{}
	case "connlimit":
		return &google.Connlimit{}
	case "counter":
		return &google.Counter{}
	case "fib":
		return &google.Fib{}
	case "limit":
		return &google.Limit{}
	case "log":
		return &google.Log{}
	case "nat":
		return &google.NAT{}
	case "notrack":
		return &google.Notrack{}
	case "numgen":
		return &google.Numgen{}
	case "quota":
		return &google.Quota{}
	case "range":
		return &google.Range{}
	case "redir":
		return &google.Redir{}
	case "reject":
		return &google.Reject{}
	case "rt":
		return &google.Rt{}
	case "synproxy":
		return &google.SynProxy{}
	default:
		return nil
	}
}

// complete sets the fields that Unmarshal does not know because the table of the expression
// computes their attributes, or does not have them.
func complete(e google.Any, data []byte) {
	switch e := e.(type) {
	case *google.NAT:
		flags := number(data, unix.NFTA_NAT_FLAGS)
		e.Random, e.FullyRandom = flags&unix.NF_NAT_RANGE_PROTO_RANDOM != 0, flags&unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY != 0
		e.Persistent, e.Prefix = flags&unix.NF_NAT_RANGE_PERSISTENT != 0, flags&unix.NF_NAT_RANGE_NETMAP != 0
		e.Specified = flags&unix.NF_NAT_RANGE_PROTO_SPECIFIED != 0
	case *google.Objref:
		e.Type = int(number(data, unix.NFTA_OBJREF_IMM_TYPE))
	case *google.Fib:
		e.Register = number(data, unix.NFTA_FIB_DREG)
		result, flags := number(data, unix.NFTA_FIB_RESULT), number(data, unix.NFTA_FIB_FLAGS)
		e.ResultOIF, e.ResultOIFNAME = result == unix.NFT_FIB_RESULT_OIF, result == unix.NFT_FIB_RESULT_OIFNAME
		e.ResultADDRTYPE = result == unix.NFT_FIB_RESULT_ADDRTYPE
		e.FlagSADDR, e.FlagDADDR = flags&unix.NFTA_FIB_F_SADDR != 0, flags&unix.NFTA_FIB_F_DADDR != 0
		e.FlagMARK, e.FlagIIF = flags&unix.NFTA_FIB_F_MARK != 0, flags&unix.NFTA_FIB_F_IIF != 0
		e.FlagOIF, e.FlagPRESENT = flags&unix.NFTA_FIB_F_OIF != 0, flags&unix.NFTA_FIB_F_PRESENT != 0
	case *google.Log:
		completeLog(e, data)
	case *google.SynProxy:
		completeSynProxy(e, data)
	}
}

// completeLog reads the attributes of a log expression.
func completeLog(e *google.Log, data []byte) {
	r := attr.NewReader(data)
	for r.Next() {
		e.Key |= 1 << r.Type()
		switch r.Type() {
		case unix.NFTA_LOG_GROUP:
			e.Group = r.Uint16BE()
		case unix.NFTA_LOG_PREFIX:
			e.Data = []byte(r.Text())
		case unix.NFTA_LOG_SNAPLEN:
			e.Snaplen = r.Uint32BE()
		case unix.NFTA_LOG_QTHRESHOLD:
			e.QThreshold = r.Uint16BE()
		case unix.NFTA_LOG_LEVEL:
			e.Level = google.LogLevel(r.Uint32BE())
		case unix.NFTA_LOG_FLAGS:
			e.Flags = google.LogFlags(r.Uint32BE())
		}
	}
}

// completeSynProxy reads the attributes of a synproxy expression.
func completeSynProxy(e *google.SynProxy, data []byte) {
	r := attr.NewReader(data)
	for r.Next() {
		switch r.Type() {
		case google.NFTA_SYNPROXY_MSS:
			e.Mss = r.Uint16BE()
		case google.NFTA_SYNPROXY_WSCALE:
			e.Wscale = r.Uint8()
		case google.NFTA_SYNPROXY_FLAGS:
			flags := r.Uint32BE()
			e.MssValueSet, e.WscaleValueSet = flags&google.NF_SYNPROXY_OPT_MSS != 0, flags&google.NF_SYNPROXY_OPT_WSCALE != 0
			e.SackPerm, e.Timestamp = flags&google.NF_SYNPROXY_OPT_SACK_PERM != 0, flags&google.NF_SYNPROXY_OPT_TIMESTAMP != 0
		}
	}
}

// decodeExprs decodes the statements of new elements.
func (e *Dynset) decodeExprs(data []byte) error {
	one, ok := attr.Find(data, unix.NFTA_DYNSET_EXPR)
	lists := [][]byte{one.Bytes()}
	if several, found := attr.Find(data, google.NFTA_DYNSET_EXPRESSIONS); found {
		lists, ok = nil, true
		for r := several.Nested(); r.Next(); {
			lists = append(lists, r.Bytes())
		}
	}
	if !ok {
		return nil
	}
	for _, b := range lists {
		name, data, err := Split(b)
		if err != nil {
			return err
		}
		x, err := decode(name, data)
		if err != nil {
			return err
		}
		e.Exprs = append(e.Exprs, x)
	}
	return nil
}
