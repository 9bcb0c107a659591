package compile

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Dump returns a rule's expressions in libnftnl's notation, one in a line, as
// `nft --debug=netlink` prints them.
func (r *Rule) Dump() string {
	var b strings.Builder
	for _, e := range r.Exprs {
		b.WriteString("  [ ")
		b.WriteString(e.String())
		b.WriteString(" ]\n")
	}
	return b.String()
}

// dumpData returns data as libnftnl prints it: words of 32 bits in the
// machine's byte order, each with a blank before it.
func dumpData(data []byte) string {
	var b strings.Builder
	for i := 0; i < len(data); i += 4 {
		var word [4]byte
		copy(word[:], data[i:])
		fmt.Fprintf(&b, " 0x%08x", binary.NativeEndian.Uint32(word[:]))
	}
	return b.String()
}

// dumpKernelExpr prints an expression of google/nftables.
func dumpKernelExpr(e expr.Any) string {
	switch e := e.(type) {
	case *expr.Immediate:
		return fmt.Sprintf("immediate reg %d%s", e.Register, dumpData(e.Data))
	case *expr.Verdict:
		return "immediate reg 0 " + dumpVerdict(e)
	case *expr.Payload:
		return fmt.Sprintf("payload load %db @ %s header + %d => reg %d", e.Len, payloadBase(uint32(e.Base)), e.Offset, e.DestRegister)
	case *expr.Meta:
		if e.SourceRegister {
			return fmt.Sprintf("meta set %s with reg %d", metaDumpName(e.Key), e.Register)
		}
		return fmt.Sprintf("meta load %s => reg %d", metaDumpName(e.Key), e.Register)
	case *expr.Cmp:
		return fmt.Sprintf("cmp %s reg %d%s", cmpName(e.Op), e.Register, dumpData(e.Data))
	case *expr.Range:
		return fmt.Sprintf("range %s reg %d%s%s", cmpName(e.Op), e.Register, dumpData(e.FromData), dumpData(e.ToData))
	case *expr.Byteorder:
		op := "hton"
		if e.Op == expr.ByteorderNtoh {
			op = "ntoh"
		}
		return fmt.Sprintf("byteorder reg %d = %s(reg %d, %d, %d)", e.DestRegister, op, e.SourceRegister, e.Size, e.Len)
	case *expr.Lookup:
		return dumpLookup(e)
	case *expr.Fib:
		return dumpFib(e)
	case *expr.Numgen:
		return dumpNumgen(e)
	case *expr.Counter:
		return fmt.Sprintf("counter pkts %d bytes %d", e.Packets, e.Bytes)
	case *expr.Log:
		return dumpLog(e)
	case *expr.Limit:
		return dumpLimit(e)
	case *expr.Reject:
		return fmt.Sprintf("reject type %d code %d", e.Type, e.Code)
	case *expr.NAT:
		return dumpNAT(e)
	case *expr.Redir:
		return "redir" + dumpRegs(0, 0, e.RegisterProtoMin, e.RegisterProtoMax) + dumpFlags(e.Flags)
	case *expr.Notrack:
		return "notrack"
	default:
		return fmt.Sprintf("unknown %T", e)
	}
}

func dumpVerdict(e *expr.Verdict) string {
	switch e.Kind {
	case expr.VerdictAccept:
		return "accept"
	case expr.VerdictDrop:
		return "drop"
	case expr.VerdictContinue:
		return "continue"
	case expr.VerdictReturn:
		return "return"
	case expr.VerdictJump:
		return "jump -> " + e.Chain
	case expr.VerdictGoto:
		return "goto -> " + e.Chain
	default:
		return fmt.Sprintf("verdict %d", e.Kind)
	}
}

func cmpName(op expr.CmpOp) string {
	names := [...]string{"eq", "neq", "lt", "lte", "gt", "gte"}
	if int(op) < len(names) {
		return names[op]
	}
	return "unknown"
}

func dumpLookup(e *expr.Lookup) string {
	s := fmt.Sprintf("lookup reg %d set %s", e.SourceRegister, e.SetName)
	if e.IsDestRegSet {
		s += fmt.Sprintf(" dreg %d", e.DestRegister)
	}
	if e.Invert {
		s += " 0x1"
	}
	return s
}

func dumpFib(e *expr.Fib) string {
	var in []string
	for i, set := range []bool{e.FlagSADDR, e.FlagDADDR, e.FlagMARK, e.FlagIIF, e.FlagOIF} {
		if set {
			in = append(in, fibInputs[i])
		}
	}
	s := "fib " + strings.Join(in, " . ")
	switch {
	case e.ResultOIF:
		s += " oif"
	case e.ResultOIFNAME:
		s += " oifname"
	case e.ResultADDRTYPE:
		s += " type"
	}
	if e.FlagPRESENT {
		s += " present"
	}
	return fmt.Sprintf("%s => reg %d", s, e.Register)
}

func dumpNumgen(e *expr.Numgen) string {
	mode := "inc"
	if e.Type == unix.NFT_NG_RANDOM {
		mode = "random"
	}
	s := fmt.Sprintf("numgen reg %d = %s mod %d", e.Register, mode, e.Modulus)
	if e.Offset != 0 {
		s += fmt.Sprintf(" offset %d", e.Offset)
	}
	return s
}

func dumpLog(e *expr.Log) string {
	has := func(attr uint) bool { return e.Key&(1<<attr) != 0 }
	s := "log"
	if has(unix.NFTA_LOG_PREFIX) {
		s += " prefix " + string(e.Data)
	}
	if has(unix.NFTA_LOG_GROUP) {
		return s + fmt.Sprintf(" group %d snaplen %d qthreshold %d", e.Group, e.Snaplen, e.QThreshold)
	}
	if has(unix.NFTA_LOG_LEVEL) {
		s += fmt.Sprintf(" level %d", e.Level)
	}
	for _, f := range []struct {
		bit  expr.LogFlags
		name string
	}{
		{expr.LogFlagsTCPSeq, "tcpseq"}, {expr.LogFlagsTCPOpt, "tcpopt"}, {expr.LogFlagsIPOpt, "ipopt"},
		{expr.LogFlagsUID, "uid"}, {expr.LogFlagsMACDecode, "macdecode"},
	} {
		if e.Flags&f.bit != 0 {
			s += " " + f.name
		}
	}
	return s
}

func dumpLimit(e *expr.Limit) string {
	per, _ := datatype.TimeUnits.Name(uint64(e.Unit))
	typ, flags := "packets", 0
	if e.Type == expr.LimitTypePktBytes {
		typ = "bytes"
	}
	if e.Over {
		flags = 1
	}
	return fmt.Sprintf("limit rate %d/%s burst %d type %s flags 0x%x", e.Rate, per, e.Burst, typ, flags)
}

func dumpNAT(e *expr.NAT) string {
	kind, family := "dnat", "ip"
	if e.Type == expr.NATTypeSourceNAT {
		kind = "snat"
	}
	switch e.Family {
	case nfprotoIPv6:
		family = "ip6"
	case nfprotoInet:
		family = "inet"
	}
	flags := uint32(0)
	for _, f := range []struct {
		set bool
		bit uint32
	}{{e.Random, natRandom}, {e.FullyRandom, natFullyRandom}, {e.Persistent, natPersistent}, {e.Prefix, natNetmap}, {e.Specified, natSpecified}} {
		if f.set {
			flags |= f.bit
		}
	}
	return fmt.Sprintf("nat %s %s", kind, family) + dumpRegs(e.RegAddrMin, e.RegAddrMax, e.RegProtoMin, e.RegProtoMax) + dumpFlags(flags)
}

func dumpRegs(addrMin, addrMax, portMin, portMax uint32) string {
	s := ""
	for _, r := range []struct {
		name string
		reg  uint32
	}{{"addr_min", addrMin}, {"addr_max", addrMax}, {"proto_min", portMin}, {"proto_max", portMax}} {
		if r.reg != 0 {
			s += fmt.Sprintf(" %s reg %d", r.name, r.reg)
		}
	}
	return s
}

func dumpFlags(flags uint32) string {
	if flags == 0 {
		return ""
	}
	return fmt.Sprintf(" flags 0x%x", flags)
}
