package expr

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
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
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 1, Op: BitwiseRshift, Shift: 2}, "bitwise reg 1 = ( reg 1 >> 0x00000002 )"},
		{"ct", &CT{Key: unix.NFT_CT_DST_IP, Dest: 1, Direction: selector.DirectionReply}, "ct load dst_ip => reg 1 , dir reply"},
		{"ct", &CT{Key: 3, Source: 1}, "ct set mark with reg 1"},
		{"socket", &Socket{Key: 3, Level: 2, Register: 9}, "socket load cgroupv2 => reg 9"},
		{"osf", &OSF{Register: 1, TTL: OSFTTLNoCheck, Version: true}, "osf dreg 1"},
		{"xfrm", &Xfrm{Key: 4, Dir: 1, Spnum: 3, Register: 1}, "xfrm load out 3 saddr6 => reg 1"},
		{"hash", &Hash{Source: 2, Len: 8, Dest: 1, Mod: 5, Seed: new(uint32), Offset: 7}, "hash reg 1 = jhash(reg 2, 8, 0x0) % mod 5 offset 7"},
		{"hash", &Hash{Dest: 1, Mod: 5, Type: 1}, "hash reg 1 = symhash() % mod 5"},
		{"ct", &CT{Key: 0x11, Source: 1, Direction: selector.DirectionReply}, "ct set zone with reg 1 , dir reply"},
		{"masq", &Masq{MinPort: 1, MaxPort: 2, Flags: 6}, "masq proto_min reg 1 proto_max reg 2 flags 0x6"},
		{"payload", &PayloadWrite{Source: 1, Base: 1, Offset: 8, Len: 2, CsumKind: 1, CsumOffset: 10}, "payload write reg 1 => 2b @ network header + 8 csum_type 1 csum_off 10 csum_flags 0x0"},
		{"payload", &PayloadWrite{Source: 9, Base: 3, Len: 4, Pseudo: true}, "payload write reg 9 => 4b @ inner header + 0 csum_type 0 csum_off 0 csum_flags 0x1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv6, Type: 44, Len: 1, Present: true, Dest: 1}, "exthdr load ipv6 1b @ 44 + 0 present => reg 1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv4, Type: 7, Offset: 2, Len: 1, Dest: 9}, "exthdr load ipv4 1b @ 7 + 2 => reg 9"},
		{"exthdr", &Exthdr{Op: selector.ExthdrSCTP, Type: 1, Offset: 4, Len: 4, Dest: 1}, "exthdr load 4b @ 1 + 4 => reg 1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrTCP, Type: 2, Offset: 2, Len: 2, Source: 1}, "exthdr write tcpopt reg 1 => 2b @ 2 + 2"},
		{"exthdr", &Exthdr{Op: selector.ExthdrTCP, Type: 8}, "exthdr reset tcpopt 8"},
		{"dynset", &Dynset{Op: 1, Key: 1, Data: 2, SetName: "s", SetID: 3, Timeout: 5 * time.Second}, "dynset update reg_key 1 set s sreg_data 2 timeout 5000ms"},
		{"objref", &ObjrefMap{Register: 1, SetName: "__objmap%d", SetID: 4}, "objref sreg 1 set __objmap%d"},
		{"queue", &Queue{Num: 2, Total: 4, Flags: unix.NFT_QUEUE_FLAG_BYPASS | unix.NFT_QUEUE_FLAG_CPU_FANOUT}, "queue num 2-5 bypass fanout"},
		{"queue", &Queue{Register: 1, Flags: unix.NFT_QUEUE_FLAG_BYPASS}, "queue sreg_qnum 1 bypass"},
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
	encoded, err := Encode(list)
	if err != nil {
		t.Fatal(err)
	}
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
