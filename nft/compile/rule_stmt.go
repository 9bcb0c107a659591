package compile

import (
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxLogPrefix is NF_LOG_PREFIXLEN without the NUL.
const maxLogPrefix = 127

// log evaluates a log statement.
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
	l := &google.Log{}
	if s.Prefix != nil {
		l.Key |= 1 << unix.NFTA_LOG_PREFIX
		l.Data = []byte(*s.Prefix)
	}
	// Without a group nft 1.0.6 takes the other two and forgets them.
	if s.Group != nil {
		l.Key |= 1 << unix.NFTA_LOG_GROUP
		l.Group = uint16(*s.Group)
		if s.Snaplen != nil {
			l.Key |= 1 << unix.NFTA_LOG_SNAPLEN
			l.Snaplen = *s.Snaplen
		}
		if s.QueueThreshold != nil {
			l.Key |= 1 << unix.NFTA_LOG_QTHRESHOLD
			l.QThreshold = uint16(*s.QueueThreshold)
		}
	}
	if s.Level != "" {
		level, ok := logLevel(s.Level)
		if !ok {
			fail(s.Pos, "log: unknown level %q", s.Level)
		}
		l.Key |= 1 << unix.NFTA_LOG_LEVEL
		l.Level = level
	}
	for _, f := range s.Flags {
		l.Key |= 1 << unix.NFTA_LOG_FLAGS
		l.Flags |= logFlag(f)
	}
	r.addLibrary(l)
}

// logLevel returns the number of a log level.
func logLevel(name string) (google.LogLevel, bool) {
	for i, s := range [...]string{"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"} {
		if s == name {
			return google.LogLevel(i), true
		}
	}
	return 0, false
}

// logFlag returns the bits of a log flag.
func logFlag(name string) google.LogFlags {
	switch name {
	case "tcp sequence":
		return google.LogFlagsTCPSeq
	case "tcp options":
		return google.LogFlagsTCPOpt
	case "ip options":
		return google.LogFlagsIPOpt
	case "skuid":
		return google.LogFlagsUID
	case "ether":
		return google.LogFlagsMACDecode
	default: // "all"
		return google.LogFlagsMask
	}
}

// assignStmt assigns to packet or connection metadata.
type assignStmt struct {
	meta *selector.MetaKey
	ct   *selector.CTKey
	// dir is that of the ct key.
	dir   selector.Direction
	value term
}

// assign evaluates "TARGET set VALUE".
func (r *ruleCompiler) assign(s *syntax.Assign) {
	out := &assignStmt{}
	var w want
	switch target := s.Target.(type) {
	case *syntax.Payload, *syntax.RawPayload:
		r.assignField(s)
		return
	case *syntax.Meta:
		out.meta = selector.MetaByName(target.Key)
		if out.meta == nil || !out.meta.Settable {
			fail(target.Pos, "meta %s cannot be set", target.Key)
		}
		w = want{typ: out.meta.Type, width: out.meta.Bits, order: out.meta.Order}
	case *syntax.CT:
		out.ct = selector.CTByName("", target.Key)
		if out.ct == nil || !out.ct.Settable || target.L3 != "" {
			fail(target.Pos, "%s cannot be set", syntax.PrintExpr(target))
		}
		switch {
		case target.Dir != "" && out.ct.Direction == selector.DirectionNever:
			fail(target.Pos, "ct %s has no direction: write ct %s set", out.ct.Name, out.ct.Name)
		case target.Dir != "":
			out.dir = selector.ParseDirection(target.Dir)
		}
		w = want{typ: out.ct.Type, width: out.ct.Bits, order: out.ct.Order}
	case *syntax.Exthdr:
		r.assignExthdr(s, target)
		return
	default:
		fail(s.Target.Position(), "%s cannot be set", describe(s.Target))
	}
	checkAssigned(s)
	out.value = r.argument(s.Value, w)
	if !isSingle(out.value) && isConstant(out.value) {
		fail(s.Value.Position(), "%s is more than one value", describe(s.Value))
	}
	r.add(out)
}

// argument evaluates a value that must have a type.
func (r *ruleCompiler) argument(x syntax.Expr, w want) term {
	t := r.eval(x, w)
	checkArgument(x, t, w)
	if _, ok := t.(*rtTerm); ok {
		// Of all that can be assigned, nft converts this alone.
		return toOrder(t, w.order)
	}
	return t
}

// checkArgument checks the type of a value. Integers go everywhere.
func checkArgument(x syntax.Expr, t term, w want) {
	info := t.info()
	typ := sourceType(t)
	_, payload := t.(*payloadTerm)
	switch {
	case w.typ == nil:
	case typ == datatype.Integer && (!payload || info.bits == w.width):
		// The kernel wants registers that were written in full.
		if !isConstant(t) && info.slots() < (w.width+31)/32 {
			fail(x.Position(), "%s has %d bits: want the %d of %s", describe(x), info.bits, w.width, w.name())
		}
	case typ == datatype.Integer && w.typ == datatype.Integer:
		fail(x.Position(), "datatype mismatch: want %d bits, %s has %d", w.width, describe(x), info.bits)
	case typ != w.typ:
		fail(x.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(x), typeName(t))
	}
}

// generate is statement's.
func (s *assignStmt) generate(g *generator) {
	reg := g.loadNew(s.value)
	if s.meta != nil {
		g.emit(&google.Meta{Key: s.meta.Key, SourceRegister: true, Register: reg.number()})
		return
	}
	g.emitOwn(&expr.CT{Key: s.ct.Key, Source: reg.number(), Direction: s.dir})
}
