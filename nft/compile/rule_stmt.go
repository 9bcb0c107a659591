package compile

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// counterStmt counts.
type counterStmt struct{ s *syntax.Counter }

// generate is statement's.
func (c *counterStmt) generate(g *generator) error {
	g.emit(newCounter(c.s))
	return nil
}

func newCounter(s *syntax.Counter) *expr.Counter {
	return &expr.Counter{Packets: s.Packets, Bytes: s.Bytes}
}

// notrackStmt keeps a packet out of conntrack.
type notrackStmt struct{}

// generate is statement's.
func (notrackStmt) generate(g *generator) error {
	g.emit(&expr.Notrack{})
	return nil
}

// logStmt logs.
type logStmt struct{ *expr.Log }

// generate is statement's.
func (s *logStmt) generate(g *generator) error {
	g.emit(s.Log)
	return nil
}

// maxLogPrefix is NF_LOG_PREFIXLEN without the NUL.
const maxLogPrefix = 127

// log evaluates a log statement.
func (r *ruleCompiler) log(s *syntax.Log) error {
	group := s.Group != nil || s.Snaplen != nil || s.QueueThreshold != nil
	switch {
	case group && s.Level != "":
		return errorAt(s.Pos, "log: level and group exclude each other")
	case group && len(s.Flags) > 0:
		return errorAt(s.Pos, "log: flags and group exclude each other")
	case s.Level == "audit" && (s.Prefix != nil || len(s.Flags) > 0):
		return errorAt(s.Pos, "log: level audit takes no other option")
	case s.Prefix != nil && strings.IndexByte(*s.Prefix, '$') >= 0:
		return errorAt(s.Pos, "log: nft(8) takes a $ in the prefix for a variable, and there is none")
	case s.Prefix != nil && len(*s.Prefix) > maxLogPrefix:
		return errorAt(s.Pos, "log: prefix has %d bytes: at most %d are possible", len(*s.Prefix), maxLogPrefix)
	}
	l := &expr.Log{}
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
			return errorAt(s.Pos, "log: unknown level %q", s.Level)
		}
		l.Key |= 1 << unix.NFTA_LOG_LEVEL
		l.Level = level
	}
	for _, f := range s.Flags {
		l.Key |= 1 << unix.NFTA_LOG_FLAGS
		l.Flags |= logFlag(f)
	}
	r.add(&logStmt{l})
	return nil
}

// logLevel returns the number of a log level.
func logLevel(name string) (expr.LogLevel, bool) {
	for i, s := range [...]string{"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"} {
		if s == name {
			return expr.LogLevel(i), true
		}
	}
	return 0, false
}

// logFlag returns the bits of a log flag.
func logFlag(name string) expr.LogFlags {
	switch name {
	case "tcp sequence":
		return expr.LogFlagsTCPSeq
	case "tcp options":
		return expr.LogFlagsTCPOpt
	case "ip options":
		return expr.LogFlagsIPOpt
	case "skuid":
		return expr.LogFlagsUID
	case "ether":
		return expr.LogFlagsMACDecode
	default: // "all"
		return expr.LogFlagsMask
	}
}

// limitStmt limits a rate.
type limitStmt struct{ *expr.Limit }

// generate is statement's.
func (s *limitStmt) generate(g *generator) error {
	g.emit(s.Limit)
	return nil
}

// limit evaluates a limit statement.
func (r *ruleCompiler) limit(s *syntax.Limit) error {
	l, err := newLimit(s)
	if err != nil {
		return err
	}
	r.add(&limitStmt{l})
	return nil
}

// newLimit makes a limit expression.
func newLimit(s *syntax.Limit) (*expr.Limit, error) {
	if s.Rate == 0 {
		return nil, errorAt(s.Pos, "limit: the rate is 0: want 1 or more")
	}
	seconds, ok := datatype.TimeUnits.Size(s.Per)
	if !ok {
		return nil, errorAt(s.Pos, "limit: unknown unit of time %q", s.Per)
	}
	l := &expr.Limit{Rate: s.Rate, Over: s.Over, Type: expr.LimitTypePkts, Unit: expr.LimitTime(seconds), Burst: defaultBurst}
	if s.Unit != "" {
		l.Type, l.Burst = expr.LimitTypePktBytes, 0
		if l.Rate, ok = datatype.ByteUnits.Scale(s.Rate, s.Unit); !ok {
			return nil, errorAt(s.Pos, "limit: the rate is too large")
		}
	}
	if s.BurstUnit == "" {
		return l, checkTokens(s, l)
	}
	if (s.BurstUnit == "packets") != (s.Unit == "") {
		return nil, errorAt(s.Pos, "limit: rate and burst must both be in packets, or both in bytes")
	}
	burst := s.Burst
	if s.BurstUnit != "packets" {
		burst, ok = datatype.ByteUnits.Scale(burst, s.BurstUnit)
	}
	if !ok || burst > 1<<32-1 {
		return nil, errorAt(s.Pos, "limit: the burst is too large")
	}
	if burst == 0 && s.Unit == "" {
		return nil, errorAt(s.Pos, "limit: the burst is 0: want 1 or more")
	}
	l.Burst = uint32(burst)
	return l, checkTokens(s, l)
}

// checkTokens refuses what the kernel cannot compute in 64 bits of
// nanoseconds (nft_limit_init).
func checkTokens(s *syntax.Limit, l *expr.Limit) error {
	if l.Type != expr.LimitTypePktBytes {
		if l.Rate+uint64(l.Burst) < l.Rate {
			return errorAt(s.Pos, "limit: rate and burst are too large")
		}
		return nil
	}
	unit := uint64(l.Unit) * uint64(time.Second)
	if l.Rate+uint64(l.Burst) > (1<<64-1)/unit {
		return errorAt(s.Pos, "limit: rate and burst are too large for a %s", s.Per)
	}
	return nil
}

// defaultBurst is the burst that nft gives a limit in packets without one.
const defaultBurst = 5

// limitOf is the inverse of newLimit. It leaves out a burst that nft adds.
func limitOf(l *expr.Limit) (*syntax.Limit, error) {
	s := &syntax.Limit{Over: l.Over, Rate: l.Rate}
	var ok bool
	if s.Per, ok = datatype.TimeUnits.Name(uint64(l.Unit)); !ok {
		return nil, fmt.Errorf("limit: unknown unit of time of %d seconds", uint64(l.Unit))
	}
	if l.Type == expr.LimitTypePktBytes {
		s.Rate, s.Unit = datatype.ByteUnits.Reduce(l.Rate)
		if l.Burst != 0 {
			s.Burst, s.BurstUnit = datatype.ByteUnits.Reduce(uint64(l.Burst))
		}
	} else if l.Burst != 0 && l.Burst != defaultBurst {
		s.Burst, s.BurstUnit = uint64(l.Burst), "packets"
	}
	return s, nil
}

// assignStmt assigns to packet or connection metadata.
type assignStmt struct {
	meta *metaKey
	ct   *ctKey
	// dir is that of the ct key.
	dir   int
	value term
}

// assign evaluates "TARGET set VALUE".
func (r *ruleCompiler) assign(s *syntax.Assign) error {
	out := &assignStmt{dir: noDirection}
	var w want
	switch target := s.Target.(type) {
	case *syntax.Payload, *syntax.RawPayload:
		return r.assignField(s)
	case *syntax.Meta:
		out.meta = metaByName(target.Key)
		if out.meta == nil || !out.meta.settable {
			return errorAt(target.Pos, "meta %s cannot be set", target.Key)
		}
		w = want{typ: out.meta.typ, width: out.meta.bits, order: out.meta.order}
	case *syntax.CT:
		out.ct = ctByName("", target.Key)
		if out.ct == nil || !out.ct.settable || target.L3 != "" {
			return errorAt(target.Pos, "%s cannot be set", syntax.PrintExpr(target))
		}
		switch {
		case target.Dir != "" && out.ct.direction == directionNever:
			return errorAt(target.Pos, "ct %s has no direction: write ct %s set", out.ct.name, out.ct.name)
		case target.Dir != "":
			out.dir = directionOf(target.Dir)
		}
		w = want{typ: out.ct.typ, width: out.ct.bits, order: out.ct.order}
	case *syntax.Exthdr:
		return r.assignExthdr(s, target)
	default:
		return errorAt(s.Target.Position(), "%s cannot be set", describe(s.Target))
	}
	if err := checkAssigned(s); err != nil {
		return err
	}
	var err error
	if out.value, err = r.argument(s.Value, w); err != nil {
		return err
	}
	if !isSingle(out.value) && isConstant(out.value) {
		return errorAt(s.Value.Position(), "%s is more than one value", describe(s.Value))
	}
	r.add(out)
	return nil
}

// argument evaluates a value that must have a type.
func (r *ruleCompiler) argument(x syntax.Expr, w want) (term, error) {
	t, err := r.eval(x, w)
	if err != nil {
		return nil, err
	}
	if err := checkArgument(x, t, w); err != nil {
		return nil, err
	}
	if _, ok := t.(*rtTerm); ok {
		// Of all that can be assigned, nft converts this alone.
		return toOrder(t, w.order), nil
	}
	return t, nil
}

// checkArgument checks the type of a value. Integers go everywhere.
func checkArgument(x syntax.Expr, t term, w want) error {
	info := t.info()
	typ := sourceType(t)
	_, payload := t.(*payloadTerm)
	switch {
	case w.typ == nil:
	case typ == datatype.Integer && (!payload || info.bits == w.width):
		// The kernel wants registers that were written in full.
		if !isConstant(t) && info.slots() < (w.width+31)/32 {
			return errorAt(x.Position(), "%s has %d bits: want the %d of %s", describe(x), info.bits, w.width, w.name())
		}
	case typ == datatype.Integer && w.typ == datatype.Integer:
		return errorAt(x.Position(), "datatype mismatch: want %d bits, %s has %d", w.width, describe(x), info.bits)
	case typ != w.typ:
		return errorAt(x.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(x), typeName(t))
	}
	return nil
}

// generate is statement's.
func (s *assignStmt) generate(g *generator) error {
	defer g.regs.reset()
	reg, err := g.loadNew(s.value)
	if err != nil {
		return err
	}
	if s.meta != nil {
		g.emit(&expr.Meta{Key: s.meta.key, SourceRegister: true, Register: reg.number()})
		return nil
	}
	g.emitOwn(&CT{Key: s.ct.key, Register: reg.number(), Set: true, Dir: s.dir})
	return nil
}
