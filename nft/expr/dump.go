package expr

import (
	"encoding/binary"
	"fmt"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
)

// DumpData returns data as libnftnl prints it: words of 32 bits in the
// machine's byte order, each with a blank before it.
func DumpData(data []byte) string {
	var b strings.Builder
	for i := 0; i < len(data); i += 4 {
		var word [4]byte
		copy(word[:], data[i:])
		fmt.Fprintf(&b, " 0x%08x", binary.NativeEndian.Uint32(word[:]))
	}
	return b.String()
}

// DumpKernelExpr prints an expression of google/nftables.
func DumpKernelExpr(e google.Any) string {
	switch e := e.(type) {
	case *google.Immediate:
		return fmt.Sprintf("immediate reg %d%s", e.Register, DumpData(e.Data))
	case *google.Verdict:
		return "immediate reg 0 " + dumpVerdict(e)
	case *google.Payload:
		return fmt.Sprintf("payload load %db @ %s header + %d => reg %d", e.Len, payloadBase(uint32(e.Base)), e.Offset, e.DestRegister)
	case *google.Meta:
		if e.SourceRegister {
			return fmt.Sprintf("meta set %s with reg %d", selector.MetaDumpName(e.Key), e.Register)
		}
		return fmt.Sprintf("meta load %s => reg %d", selector.MetaDumpName(e.Key), e.Register)
	case *google.Cmp:
		return fmt.Sprintf("cmp %s reg %d%s", cmpName(e.Op), e.Register, DumpData(e.Data))
	case *google.Range:
		return fmt.Sprintf("range %s reg %d%s%s", cmpName(e.Op), e.Register, DumpData(e.FromData), DumpData(e.ToData))
	case *google.Byteorder:
		op := "hton"
		if e.Op == google.ByteorderNtoh {
			op = "ntoh"
		}
		return fmt.Sprintf("byteorder reg %d = %s(reg %d, %d, %d)", e.DestRegister, op, e.SourceRegister, e.Size, e.Len)
	case *google.Lookup:
		return dumpLookup(e)
	case *google.Fib:
		return dumpFib(e)
	case *google.Numgen:
		return dumpNumgen(e)
	case *google.Counter:
		return fmt.Sprintf("counter pkts %d bytes %d", e.Packets, e.Bytes)
	case *google.Log:
		return dumpLog(e)
	case *google.Limit:
		return dumpLimit(e)
	case *google.Reject:
		return fmt.Sprintf("reject type %d code %d", e.Type, e.Code)
	case *google.NAT:
		return dumpNAT(e)
	case *google.Redir:
		return "redir" + dumpRegs(0, 0, e.RegisterProtoMin, e.RegisterProtoMax) + dumpFlags(e.Flags)
	case *google.Notrack:
		return "notrack"
	default:
		return fmt.Sprintf("unknown %T", e)
	}
}

func dumpVerdict(e *google.Verdict) string {
	switch e.Kind {
	case google.VerdictAccept:
		return "accept"
	case google.VerdictDrop:
		return "drop"
	case google.VerdictContinue:
		return "continue"
	case google.VerdictReturn:
		return "return"
	case google.VerdictJump:
		return "jump -> " + e.Chain
	case google.VerdictGoto:
		return "goto -> " + e.Chain
	default:
		return fmt.Sprintf("verdict %d", e.Kind)
	}
}

func cmpName(op google.CmpOp) string {
	names := [...]string{"eq", "neq", "lt", "lte", "gt", "gte"}
	if int(op) < len(names) {
		return names[op]
	}
	return "unknown"
}

func dumpLookup(e *google.Lookup) string {
	s := fmt.Sprintf("lookup reg %d set %s", e.SourceRegister, e.SetName)
	if e.IsDestRegSet {
		s += fmt.Sprintf(" dreg %d", e.DestRegister)
	}
	if e.Invert {
		s += " 0x1"
	}
	return s
}

func dumpFib(e *google.Fib) string {
	var in []string
	for i, set := range []bool{e.FlagSADDR, e.FlagDADDR, e.FlagMARK, e.FlagIIF, e.FlagOIF} {
		if set {
			in = append(in, selector.FIBInputs[i])
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

func dumpNumgen(e *google.Numgen) string {
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

func dumpLog(e *google.Log) string {
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
		bit  google.LogFlags
		name string
	}{
		{google.LogFlagsTCPSeq, "tcpseq"}, {google.LogFlagsTCPOpt, "tcpopt"}, {google.LogFlagsIPOpt, "ipopt"},
		{google.LogFlagsUID, "uid"}, {google.LogFlagsMACDecode, "macdecode"},
	} {
		if e.Flags&f.bit != 0 {
			s += " " + f.name
		}
	}
	return s
}

func dumpLimit(e *google.Limit) string {
	per, _ := datatype.TimeUnits.Name(uint64(e.Unit))
	typ, flags := "packets", 0
	if e.Type == google.LimitTypePktBytes {
		typ = "bytes"
	}
	if e.Over {
		flags = 1
	}
	return fmt.Sprintf("limit rate %d/%s burst %d type %s flags 0x%x", e.Rate, per, e.Burst, typ, flags)
}

func dumpNAT(e *google.NAT) string {
	kind, family := "dnat", "ip"
	if e.Type == google.NATTypeSourceNAT {
		kind = "snat"
	}
	switch e.Family {
	case selector.NFProtoIPv6:
		family = "ip6"
	case selector.NFProtoInet:
		family = "inet"
	}
	flags := uint32(0)
	for _, f := range []struct {
		set bool
		bit uint32
	}{{e.Random, NatRandom}, {e.FullyRandom, NatFullyRandom}, {e.Persistent, NatPersistent}, {e.Prefix, NatNetmap}, {e.Specified, NatSpecified}} {
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
