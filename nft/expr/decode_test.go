package expr_test

import (
	"bytes"
	"errors"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// element returns an expression in a list.
func element(name string, attributes []byte) []byte {
	b, at := attr.OpenNested(nil, unix.NFTA_LIST_ELEM)
	b = attr.AppendString(b, unix.NFTA_EXPR_NAME, name)
	return attr.Close(attr.AppendBytes(b, unix.NFTA_EXPR_DATA, attributes), at)
}

func TestDecodeUnknown(t *testing.T) {
	for name, attributes := range map[string][]byte{
		"match":   attr.AppendString(nil, unix.NFTA_MATCH_NAME, "conntrack"),
		"masq":    attr.AppendUint32BE(nil, 99, 1), // an attribute of a later kernel
		"bitwise": attr.AppendUint32BE(nil, 88, 1),
	} {
		list, err := expr.Decode(element(name, attributes))
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v, want one expression", name, list, err)
			continue
		}
		u, ok := list[0].(*expr.Unknown)
		if !ok || u.Name != name || !bytes.Equal(u.Data, attributes) {
			t.Errorf("%s: %+v, want it unknown with its attributes", name, list[0])
		}
		if _, err := expr.Marshal(u); err == nil {
			t.Errorf("%s: an unknown expression is marshalled", name)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, b := range [][]byte{
		{9},
		element("masq", attr.AppendUint8(nil, unix.NFTA_MASQ_FLAGS, 1)), // the kernel sends four bytes
		element("masq", []byte{1, 2}),
	} {
		if list, err := expr.Decode(b); !errors.Is(err, attr.ErrMalformed) {
			t.Errorf("Decode(%x): %v, %v, want ErrMalformed", b, list, err)
		}
	}
}

// FuzzDecode decodes anything without a panic. What it returns can be listed.
func FuzzDecode(f *testing.F) {
	for _, e := range []expr.Expr{
		&expr.CT{Dest: 1}, &expr.Dynset{Exprs: []expr.Expr{expr.Library{Any: &google.Counter{}}}}, &expr.Masq{MinPort: 1}, &expr.Exthdr{Dest: 1},
		&expr.Fib{Flags: unix.NFTA_FIB_F_DADDR, Result: unix.NFT_FIB_RESULT_ADDRTYPE}, &expr.Log{Prefix: new("x")},
		&expr.NAT{AddrMin: 1}, expr.Library{Any: &google.Verdict{}}, expr.Library{Any: &google.Lookup{SetName: "x"}},
	} {
		encoded := nfttest.Must(expr.Encode([]expr.Expr{e}))
		f.Add(encoded.Bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := expr.Decode(b)
		if err != nil {
			return
		}
		for _, e := range list {
			if expr.Format(e) == "" {
				t.Errorf("%T is listed as nothing", e)
			}
		}
	})
}

// TestExtensions has matches and targets of iptables, whole and cut.
func TestExtensions(t *testing.T) {
	whole := []byte{12, 0, 1, 0, 'c', 'o', 'm', 'm', 'e', 'n', 't', 0, 8, 0, 2, 0, 0, 0, 0, 3, 6, 0, 3, 0, 'h', 'i', 0, 0}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"match", whole, "match name comment rev 3"},
		{"target", whole, "target name comment rev 3"},
		{"other", whole, "unknown other"},
		{"match", whole[:10], "unknown match"},
	} {
		if got := expr.Format(&expr.Unknown{Name: tt.name, Data: tt.data}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if _, _, info, ok := (&expr.Unknown{Name: "match", Data: whole}).Extension(); !ok || string(info) != "hi" {
		t.Errorf("data %q, %v", info, ok)
	}
}
