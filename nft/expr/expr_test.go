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
		name  string
		e     Expr
		blank Expr
		dump  string
	}{
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 4, Mask: []byte{255, 0, 0, 0}, Xor: []byte{0, 0, 0, 1}}, &Bitwise{}, "bitwise reg 1 = ( reg 1 & 0x000000ff ) ^ 0x01000000"},
		{"bitwise", &Bitwise{Source: 1, Dest: 9, Len: 4, Op: BitwiseLshift, Shift: 8}, &Bitwise{}, "bitwise reg 9 = ( reg 1 << 0x00000008 )"},
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 1, Op: BitwiseRshift, Shift: 2}, &Bitwise{}, "bitwise reg 1 = ( reg 1 >> 0x00000002 )"},
		{"ct", &CT{Key: unix.NFT_CT_DST_IP, Dest: 1, Direction: selector.DirectionReply}, &CT{}, "ct load dst_ip => reg 1 , dir reply"},
		{"ct", &CT{Key: 3, Source: 1}, &CT{}, "ct set mark with reg 1"},
		{"socket", &Socket{Key: 3, Level: 2, Register: 9}, &Socket{}, "socket load cgroupv2 => reg 9"},
		{"osf", &OSF{Register: 1, TTL: OSFTTLNoCheck, Version: true}, &OSF{}, "osf dreg 1"},
		{"xfrm", &Xfrm{Key: 4, Dir: 1, Spnum: 3, Register: 1}, &Xfrm{}, "xfrm load out 3 saddr6 => reg 1"},
		{"hash", &Hash{Source: 2, Len: 8, Dest: 1, Mod: 5, Seed: new(uint32), Offset: 7}, &Hash{}, "hash reg 1 = jhash(reg 2, 8, 0x0) % mod 5 offset 7"},
		{"hash", &Hash{Dest: 1, Mod: 5, Type: 1}, &Hash{}, "hash reg 1 = symhash() % mod 5"},
		{"ct", &CT{Key: 0x11, Source: 1, Direction: selector.DirectionReply}, &CT{}, "ct set zone with reg 1 , dir reply"},
		{"masq", &Masq{MinPort: 1, MaxPort: 2, Flags: 6}, &Masq{}, "masq proto_min reg 1 proto_max reg 2 flags 0x6"},
		{"payload", &PayloadWrite{Source: 1, Base: 1, Offset: 8, Len: 2, CsumKind: 1, CsumOffset: 10}, &PayloadWrite{}, "payload write reg 1 => 2b @ network header + 8 csum_type 1 csum_off 10 csum_flags 0x0"},
		{"payload", &PayloadWrite{Source: 9, Base: 3, Len: 4, Pseudo: true}, &PayloadWrite{}, "payload write reg 9 => 4b @ inner header + 0 csum_type 0 csum_off 0 csum_flags 0x1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv6, Type: 44, Len: 1, Present: true, Dest: 1}, &Exthdr{}, "exthdr load ipv6 1b @ 44 + 0 present => reg 1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv4, Type: 7, Offset: 2, Len: 1, Dest: 9}, &Exthdr{}, "exthdr load ipv4 1b @ 7 + 2 => reg 9"},
		{"exthdr", &Exthdr{Op: selector.ExthdrSCTP, Type: 1, Offset: 4, Len: 4, Dest: 1}, &Exthdr{}, "exthdr load 4b @ 1 + 4 => reg 1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrTCP, Type: 2, Offset: 2, Len: 2, Source: 1}, &Exthdr{}, "exthdr write tcpopt reg 1 => 2b @ 2 + 2"},
		{"exthdr", &Exthdr{Op: selector.ExthdrTCP, Type: 8}, &Exthdr{}, "exthdr reset tcpopt 8"},
		{"dynset", &Dynset{Op: 1, Key: 1, Data: 2, SetName: "s", SetID: 3, Timeout: 5 * time.Second}, &Dynset{}, "dynset update reg_key 1 set s sreg_data 2 timeout 5000ms"},
		{"objref", &ObjrefMap{Register: 1, SetName: "__objmap%d", SetID: 4}, &ObjrefMap{}, "objref sreg 1 set __objmap%d"},
		{"queue", &Queue{Num: 2, Total: 4, Flags: unix.NFT_QUEUE_FLAG_BYPASS | unix.NFT_QUEUE_FLAG_CPU_FANOUT}, &Queue{}, "queue num 2-5 bypass fanout"},
		{"queue", &Queue{Register: 1, Flags: unix.NFT_QUEUE_FLAG_BYPASS}, &Queue{}, "queue sreg_qnum 1 bypass"},
		{"dup", &Dup{Addr: 1, Device: 2}, &Dup{}, "dup sreg_addr 1 sreg_dev 2"},
		{"fwd", &Fwd{Device: 1, Addr: 2, Family: 10}, &Fwd{}, "fwd sreg_dev 1 sreg_addr 2 nfproto 10"},
		{"tproxy", &TProxy{Family: 10, Addr: 1, Port: 2}, &TProxy{}, "tproxy ip6 addr reg 1 port reg 2"},
		{"flow_offload", &FlowOffload{Flowtable: "f"}, &FlowOffload{}, "flow_offload flowtable f"},
	} {
		b, err := Marshal(tt.e)
		if err != nil {
			t.Errorf("%s: marshal: %v", tt.name, err)
			continue
		}
		name, data, err := Split(b)
		if err != nil || name != tt.name {
			t.Errorf("%s: name %q, %v", tt.name, name, err)
		}
		if err := Unmarshal(data, tt.blank); err != nil || !reflect.DeepEqual(tt.blank, tt.e) {
			t.Errorf("%s: unmarshal: %+v, %v: want %+v", tt.name, tt.blank, err, tt.e)
		}
		if got := Format(tt.e); got != tt.dump {
			t.Errorf("%s: %q: want %q", tt.name, got, tt.dump)
		}
		for n := range data {
			_ = Unmarshal(data[:n], tt.blank) // must not panic
		}
	}
}

// TestLibraryDump prints the expressions of google/nftables that rare statements
// compile to.
func TestLibraryDump(t *testing.T) {
	for _, tt := range []struct {
		e    google.Any
		dump string
	}{
		{&google.Rt{Key: google.RtTCPMSS, Register: 1}, "rt load tcpmss => reg 1"},
		{&google.Quota{Bytes: 1 << 40, Consumed: 7, Over: true}, "quota bytes 1099511627776 consumed 7 flags 1"},
		{&google.Connlimit{Count: 5, Flags: 1}, "connlimit count 5 flags 1"},
		{&google.SynProxy{Mss: 1460, Wscale: 7}, "synproxy mss 1460 wscale 7"},
		{&google.Socket{}, "unknown *expr.Socket"},
	} {
		if got := Format(Library{tt.e}); got != tt.dump {
			t.Errorf("%q: want %q", got, tt.dump)
		}
	}
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
