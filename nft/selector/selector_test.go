package selector

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// TestKeys finds each key by its name and its number, and checks its type and width.
func TestKeys(t *testing.T) {
	for what, keys := range map[string]Keys{"meta": MetaKeys, "ct": CTKeys, "rt": RtKeys, "socket": SocketKeys, "ipsec": IPsecKeys} {
		for i := range keys {
			k := &keys[i]
			l3, name, _ := strings.Cut(k.Name, " ")
			if name == "" {
				l3, name = "", k.Name
			}
			if keys.ByName(l3, name) != k || keys.ByNumber(k.Key) != k {
				t.Errorf("%s %s: found %v and %v", what, k.Name, keys.ByName(l3, name), keys.ByNumber(k.Key))
			}
			if k.alias != "" && keys.ByName("", k.alias) != k {
				t.Errorf("%s %s is not %s", what, k.alias, k.Name)
			}
			if k.Type != nil && (k.Bits == 0 || k.Type.Len() > 1 && k.Bits != k.Type.Bits) {
				t.Errorf("%s %s: %d bits of type %s", what, k.Name, k.Bits, k.Type)
			}
		}
		if keys.ByName("", "bogus") != nil || keys.ByName("ip", "bogus") != nil || keys.ByName("", "") != nil || keys.DumpName(99) != "unknown" {
			t.Errorf("%s has a key that it should not have", what)
		}
	}
	for got, want := range map[string]string{
		MetaKeys.DumpName(MetaKeys.ByName("", "length").Key):   "len",
		MetaKeys.DumpName(MetaKeys.ByName("", "mark").Key):     "mark",
		CTKeys.DumpName(CTKeys.ByName("ip6", "daddr").Key):     "dst_ip6",
		RtKeys.DumpName(RtKeys.ByName("ip", "nexthop").Key):    "nexthop4",
		IPsecKeys.DumpName(IPsecKeys.ByName("", "reqid").Key):  "reqid",
		SocketKeys.DumpName(SocketKeys.ByName("", "mark").Key): "mark",
	} {
		if got != want {
			t.Errorf("libnftnl's name %q, want %q", got, want)
		}
	}
}

// TestHeaders finds each header, its fields, and the protocols that it carries.
func TestHeaders(t *testing.T) {
	seen := map[uint32]bool{}
	for _, h := range Headers {
		if HeaderByName(h.Name) != h || h.Field("bogus") != nil {
			t.Errorf("header %s is not found by its name, or has a field bogus", h.Name)
		}
		if h.Desc == 0 || seen[h.Desc] {
			t.Errorf("header %s has the number %d of another one", h.Name, h.Desc)
		}
		seen[h.Desc] = true
		for i := range h.Fields {
			f := &h.Fields[i]
			if h.Field(f.Name) != f || f.Bits == 0 {
				t.Errorf("%s %s: found %v", h.Name, f.Name, h.Field(f.Name))
			}
			if f.Partial() != (f.Offset%8 != 0 || f.Bits%8 != 0) {
				t.Errorf("%s %s: partial %v", h.Name, f.Name, f.Partial())
			}
			if p := h.ProtocolField(); f.Protocol && p != f {
				t.Errorf("%s: the field of the protocol is %v, want %s", h.Name, p, f.Name)
			}
		}
		for _, u := range h.Uppers {
			up := h.Upper(u.Num)
			if n, ok := h.Number(up); up == nil || !ok || up != h.Upper(n) || !slices.Contains(Headers[:], up) {
				t.Errorf("%s carries %s as %d, %v", h.Name, u.Name, n, ok)
			}
		}
	}
	if _, ok := HeaderTCP.Number(&HeaderIP); ok || HeaderTCP.Upper(1) != nil || HeaderTCP.ProtocolField() != nil || HeaderByName("bogus") != nil {
		t.Error("tcp carries another protocol")
	}
}

func TestRawField(t *testing.T) {
	for _, tt := range []struct {
		base         string
		offset, bits uint32
		want         string
		layer        Layer
	}{
		{"ll", 0, 48, "raw payload", LayerLink},
		{"nh", 3, 125, "raw payload", LayerNetwork},
		{"th", 0, 16, "th", LayerTransport},
		{"th", 16, 16, "th", LayerTransport},
		{"th", 8, 16, "raw payload", LayerTransport},
		{"ih", 0, 128, "raw payload", LayerInner},
	} {
		h, f, l, err := RawField(&syntax.RawPayload{Base: tt.base, Offset: tt.offset, Bits: tt.bits})
		if err != nil || h.Name != tt.want || l != tt.layer || f.Offset != tt.offset || f.Bits != tt.bits {
			t.Errorf("@%s,%d,%d = %v, %v, %d, %v", tt.base, tt.offset, tt.bits, h, f, l, err)
		}
	}
	for _, x := range []syntax.RawPayload{
		{Base: "xh", Bits: 8}, {Bits: 8}, {Base: "nh"}, {Base: "nh", Bits: 129}, {Base: "nh", Offset: 4, Bits: 125}, {Base: "nh", Offset: 1 << 20, Bits: 8},
	} {
		if _, _, _, err := RawField(&x); err == nil {
			t.Errorf("%+v was accepted", x)
		}
	}
}

// TestResolveExthdr resolves each extension and its fields, and some that do not exist.
func TestResolveExthdr(t *testing.T) {
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, op := ExtensionsOf(kind)
		for _, e := range list {
			for _, f := range e.Fields {
				x := &syntax.Exthdr{Kind: kind, Name: e.Name, Field: f.Name}
				if name, index, ok := strings.Cut(f.Name, "["); ok {
					x.Field, x.Index = name, uint32(index[0]-'0')
				}
				r, err := ResolveExthdr(x)
				if err != nil || r.Ext.Name != e.Name || r.Op != op || r.Type != f.Type || r.Offset != f.offset || r.Bits != f.Bits || r.Present {
					t.Errorf("%s %s %s = %+v, %v", kind, e.Name, f.Name, r, err)
				}
			}
		}
	}
	for _, tt := range []struct {
		x     syntax.Exthdr
		field string // of the result, or what the error contains
		fails bool
	}{
		{syntax.Exthdr{Kind: syntax.ExthdrIPv6, Name: "frag"}, "nexthdr", false},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "200"}, "", false},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Field: "length"}, "length", false},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true, Offset: 16, Length: 16}, "size", false},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true, Length: 8}, "", false},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "300"}, "0 to 255", true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Field: "size"}, "want length", true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "eol", Field: "length"}, "exists or missing", true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "bogus"}, "want eol", true},
		{syntax.Exthdr{Kind: syntax.ExthdrIPv6, Name: "srh"}, "unknown extension header", true},
		{syntax.Exthdr{Kind: syntax.ExthdrIPv6, Name: "rt2", Field: "addr"}, "has no field", true},
		{syntax.Exthdr{Kind: syntax.ExthdrIPv6, Name: "rt0", Field: "addr"}, `"addr[0]"`, true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true}, "length is 0", true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true, Length: 129}, "do not fit", true},
		{syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true, Length: 8, Offset: 321}, "longest TCP header", true},
	} {
		r, err := ResolveExthdr(&tt.x)
		switch {
		case tt.fails && (err == nil || !strings.Contains(err.Error(), tt.field)):
			t.Errorf("%+v: error %v, want %q", tt.x, err, tt.field)
		case !tt.fails && (err != nil || tt.field != "" && r.Field.Name != tt.field || r.Type == nil):
			t.Errorf("%+v = %+v, %v", tt.x, r, err)
		}
	}
	if r, _ := ResolveExthdr(&syntax.Exthdr{Kind: syntax.ExthdrTCP, Name: "2", Raw: true, Length: 7}); r.Field != nil || r.Type != datatype.Integer {
		t.Errorf("raw bits = %+v, want no field", r)
	}
}

// TestExthdrAt finds the expression of each field of each extension by its place.
func TestExthdrAt(t *testing.T) {
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, op := ExtensionsOf(kind)
		for i := range list {
			for _, f := range list[i].Fields {
				x := ExthdrAt(op, list[i].Type, f.offset, f.Bits)
				r, err := ResolveExthdr(x)
				if err != nil || r.Op != op || r.Ext.Type != list[i].Type || r.Offset != f.offset || r.Bits != f.Bits {
					t.Errorf("%s %s %s is %s: %+v, %v", kind, list[i].Name, f.Name, syntax.PrintExpr(x), r, err)
				}
			}
		}
	}
	if x := ExthdrAt(ExthdrTCP, 254, 16, 8); syntax.PrintExpr(x) != "tcp option @254,16,8" {
		t.Errorf("a place without a name is %s", syntax.PrintExpr(x))
	}
	if _, err := ResolveExthdr(ExthdrAt(ExthdrIPv6, 43, 8, 3)); err == nil {
		t.Error("an IPv6 extension has a field without a name")
	}
}

// TestExtensionTables checks that fields do not overlap by mistake, and that
// nft's numbers for them are of one field each.
func TestExtensionTables(t *testing.T) {
	for _, kind := range []syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrIPv4, syntax.ExthdrTCP, syntax.ExthdrSCTP} {
		list, _ := ExtensionsOf(kind)
		names := map[string]bool{}
		for _, e := range list {
			if names[e.Name] {
				t.Errorf("%s %s is there twice", kind, e.Name)
			}
			names[e.Name] = true
			end, numbers := uint32(0), map[uint32]bool{}
			for _, f := range e.Fields {
				if f.offset < end {
					t.Errorf("%s %s %s begins before the end of the field before it", kind, e.Name, f.Name)
				}
				if numbers[f.Index] || f.Bits == 0 || f.Type == nil {
					t.Errorf("%s %s %s: %+v", kind, e.Name, f.Name, f)
				}
				end, numbers[f.Index] = f.offset+f.Bits, true
			}
		}
	}
}
