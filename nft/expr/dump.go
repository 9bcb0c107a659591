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

// String is Expr's.
func (k Library) String() string {
	switch e := k.Any.(type) {
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
	case *google.Rt:
		return fmt.Sprintf("rt load %s => reg %d", selector.HostDumpName(selector.RtKeys[:], uint32(e.Key)), e.Register)
	case *google.Quota:
		return fmt.Sprintf("quota bytes %d consumed %d flags %d", e.Bytes, e.Consumed, flag(e.Over, unix.NFT_QUOTA_F_INV))
	case *google.Connlimit:
		return fmt.Sprintf("connlimit count %d flags %x", e.Count, e.Flags)
	case *google.SynProxy:
		return fmt.Sprintf("synproxy mss %d wscale %d", e.Mss, e.Wscale)
	case *google.Objref:
		return fmt.Sprintf("objref type %d name %s", e.Type, e.Name)
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
	return fmt.Sprintf("numgen reg %d = %s mod %d", e.Register, mode, e.Modulus) + dumpIf(" offset %d", e.Offset)
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
	typ := "packets"
	if e.Type == google.LimitTypePktBytes {
		typ = "bytes"
	}
	return fmt.Sprintf("limit rate %d/%s burst %d type %s flags 0x%x", e.Rate, per, e.Burst, typ, flag(e.Over, unix.NFT_LIMIT_F_INV))
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
	flags := flag(e.Random, unix.NF_NAT_RANGE_PROTO_RANDOM) | flag(e.FullyRandom, unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY) |
		flag(e.Persistent, unix.NF_NAT_RANGE_PERSISTENT) | flag(e.Prefix, unix.NF_NAT_RANGE_NETMAP) | flag(e.Specified, unix.NF_NAT_RANGE_PROTO_SPECIFIED)
	return fmt.Sprintf("nat %s %s", kind, family) + dumpRegs(e.RegAddrMin, e.RegAddrMax, e.RegProtoMin, e.RegProtoMax) + dumpFlags(flags)
}

func dumpRegs(addrMin, addrMax, portMin, portMax uint32) string {
	return dumpIf(" addr_min reg %d", addrMin) + dumpIf(" addr_max reg %d", addrMax) +
		dumpIf(" proto_min reg %d", portMin) + dumpIf(" proto_max reg %d", portMax)
}

func dumpFlags(flags uint32) string { return dumpIf(" flags 0x%x", flags) }

// dumpIf formats a register or number, and returns nothing for 0.
func dumpIf(format string, v uint32) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}
