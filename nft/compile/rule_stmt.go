package compile

import (
	"slices"
	"strings"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxLogPrefix is NF_LOG_PREFIXLEN without the NUL.
const maxLogPrefix = 127

func (r *ruleCompiler) log(s *syntax.Log) {
	group := s.Group != nil || s.Snaplen != nil || s.QueueThreshold != nil
	switch {
	case group && s.Level != "":
		fail(s.Pos, "log: level and group exclude each other")
	case group && len(s.Flags) > 0:
		fail(s.Pos, "log: flags and group exclude each other")
	case s.Level == "audit" && (s.Prefix != nil || len(s.Flags) > 0):
		fail(s.Pos, "log: level audit takes no other option")
	case s.Prefix != nil && strings.IndexByte(*s.Prefix, '$') >= 0:
		fail(s.Pos, "log: nft(8) takes a $ in the prefix for a variable, and there is none")
	case s.Prefix != nil && len(*s.Prefix) > maxLogPrefix:
		fail(s.Pos, "log: prefix has %d bytes: at most %d are possible", len(*s.Prefix), maxLogPrefix)
	}
	l := &expr.Log{Prefix: s.Prefix}
	if s.Group != nil {
		l.Group, l.Snaplen, l.QThreshold = s.Group, s.Snaplen, s.QueueThreshold
	}
	if s.Level != "" {
		l.Level = new(uint32(slices.Index(syntax.LogLevels, s.Level)))
	}
	if len(s.Flags) > 0 {
		l.Flags = new(expr.Flags(s.Flags, expr.LogFlags))
	}
	if slices.Contains(s.Flags, "all") {
		l.Flags = new(expr.LogFlagsAll)
	}
	r.add(exprStmt{l})
}

// assign evaluates "TARGET set VALUE".
func (r *ruleCompiler) assign(s *syntax.Assign) {
	switch target := s.Target.(type) {
	case *syntax.Payload:
		r.assignPayload(s, r.payloadField(target))
	case *syntax.RawPayload:
		r.assignPayload(s, newRawPayload(target))
	case *syntax.Meta:
		key := selector.MetaKeys.ByName("", target.Key)
		if key == nil || !key.Settable {
			fail(target.Pos, "meta %s cannot be set", target.Key)
		}
		r.assignKey(s, want{typ: key.Type, width: key.Bits, order: key.Order}, func(reg uint32) expr.Expr {
			return expr.Library{Any: &google.Meta{Key: google.MetaKey(key.Key), SourceRegister: true, Register: reg}}
		})
	case *syntax.CT:
		key := selector.CTKeys.ByName("", target.Key)
		if key == nil || !key.Settable || target.L3 != "" {
			fail(target.Pos, "%s cannot be set", syntax.PrintExpr(target))
		}
		if target.Dir != "" && key.Direction == selector.DirectionNever {
			fail(target.Pos, "ct %s has no direction: write ct %s set", key.Name, key.Name)
		}
		r.assignKey(s, want{typ: key.Type, width: key.Bits, order: key.Order}, func(reg uint32) expr.Expr {
			return &expr.CT{Key: key.Key, Source: reg, Direction: selector.ParseDirection(target.Dir)}
		})
	case *syntax.Exthdr:
		r.assignExthdr(s, target)
	default:
		fail(s.Target.Position(), "%s cannot be set", describe(s.Target))
	}
}

func (r *ruleCompiler) assignKey(s *syntax.Assign, w want, e func(reg uint32) expr.Expr) {
	checkAssigned(s)
	r.addValue(r.target(s.Value, w), e)
}

func (r *ruleCompiler) argument(x syntax.Expr, w want) term {
	t := r.eval(x, w)
	checkArgument(x, t, w)
	if h, ok := t.(*hostTerm); ok && h.route {
		// nft converts only this assigned value.
		return toOrder(t, w.order)
	}
	return t
}

// Integers pass for any type.
func checkArgument(x syntax.Expr, t term, w want) {
	info := t.info()
	typ := sourceType(t)
	_, payload := t.(*payloadTerm)
	switch {
	case w.typ == nil:
	case typ == datatype.Integer && (!payload || info.bits == w.width):
		// The kernel requires fully written registers.
		if !isConstant(t) && info.slots() < (w.width+31)/32 {
			fail(x.Position(), "%s has %d bits: want the %d of %s", describe(x), info.bits, w.width, w.name())
		}
	case typ == datatype.Integer && w.typ == datatype.Integer:
		fail(x.Position(), "datatype mismatch: want %d bits, %s has %d", w.width, describe(x), info.bits)
	case typ != w.typ:
		fail(x.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(x), typeName(t))
	}
}
