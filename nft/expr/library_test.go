package expr

import (
	"bytes"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/selector"
)

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
		own, err := Marshal(tt.own)
		if err != nil {
			t.Fatal(err)
		}
		library, err := google.Marshal(2, tt.library)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := google.Unmarshal(2, w.b, &d); err != nil {
			t.Fatal(err)
		}
		if known := len(d.Exprs) > 0; known != (name == "counter") {
			t.Errorf("google/nftables knows %s: %v", name, known)
		}
	}
}
