package expr

import (
	"reflect"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/selector"
)

// TestOwnExpressions marshals, unmarshals and prints each of our own
// expressions.
func TestOwnExpressions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		e     Expr
		blank interface {
			Expr
			Unmarshal([]byte) error
		}
		dump string
	}{
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 4, Mask: []byte{255, 0, 0, 0}, Xor: []byte{0, 0, 0, 1}}, &Bitwise{}, "bitwise reg 1 = ( reg 1 & 0x000000ff ) ^ 0x01000000"},
		{"bitwise", &Bitwise{Source: 1, Dest: 9, Len: 4, Op: BitwiseLshift, Shift: 8}, &Bitwise{}, "bitwise reg 9 = ( reg 1 << 0x00000008 )"},
		{"bitwise", &Bitwise{Source: 1, Dest: 1, Len: 1, Op: BitwiseRshift, Shift: 2}, &Bitwise{}, "bitwise reg 1 = ( reg 1 >> 0x00000002 )"},
		{"ct", &CT{Key: selector.CTDstIP, Register: 1, Dir: selector.DirectionReply}, &CT{}, "ct load dst_ip => reg 1 , dir reply"},
		{"ct", &CT{Key: 3, Register: 1, Set: true, Dir: selector.NoDirection}, &CT{}, "ct set mark with reg 1"},
		{"rt", &Rt{Key: 3, Register: 1}, &Rt{}, "rt load tcpmss => reg 1"},
		{"socket", &Socket{Key: 3, Level: 2, Register: 9}, &Socket{}, "socket load cgroupv2 => reg 9"},
		{"osf", &OSF{Register: 1, TTL: OsfTTLNoCheck, Version: true}, &OSF{}, "osf dreg 1"},
		{"xfrm", &Xfrm{Key: 4, Dir: 1, Spnum: 3, Register: 1}, &Xfrm{}, "xfrm load out 3 saddr6 => reg 1"},
		{"hash", &Hash{Source: 2, Len: 8, Dest: 1, Mod: 5, Seed: new(uint32), Offset: 7}, &Hash{}, "hash reg 1 = jhash(reg 2, 8, 0x0) % mod 5 offset 7"},
		{"hash", &Hash{Dest: 1, Mod: 5, Type: 1}, &Hash{}, "hash reg 1 = symhash() % mod 5"},
		{"ct", &CT{Key: 0x11, Register: 1, Set: true, Dir: selector.DirectionReply}, &CT{}, "ct set zone with reg 1 , dir reply"},
		{"masq", &Masq{MinPort: 1, MaxPort: 2, Flags: 6}, &Masq{}, "masq proto_min reg 1 proto_max reg 2 flags 0x6"},
		{"payload", &PayloadWrite{Source: 1, Base: 1, Offset: 8, Len: 2, CsumKind: 1, CsumOffset: 10}, &PayloadWrite{}, "payload write reg 1 => 2b @ network header + 8 csum_type 1 csum_off 10 csum_flags 0x0"},
		{"payload", &PayloadWrite{Source: 9, Base: 3, Len: 4, Pseudo: true}, &PayloadWrite{}, "payload write reg 9 => 4b @ inner header + 0 csum_type 0 csum_off 0 csum_flags 0x1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv6, Type: 44, Len: 1, Present: true, Register: 1}, &Exthdr{}, "exthdr load ipv6 1b @ 44 + 0 present => reg 1"},
		{"exthdr", &Exthdr{Op: selector.ExthdrIPv4, Type: 7, Offset: 2, Len: 1, Register: 9}, &Exthdr{}, "exthdr load ipv4 1b @ 7 + 2 => reg 9"},
		{"exthdr", &Exthdr{Op: selector.ExthdrSCTP, Type: 1, Offset: 4, Len: 4, Register: 1}, &Exthdr{}, "exthdr load 4b @ 1 + 4 => reg 1"},
		{"exthdr", &Exthdr{Action: ExthdrWrite, Op: selector.ExthdrTCP, Type: 2, Offset: 2, Len: 2, Register: 1}, &Exthdr{}, "exthdr write tcpopt reg 1 => 2b @ 2 + 2"},
		{"exthdr", &Exthdr{Action: ExthdrReset, Op: selector.ExthdrTCP, Type: 8}, &Exthdr{}, "exthdr reset tcpopt 8"},
		{"dynset", &Dynset{Op: 1, Key: 1, Data: 2, SetName: "s", SetID: 3, Timeout: 5 * time.Second}, &Dynset{}, "dynset update reg_key 1 set s sreg_data 2 timeout 5000ms"},
		{"quota", &Quota{Bytes: 1 << 40, Consumed: 7, Over: true}, &Quota{}, "quota bytes 1099511627776 consumed 7 flags 1"},
		{"connlimit", &ConnLimit{Count: 5, Over: true}, &ConnLimit{}, "connlimit count 5 flags 1"},
		{"objref", &Objref{Type: 3, Name: "ftp"}, &Objref{}, "objref type 3 name ftp"},
		{"objref", &Objref{Register: 1, SetName: "__objmap%d", SetID: 4}, &Objref{}, "objref sreg 1 set __objmap%d"},
		{"queue", &Queue{Num: 2, Total: 4, Bypass: true, Fanout: true}, &Queue{}, "queue num 2-5 bypass fanout"},
		{"queue", &Queue{Register: 1, Bypass: true}, &Queue{}, "queue sreg_qnum 1 bypass"},
		{"dup", &Dup{Addr: 1, Device: 2}, &Dup{}, "dup sreg_addr 1 sreg_dev 2"},
		{"fwd", &Fwd{Device: 1, Addr: 2, Family: 10}, &Fwd{}, "fwd sreg_dev 1 sreg_addr 2 nfproto 10"},
		{"tproxy", &TProxy{Family: 10, Addr: 1, Port: 2}, &TProxy{}, "tproxy ip6 addr reg 1 port reg 2"},
		{"synproxy", &SynProxy{MSS: 1460, WScale: 7, Flags: 15}, &SynProxy{}, "synproxy mss 1460 wscale 7"},
		{"flow_offload", &FlowOffload{Flowtable: "f"}, &FlowOffload{}, "flow_offload flowtable f"},
	} {
		b, err := tt.e.Marshal(2)
		if err != nil {
			t.Errorf("%s: marshal: %v", tt.name, err)
			continue
		}
		name, data, err := Unmarshal(b)
		if err != nil || name != tt.name {
			t.Errorf("%s: name %q, %v", tt.name, name, err)
		}
		if err := tt.blank.Unmarshal(data); err != nil || !reflect.DeepEqual(tt.blank, tt.e) {
			t.Errorf("%s: unmarshal: %+v, %v: want %+v", tt.name, tt.blank, err, tt.e)
		}
		if got := tt.e.String(); got != tt.dump {
			t.Errorf("%s: %q: want %q", tt.name, got, tt.dump)
		}
		for n := range data {
			_ = tt.blank.Unmarshal(data[:n]) // must not panic
		}
	}
	if _, err := (&Exthdr{Action: 9}).Marshal(2); err == nil {
		t.Error("exthdr with an unknown action was marshalled")
	}
	if _, err := (&Bitwise{Op: 9}).Marshal(2); err == nil {
		t.Error("bitwise with an unknown operation was marshalled")
	}
}
