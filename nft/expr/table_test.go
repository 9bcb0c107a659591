package expr

import (
	"bytes"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// libraryExpressions are expressions of google/nftables as rules have them, and how
// libnftnl lists them.
var libraryExpressions = []struct {
	e    google.Any
	list string
}{
	{&google.Immediate{Register: 1, Data: []byte{1, 2, 3, 4}}, "immediate reg 1 0x04030201"},
	{&google.Verdict{Kind: google.VerdictAccept}, "immediate reg 0 accept"},
	{&google.Verdict{Kind: google.VerdictDrop}, "immediate reg 0 drop"},
	{&google.Verdict{Kind: google.VerdictContinue}, "immediate reg 0 continue"},
	{&google.Verdict{Kind: google.VerdictReturn}, "immediate reg 0 return"},
	{&google.Verdict{Kind: google.VerdictJump, Chain: "c"}, "immediate reg 0 jump -> c"},
	{&google.Verdict{Kind: google.VerdictGoto, Chain: "c"}, "immediate reg 0 goto -> c"},
	{&google.Payload{DestRegister: 1, Base: 1, Offset: 12, Len: 4}, "payload load 4b @ network header + 12 => reg 1"},
	{&google.Meta{Key: unix.NFT_META_OIF, Register: 1}, "meta load oif => reg 1"},
	{&google.Meta{Key: unix.NFT_META_MARK, Register: 1, SourceRegister: true}, "meta set mark with reg 1"},
	{&google.Meta{Key: 77, Register: 1}, "meta load unknown => reg 1"},
	{&google.Cmp{Op: google.CmpOpGte, Register: 9, Data: []byte{1}}, "cmp gte reg 9 0x00000001"},
	{&google.Cmp{Op: 9, Register: 9, Data: []byte{1}}, "cmp unknown reg 9 0x00000001"},
	{&google.Range{Op: google.CmpOpNeq, Register: 1, FromData: []byte{0, 1}, ToData: []byte{0, 2}}, "range neq reg 1 0x00000100 0x00000200"},
	{&google.Byteorder{SourceRegister: 1, DestRegister: 2, Op: google.ByteorderHton, Len: 4, Size: 2}, "byteorder reg 2 = hton(reg 1, 2, 4)"},
	{&google.Lookup{SourceRegister: 1, SetName: "__set%d", SetID: 1}, "lookup reg 1 set __set%d"},
	{&google.Lookup{SourceRegister: 1, SetName: "s", Invert: true}, "lookup reg 1 set s 0x1"},
	{&google.Lookup{SourceRegister: 1, SetName: "m", IsDestRegSet: true}, "lookup reg 1 set m dreg 0"},
	{&google.Numgen{Register: 1, Modulus: 3, Type: unix.NFT_NG_RANDOM, Offset: 4}, "numgen reg 1 = random mod 3 offset 4"},
	{&google.Counter{Packets: 3, Bytes: 180}, "counter pkts 3 bytes 180"},
	{&google.Limit{Rate: 10, Unit: google.LimitTimeMinute, Burst: 5}, "limit rate 10/minute burst 5 type packets flags 0x0"},
	{&google.Limit{Rate: 1024, Unit: google.LimitTimeSecond, Type: google.LimitTypePktBytes, Over: true}, "limit rate 1024/second burst 0 type bytes flags 0x1"},
	{&google.Quota{Bytes: 7, Over: true}, "quota bytes 7 consumed 0 flags 1"},
	{&google.Connlimit{Count: 5, Flags: 1}, "connlimit count 5 flags 1"},
	{&google.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3}, "reject type 0 code 3"},
	{&google.Redir{RegisterProtoMin: 1, Flags: 2}, "redir proto_min reg 1 flags 0x2"},
	{&google.Rt{Key: google.RtNexthop4, Register: 1}, "rt load nexthop4 => reg 1"},
	{&google.Notrack{}, "notrack"},
	{&google.SynProxy{Mss: 1460, MssValueSet: true, Wscale: 7, WscaleValueSet: true, Timestamp: true}, "synproxy mss 1460 wscale 7"},
}

// TestLibraryExpressions marshals, unmarshals and lists expressions of google/nftables.
func TestLibraryExpressions(t *testing.T) {
	for _, tt := range libraryExpressions {
		got := marshalled(t, Library{tt.e}, tt.list)
		if want, err := google.Marshal(unix.NFPROTO_IPV4, tt.e); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: marshalled as\n%x, want\n%x (%v)", tt.list, got, want, err)
		}
	}
}

// TestPlainTypes compares types whose fields are the kernel's numbers with those of
// google/nftables, which have a field for each bit.
func TestPlainTypes(t *testing.T) {
	for _, tt := range []struct {
		e       Expr
		library google.Any
		list    string
	}{
		{&Fib{Register: 1, Flags: unix.NFTA_FIB_F_DADDR | unix.NFTA_FIB_F_IIF, Result: unix.NFT_FIB_RESULT_ADDRTYPE}, &google.Fib{Register: 1, ResultADDRTYPE: true, FlagDADDR: true, FlagIIF: true}, "fib daddr . iif type => reg 1"},
		{&Fib{Register: 1, Flags: unix.NFTA_FIB_F_SADDR | unix.NFTA_FIB_F_PRESENT, Result: unix.NFT_FIB_RESULT_OIF}, &google.Fib{Register: 1, ResultOIF: true, FlagSADDR: true, FlagPRESENT: true}, "fib saddr oif present => reg 1"},
		{&NAT{Type: unix.NFT_NAT_DNAT, Family: unix.NFPROTO_IPV4, AddrMin: 1, PortMin: 2}, &google.NAT{Type: google.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2}, "nat dnat ip addr_min reg 1 proto_min reg 2"},
		{
			&NAT{Family: unix.NFPROTO_IPV6, AddrMin: 1, AddrMax: 2, Flags: unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY | unix.NF_NAT_RANGE_PERSISTENT},
			&google.NAT{Type: google.NATTypeSourceNAT, Family: unix.NFPROTO_IPV6, RegAddrMin: 1, RegAddrMax: 2, FullyRandom: true, Persistent: true},
			"nat snat ip6 addr_min reg 1 addr_max reg 2 flags 0x18",
		},
		{&Objref{Type: 1, Name: "o"}, &google.Objref{Type: 1, Name: "o"}, "objref type 1 name o"},
		{&Objref{Type: 3, Name: "ftp"}, &google.Objref{Type: 3, Name: "ftp"}, "objref type 3 name ftp"},
		{&Log{Prefix: new("p%[1]d"), Level: new(uint32(4))}, &google.Log{Key: 1<<unix.NFTA_LOG_PREFIX | 1<<unix.NFTA_LOG_LEVEL, Data: []byte("p%[1]d"), Level: 4}, "log prefix p%[1]d level 4"},
		{
			&Log{Group: new(uint16(2)), Snaplen: new(uint32(3)), QThreshold: new(uint16(4))},
			&google.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN | 1<<unix.NFTA_LOG_QTHRESHOLD, Group: 2, Snaplen: 3, QThreshold: 4},
			"log group 2 snaplen 3 qthreshold 4",
		},
		{&Log{Group: new(uint16(2))}, &google.Log{Key: 1 << unix.NFTA_LOG_GROUP, Group: 2}, "log group 2 snaplen 0 qthreshold 0"},
		{&Log{Flags: new(uint32(google.LogFlagsTCPOpt | google.LogFlagsMACDecode))}, &google.Log{Key: 1 << unix.NFTA_LOG_FLAGS, Flags: google.LogFlagsTCPOpt | google.LogFlagsMACDecode}, "log tcpopt macdecode"},
	} {
		got := marshalled(t, tt.e, tt.list)
		if want, err := google.Marshal(unix.NFPROTO_IPV4, tt.library); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: marshalled as\n%x, want\n%x (%v)", tt.list, got, want, err)
		}
	}
}

func TestWithoutTable(t *testing.T) {
	if got := Format(Library{&google.Payload{OperationType: google.PayloadWrite}}); got != "unknown *expr.Payload" {
		t.Errorf("a payload that is written is listed as %q", got)
	}
	if _, err := Marshal(nothing{}); err == nil {
		t.Error("an expression without a table was marshalled")
	}
	if _, err := Encode([]Expr{&Dynset{SetName: "s", Exprs: []Expr{nothing{}}}}); err == nil {
		t.Error("an expression without a table was marshalled in a dynset")
	}
	if got := FormatVerdict("\xff\xff\xff\xfdc"); got != "jump -> c" {
		t.Errorf("jump c is listed as %q", got)
	}
	list := &Dynset{Op: DynsetDelete, Key: 1, SetName: "s", Exprs: []Expr{Library{&google.Counter{}}, Library{&google.Quota{}}}}
	if got, want := Format(list), "dynset delete reg_key 1 set s expr [ counter pkts 0 bytes 0 ] expr [ quota bytes 0 consumed 0 flags 0 ]"; got != want {
		t.Errorf("%q: want %q", got, want)
	}
}

// nothing is an expression without a table.
type nothing struct{}

func (nothing) table(*table) {}
