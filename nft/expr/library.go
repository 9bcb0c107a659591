package expr

import (
	"encoding/binary"
	"fmt"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
)

// table saves the library's dozen allocations.
func (k Library) table(t *table) {
	switch e := k.Any.(type) {
	case *google.Immediate:
		t.name, t.format = "immediate", "immediate reg %[1]d%[2]s"
		t.add(unix.NFTA_IMMEDIATE_DREG, &e.Register)
		t.add(unix.NFTA_IMMEDIATE_DATA, (*data)(&e.Data))
	case *google.Verdict:
		t.name, t.format = "immediate", "immediate reg 0 %[2]s"
		t.add(unix.NFTA_IMMEDIATE_DREG, verdictRegister{})
		t.add(unix.NFTA_IMMEDIATE_DATA, (*verdict)(e))
	case *google.Payload:
		if e.OperationType != google.PayloadLoad {
			t.format = fmt.Sprintf("unknown %T", e)
			return
		}
		t.name, t.format = "payload", "payload load %[4]db @ %[2]s header + %[3]d => reg %[1]d"
		t.add(unix.NFTA_PAYLOAD_DREG, &e.DestRegister)
		t.addWord(unix.NFTA_PAYLOAD_BASE, (*uint32)(&e.Base), payloadBase)
		t.add(unix.NFTA_PAYLOAD_OFFSET, &e.Offset)
		t.add(unix.NFTA_PAYLOAD_LEN, &e.Len)
	case *google.Meta:
		t.name, t.format = "meta", "meta load %[1]s => reg %[2]d"
		register := uint16(unix.NFTA_META_DREG)
		if e.SourceRegister {
			t.format, register = "meta set %[1]s with reg %[2]d", unix.NFTA_META_SREG
		}
		t.addWord(unix.NFTA_META_KEY, (*uint32)(&e.Key), func(key uint32) string { return selector.MetaKeys.DumpName(key) })
		t.add(register, &e.Register)
	case *google.Cmp:
		t.name, t.format = "cmp", "cmp %[2]s reg %[1]d%[3]s"
		t.add(unix.NFTA_CMP_SREG, &e.Register)
		t.addWord(unix.NFTA_CMP_OP, (*uint32)(&e.Op), cmpName)
		t.add(unix.NFTA_CMP_DATA, (*data)(&e.Data))
	case *google.Range:
		t.name, t.format = "range", "range %[2]s reg %[1]d%[3]s%[4]s"
		t.addIf(e.Register > 0, unix.NFTA_RANGE_SREG, &e.Register, "")
		t.addWord(unix.NFTA_RANGE_OP, (*uint32)(&e.Op), cmpName)
		t.addIf(len(e.FromData) > 0, unix.NFTA_RANGE_FROM_DATA, (*data)(&e.FromData), "")
		t.addIf(len(e.ToData) > 0, unix.NFTA_RANGE_TO_DATA, (*data)(&e.ToData), "")
	case *google.Byteorder:
		t.name, t.format = "byteorder", "byteorder reg %[2]d = %[3]s(reg %[1]d, %[5]d, %[4]d)"
		t.add(unix.NFTA_BYTEORDER_SREG, &e.SourceRegister)
		t.add(unix.NFTA_BYTEORDER_DREG, &e.DestRegister)
		t.addWord(unix.NFTA_BYTEORDER_OP, (*uint32)(&e.Op), func(op uint32) string { return wordAt(op, "ntoh", "hton") })
		t.add(unix.NFTA_BYTEORDER_LEN, &e.Len)
		t.add(unix.NFTA_BYTEORDER_SIZE, &e.Size)
	case *google.Lookup:
		t.name, t.format = "lookup", "lookup reg %[1]d set %[4]s"
		t.addIf(e.SourceRegister != 0, unix.NFTA_LOOKUP_SREG, &e.SourceRegister, "")
		if t.addIf(e.IsDestRegSet, unix.NFTA_LOOKUP_DREG, &e.DestRegister, ""); e.IsDestRegSet {
			t.format = "lookup reg %[1]d set %[4]s dreg %[2]d"
		}
		t.addIf(e.Invert, unix.NFTA_LOOKUP_FLAGS, &e.Invert, " 0x%x")
		t.add(unix.NFTA_LOOKUP_SET, &e.SetName)
		t.add(unix.NFTA_LOOKUP_SET_ID, (*setID)(&e.SetID))
	case *google.Numgen:
		t.name, t.format = "numgen", "numgen reg %[1]d = %[3]s mod %[2]d"
		t.add(unix.NFTA_NG_DREG, &e.Register)
		t.add(unix.NFTA_NG_MODULUS, &e.Modulus)
		t.addWord(unix.NFTA_NG_TYPE, &e.Type, func(typ uint32) string { return wordAt(typ, "inc", "random") })
		t.addIf(true, unix.NFTA_NG_OFFSET, &e.Offset, " offset %d")
	default:
		t.statement(e)
	}
}

func (t *table) statement(e google.Any) {
	switch e := e.(type) {
	case *google.Reject:
		t.name, t.format = "reject", "reject type %[1]d code %[2]d"
		t.add(unix.NFTA_REJECT_TYPE, &e.Type)
		t.add(unix.NFTA_REJECT_ICMP_CODE, &e.Code)
	case *google.Redir:
		t.name = "redir"
		t.addIf(e.RegisterProtoMin > 0, unix.NFTA_REDIR_REG_PROTO_MIN, &e.RegisterProtoMin, " proto_min reg %d")
		t.addIf(e.RegisterProtoMax > 0, unix.NFTA_REDIR_REG_PROTO_MAX, &e.RegisterProtoMax, " proto_max reg %d")
		t.addIf(e.Flags > 0, unix.NFTA_REDIR_FLAGS, &e.Flags, " flags 0x%x")
	case *google.Rt:
		t.name, t.format = "rt", "rt load %[1]s => reg %[2]d"
		t.addWord(unix.NFTA_RT_KEY, (*uint32)(&e.Key), func(key uint32) string { return selector.RtKeys.DumpName(key) })
		t.add(unix.NFTA_RT_DREG, &e.Register)
	case *google.SynProxy:
		t.name, t.format = "synproxy", "synproxy mss %[1]d wscale %[2]d"
		t.add(google.NFTA_SYNPROXY_MSS, &e.Mss)
		t.add(google.NFTA_SYNPROXY_WSCALE, &e.Wscale)
		t.add(google.NFTA_SYNPROXY_FLAGS, attr.Bits{
			{To: &e.MssValueSet, Mask: google.NF_SYNPROXY_OPT_MSS}, {To: &e.WscaleValueSet, Mask: google.NF_SYNPROXY_OPT_WSCALE},
			{To: &e.SackPerm, Mask: google.NF_SYNPROXY_OPT_SACK_PERM}, {To: &e.Timestamp, Mask: google.NF_SYNPROXY_OPT_TIMESTAMP},
		})
	case *google.Notrack:
		t.name = "notrack"
	case *google.Counter, *google.Limit, *google.Quota, *google.Connlimit:
		t.stateful(e)
	default:
		t.format = fmt.Sprintf("unknown %T", e)
	}
}

func (t *table) stateful(e google.Any) {
	switch e := e.(type) {
	case *google.Counter:
		t.name, t.format = "counter", "counter pkts %[2]d bytes %[1]d"
		t.add(unix.NFTA_COUNTER_BYTES, &e.Bytes)
		t.add(unix.NFTA_COUNTER_PACKETS, &e.Packets)
	case *google.Limit:
		t.name, t.format = "limit", "limit rate %[1]d/%[2]s burst %[3]d type %[4]s flags 0x%[5]x"
		t.add(unix.NFTA_LIMIT_RATE, &e.Rate)
		t.addWord(unix.NFTA_LIMIT_UNIT, (*uint64)(&e.Unit), func(seconds uint32) string {
			name, _ := datatype.TimeUnits.Name(uint64(seconds))
			return name
		})
		t.add(unix.NFTA_LIMIT_BURST, &e.Burst)
		t.addWord(unix.NFTA_LIMIT_TYPE, (*uint32)(&e.Type), func(typ uint32) string { return wordAt(typ, "packets", "bytes") })
		t.add(unix.NFTA_LIMIT_FLAGS, &e.Over)
	case *google.Quota:
		t.name, t.format = "quota", "quota bytes %[1]d consumed %[2]d flags %[3]d"
		t.add(unix.NFTA_QUOTA_BYTES, &e.Bytes)
		t.add(unix.NFTA_QUOTA_CONSUMED, &e.Consumed)
		t.add(unix.NFTA_QUOTA_FLAGS, &e.Over)
	case *google.Connlimit:
		t.name, t.format = "connlimit", "connlimit count %[1]d flags %[2]x"
		t.add(google.NFTA_CONNLIMIT_COUNT, &e.Count)
		t.add(google.NFTA_CONNLIMIT_FLAGS, &e.Flags)
	}
}

type verdictRegister struct{}

func (verdictRegister) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return attr.AppendUint32BE(b, typ, unix.NFT_REG_VERDICT), nil
}

func (verdictRegister) ReadAttr(*attr.Reader) error { return nil }
func (verdictRegister) String() string              { return "0" }

type verdict google.Verdict

func (v *verdict) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return AppendVerdict(b, typ, uint32(v.Kind), v.Chain), nil
}

// AppendVerdict appends a NFTA_DATA_VERDICT.
func AppendVerdict(b []byte, typ uint16, code uint32, chain string) []byte {
	b, outer := attr.OpenNested(b, typ)
	b, inner := attr.OpenNested(b, unix.NFTA_DATA_VERDICT)
	b = attr.AppendUint32BE(b, unix.NFTA_VERDICT_CODE, code)
	if chain != "" {
		b = attr.AppendString(b, unix.NFTA_VERDICT_CHAIN, chain)
	}
	return attr.Close(attr.Close(b, inner), outer)
}

func (v *verdict) ReadAttr(r *attr.Reader) error {
	var code int32
	nested, _ := attr.Find(r.Bytes(), unix.NFTA_DATA_VERDICT)
	f := attr.Fields{attr.Always(unix.NFTA_VERDICT_CODE, &code), attr.Always(unix.NFTA_VERDICT_CHAIN, &v.Chain)}
	err := f.Read(nested.Bytes())
	v.Kind = google.VerdictKind(code)
	return err
}

func (v *verdict) String() string {
	return FormatVerdict(string(binary.BigEndian.AppendUint32(nil, uint32(v.Kind))) + v.Chain)
}

// FormatVerdict formats a packed verdict in libnftnl's notation.
func FormatVerdict(packed string) string {
	return strings.Replace(datatype.Verdict.Format([]byte(packed)), " ", " -> ", 1)
}

// DumpData formats 32-bit words in the machine's byte order, each after a blank.
func DumpData(data []byte) string {
	var b strings.Builder
	for i := 0; i < len(data); i += 4 {
		var word [4]byte
		copy(word[:], data[i:])
		fmt.Fprintf(&b, " 0x%08x", binary.NativeEndian.Uint32(word[:]))
	}
	return b.String()
}

func wordAt(i uint32, words ...string) string {
	if int(i) < len(words) {
		return words[i]
	}
	return "unknown"
}

func cmpName(op uint32) string { return wordAt(op, "eq", "neq", "lt", "lte", "gt", "gte") }

func payloadBase(base uint32) string { return wordAt(base, "link", "network", "transport", "inner") }
