package expr

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestOwnExpressions marshals, unmarshals and prints each of our own
// expressions.
func TestOwnExpressions(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    Expr
		list string
	}{
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 4, Mask: []byte{255, 0, 0, 0}, Xor: []byte{0, 0, 0, 1}}, "bitwise reg 1 = ( reg 1 & 0x000000ff ) ^ 0x01000000"},
		{"bitwise", &Bitwise{Source: 1, Dest: 9, Len: 4, Op: BitwiseLshift, Shift: 8}, "bitwise reg 9 = ( reg 1 << 0x00000008 )"},
		{"ct", &CT{Key: unix.NFT_CT_DST_IP, Dest: 1, Direction: selector.DirectionReply}, "ct load dst_ip => reg 1 , dir reply"},
		{"socket", &Socket{Key: 3, Level: 2, Register: 9}, "socket load cgroupv2 => reg 9"},
		{"osf", &OSF{Register: 1, TTL: OSFTTLNoCheck, Version: true}, "osf dreg 1"},
		{"xfrm", &Xfrm{Key: 4, Dir: 1, Spnum: 3, Register: 1}, "xfrm load out 3 saddr6 => reg 1"},
		{"hash", &Hash{Source: 2, Len: 8, Dest: 1, Mod: 5, Seed: new(uint32), Offset: 7}, "hash reg 1 = jhash(reg 2, 8, 0x0) % mod 5 offset 7"},
		{"masq", &Masq{MinPort: 1, MaxPort: 2, Flags: 6}, "masq proto_min reg 1 proto_max reg 2 flags 0x6"},
		{"payload", &PayloadWrite{Source: 1, Base: 1, Offset: 8, Len: 2, CsumKind: 1, CsumOffset: 10}, "payload write reg 1 => 2b @ network header + 8 csum_type 1 csum_off 10 csum_flags 0x0"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv6, Type: 44, Len: 1, Present: true, Dest: 1}, "exthdr load ipv6 1b @ 44 + 0 present => reg 1"},
		{"dynset", &Dynset{Op: 1, Key: 1, Data: 2, SetName: "s", SetID: 3, Timeout: 5 * time.Second}, "dynset update reg_key 1 set s sreg_data 2 timeout 5000ms"},
		{"objref", &ObjrefMap{Register: 1, SetName: "__objmap%d", SetID: 4}, "objref sreg 1 set __objmap%d"},
		{"queue", &Queue{Num: 2, Total: 4, Flags: unix.NFT_QUEUE_FLAG_BYPASS | unix.NFT_QUEUE_FLAG_CPU_FANOUT}, "queue num 2-5 bypass fanout"},
		{"dup", &Dup{Addr: 1, Device: 2}, "dup sreg_addr 1 sreg_dev 2"},
		{"fwd", &Fwd{Device: 1, Addr: 2, Family: 10}, "fwd sreg_dev 1 sreg_addr 2 nfproto 10"},
		{"tproxy", &TProxy{Family: 10, Addr: 1, Port: 2}, "tproxy ip6 addr reg 1 port reg 2"},
		{"flow_offload", &FlowOffload{Flowtable: "f"}, "flow_offload flowtable f"},
	} {
		b := marshalled(t, tt.e, tt.list)
		if name, _, err := Split(b); err != nil || name != tt.name {
			t.Errorf("%s: name %q, %v", tt.name, name, err)
		}
	}
}

// marshalled lists, marshals and decodes an expression, also from truncated bytes.
func marshalled(t *testing.T, e Expr, list string) []byte {
	t.Helper()
	if got := Format(e); got != list {
		t.Errorf("%q: want %q", got, list)
	}
	b, err := Marshal(e)
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	name, data, err := Split(b)
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	again := newExpr(name, data)
	if err := Unmarshal(data, again); err != nil || !reflect.DeepEqual(again, e) {
		t.Errorf("%s: unmarshalled as %+v, %v: want %+v", list, again, err, e)
	}
	for n := range data {
		_ = Unmarshal(data[:n], again) // must not panic
	}
	return b
}

// TestSetNumbers marshals the numbers of anonymous sets, which are counted from a
// base, and those of named sets, which stay 0.
func TestSetNumbers(t *testing.T) {
	list := []Expr{
		Library{&google.Lookup{SourceRegister: 1, SetName: "named"}},
		Library{&google.Lookup{SourceRegister: 1, SetName: "__set%d", SetID: 1}},
		&Dynset{Key: 1, SetName: "meter", SetID: 2, Exprs: []Expr{Library{&google.Counter{}}, Library{&google.Connlimit{}}}},
		&ObjrefMap{Register: 1, SetName: "__objmap%d", SetID: 3},
	}
	encoded := nfttest.Must(Encode(list))
	based := encoded.At(0x01020300)
	if len(encoded.ids) != 3 || bytes.Equal(based, encoded.Bytes) {
		t.Errorf("numbers at %v: want three", encoded.ids)
	}
	for i, at := range encoded.ids {
		if want := []byte{1, 2, 3, byte(i + 1)}; !bytes.Equal(based[at:at+4], want) {
			t.Errorf("number %d is %x, want %x", i+1, based[at:at+4], want)
		}
	}
	if _, err := Encode(make([]Expr, maxExprs+1)); err == nil {
		t.Error("a rule of too many expressions was marshalled")
	}
}

// TestStatefulRoundTrip encodes statements that keep a state, and decodes them again.
func TestStatefulRoundTrip(t *testing.T) {
	for text, want := range map[string]string{
		"counter":                                        "",
		"limit rate 10/second burst 5 packets":           "limit rate 10/second",
		"limit rate over 7/week burst 9 packets":         "",
		"limit rate 2048 kbytes/minute":                  "limit rate 2 mbytes/minute",
		"limit rate 1025 bytes/day burst 3 kbytes":       "",
		"quota 25 mbytes":                                "",
		"quota over 25 mbytes used 1 kbytes":             "",
		"ct count over 20":                               "",
		"limit rate 18446744073709551610/second":         "",
		"quota over 9223372036854775807 bytes":           "",
		"limit rate 1/hour burst 4294967295 packets":     "",
		"limit rate over 10 mbytes/second burst 1 bytes": "",
	} {
		if want == "" {
			want = text
		}
		words, err := ParseStateful(text)
		if err != nil || len(words) != 1 || words[0] != want {
			t.Errorf("%s: canonical words %q, %v: want %q", text, words, err, want)
			continue
		}
		b, err := EncodeStateful(words[0])
		if err != nil {
			t.Errorf("%s: encode: %v", text, err)
			continue
		}
		if got, err := FormatStateful(b); err != nil || got != want {
			t.Errorf("%s: decodes to %q, %v: want %q", text, got, err, want)
		}
		for n := range b {
			_, _ = FormatStateful(b[:n]) // must not panic
		}
	}
}

func TestStatefulErrors(t *testing.T) {
	for text, want := range map[string]string{
		"limit rate 0/second":                            "the rate is 0",
		"limit rate 10/second burst 0 packets":           "the burst is 0",
		"limit rate 10/second burst 5 bytes":             "both be in packets",
		"limit rate 1 kbytes/second burst 5 packets":     "both be in packets",
		"limit rate 10/second burst 4294967296 packets":  "want a burst of at most 4294967295",
		"limit rate 18446744073709551615/second":         "rate and burst are too large",
		"limit rate 18446744073709551615 mbytes/second":  "rate is too large",
		"limit rate 18446744073709551615 bytes/week":     "too large for a week",
		"quota 9223372036854775808 bytes":                "amount is too large",
		"quota 1 bytes used 2 bytes":                     "more is used",
		"accept":                                         "",
		"limit rate 10/fortnight":                        "",
		"counter packets 18446744073709551616 bytes 180": "",
	} {
		if _, err := ParseStateful(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	for _, text := range []string{"accept", "counter; counter", ""} {
		if _, err := EncodeStateful(text); err == nil {
			t.Errorf("%q was encoded", text)
		}
	}
	if _, err := NewStateful(&syntax.Limit{Rate: 1, Per: "fortnight"}); err == nil {
		t.Error("a limit per fortnight was accepted")
	}
	if _, err := NewStateful(&syntax.Verdict{}); err == nil {
		t.Error("a verdict keeps a state")
	}
	if _, err := StatefulStmt(&Dup{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("dup: %v, want ErrUnsupported", err)
	}
	if _, err := DecodeStateful("dup", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("dup: %v, want ErrUnsupported", err)
	}
	if _, err := StatefulStmt(Library{&google.Limit{Rate: 1, Unit: 7}}); err == nil {
		t.Error("a limit per 7 seconds was accepted")
	}
	if e, err := NewStateful(&syntax.Counter{}); err != nil || e.Any == nil {
		t.Errorf("counter: %v, %v", e, err)
	}
}

func TestWithoutTable(t *testing.T) {
	for want, e := range map[string]google.Any{
		"meta load unknown => reg 1":       &google.Meta{Key: 77, Register: 1},
		"cmp unknown reg 9 0x00000001":     &google.Cmp{Op: 9, Register: 9, Data: []byte{1}},
		"lookup reg 1 set m dreg 0":        &google.Lookup{SourceRegister: 1, SetName: "m", IsDestRegSet: true},
		"reject type 0 code 3":             &google.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3},
		"quota bytes 7 consumed 0 flags 1": &google.Quota{Bytes: 7, Over: true},
	} {
		marshalled(t, Library{e}, want)
	}
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

// TestOwnTypesAreNeeded fails when google/nftables marshals an expression as nft(8)
// does. Then the type of this package can be deleted.
func TestOwnTypesAreNeeded(t *testing.T) {
	for _, tt := range []struct {
		lacks   string
		own     Expr
		library google.Any
	}{
		{"the operation of bitwise", &Bitwise{Source: 1, Dest: 1, Len: 1, Mask: []byte{1}, Xor: []byte{0}}, &google.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{1}, Xor: []byte{0}}},
		{"a direction of one byte", &CT{Key: unix.NFT_CT_SRC, Dest: 1, Direction: selector.DirectionReply}, &google.Ct{Key: google.CtKeySRC, Register: 1, Direction: 1}},
		{"dup without an address", &Dup{Device: 1}, &google.Dup{RegDev: 1, IsRegDevSet: true}},
		{"dynset without flags", &Dynset{Key: 1, SetName: "s"}, &google.Dynset{SrcRegKey: 1, SetName: "s"}},
		{"loads of exthdr without flags", &Exthdr{Dest: 1, Op: selector.ExthdrTCP, Type: 2, Len: 2}, &google.Exthdr{DestRegister: 1, Op: google.ExthdrOpTcpopt, Type: 2, Len: 2}},
		{"a flowtable's name with its NUL", &FlowOffload{Flowtable: "f"}, &google.FlowOffload{Name: "f"}},
		{"symhash without a source", &Hash{Dest: 1, Mod: 2, Type: unix.NFT_HASH_SYM}, &google.Hash{DestRegister: 1, Modulus: 2, Type: google.HashTypeSym}},
		{"a seed of 0", &Hash{Source: 1, Len: 4, Dest: 1, Mod: 2, Seed: new(uint32)}, &google.Hash{SourceRegister: 1, Length: 4, DestRegister: 1, Modulus: 2}},
		{"masq with ports and flags", &Masq{MinPort: 1, Flags: unix.NF_NAT_RANGE_PROTO_RANDOM}, &google.Masq{RegProtoMin: 1, ToPorts: true, Random: true}},
		{"the flag of the pseudo header without a checksum", &PayloadWrite{Source: 1, Len: 2, Pseudo: true}, &google.Payload{OperationType: google.PayloadWrite, SourceRegister: 1, Len: 2, CsumFlags: unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR}},
		{"queue without flags", &Queue{Num: 1, Total: 1}, &google.Queue{Num: 1, Total: 1}},
		{"nft's order of the attributes of socket", &Socket{Key: 1, Register: 1}, &google.Socket{Key: google.SocketKeyMark, Register: 1}},
		{"tproxy without a port", &TProxy{Family: unix.NFPROTO_IPV4, Addr: 1}, &google.TProxy{Family: unix.NFPROTO_IPV4, RegAddr: 1}},
	} {
		own := nfttest.Must(Marshal(tt.own))
		library := nfttest.Must(google.Marshal(2, tt.library))
		if bytes.Equal(own, library) {
			t.Errorf("google/nftables has %s now: use %T in place of %T", tt.lacks, tt.library, tt.own)
		}
	}
}

// TestLibraryLacks fails when google/nftables knows an expression that it did not
// know. The library parses the expressions in a dynset by their names.
func TestLibraryLacks(t *testing.T) {
	for _, name := range []string{"fwd", "osf", "xfrm", "counter"} {
		w := &writer{}
		var nested int
		w.b, nested = attr.OpenNested(nil, unix.NFTA_DYNSET_EXPR)
		w.b = attr.Close(attr.Close(w.b, w.open(name)), nested)
		var d google.Dynset
		nfttest.NoError(t, google.Unmarshal(2, w.b, &d))
		if known := len(d.Exprs) > 0; known != (name == "counter") {
			t.Errorf("google/nftables knows %s: %v", name, known)
		}
	}
}
