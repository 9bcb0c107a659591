package object

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
)

func TestCompileChain(t *testing.T) {
	base := func(typ string, hook uint32, prio int32) *Base { return &Base{Type: typ, Hook: hook, Priority: prio} }
	for _, test := range []struct {
		family nft.Family
		chain  nft.Chain
		want   *Base
	}{
		{nft.FamilyIP, nft.Chain{}, nil},
		{nft.FamilyIP, nft.Chain{Type: "filter", Hook: "input", Priority: "0"}, base("filter", 1, 0)},
		{nft.FamilyIP, nft.Chain{Type: "nat", Hook: "prerouting", Priority: "dstnat"}, base("nat", 0, -100)},
		{nft.FamilyIP6, nft.Chain{Type: "nat", Hook: "prerouting", Priority: "dstnat - 10"}, base("nat", 0, -110)},
		{nft.FamilyInet, nft.Chain{Type: "nat", Hook: "postrouting", Priority: "srcnat+5"}, base("nat", 4, 105)},
		{nft.FamilyIP, nft.Chain{Type: "nat", Hook: "output", Priority: "dstnat"}, base("nat", 3, -100)},
		{nft.FamilyInet, nft.Chain{Type: "nat", Hook: "input", Priority: "srcnat"}, base("nat", 1, 100)},
		{nft.FamilyInet, nft.Chain{Type: "filter", Hook: "forward", Priority: "mangle"}, base("filter", 2, -150)},
		{nft.FamilyInet, nft.Chain{Type: "filter", Hook: "output", Priority: "security"}, base("filter", 3, 50)},
		{nft.FamilyInet, nft.Chain{Type: "route", Hook: "output", Priority: "raw"}, base("route", 3, -300)},
		{nft.FamilyInet, nft.Chain{Type: "filter", Hook: "ingress", Priority: "filter", Device: "eth0"}, &Base{Type: "filter", Hook: 5, Device: "eth0"}},
		{nft.FamilyNetdev, nft.Chain{Type: "filter", Hook: "egress", Priority: "-5", Device: "eth0"}, &Base{Type: "filter", Hook: 1, Priority: -5, Device: "eth0"}},
		{nft.FamilyBridge, nft.Chain{Type: "filter", Hook: "output", Priority: "out"}, base("filter", 3, 100)},
		{nft.FamilyBridge, nft.Chain{Type: "filter", Hook: "forward", Priority: "filter"}, base("filter", 2, -200)},
		{nft.FamilyARP, nft.Chain{Type: "filter", Hook: "output", Priority: "filter"}, base("filter", 1, 0)},
		{nft.FamilyIP, nft.Chain{Type: "filter", Hook: "input", Priority: "0", Policy: "drop"}, &Base{Type: "filter", Hook: 1, Drop: true}},
		{nft.FamilyIP, nft.Chain{Type: "filter", Hook: "input", Priority: "-2147483648", Policy: "accept"}, base("filter", 1, -2147483648)},
	} {
		test.chain.Name, test.chain.Comment = "c", "a comment"
		got, err := CompileChain(test.family, &test.chain)
		switch {
		case err != nil:
			t.Errorf("%s %+v: %v", test.family, test.chain, err)
		case got.Name != "c" || got.Comment != "a comment":
			t.Errorf("%+v compiles to %+v", test.chain, got)
		case (got.Base == nil) != (test.want == nil) || got.Base != nil && *got.Base != *test.want:
			t.Errorf("%s %+v compiles to %+v, want %+v", test.family, test.chain, got.Base, test.want)
		}
	}
}

func TestCompileChainErrors(t *testing.T) {
	for _, test := range []struct {
		family nft.Family
		chain  nft.Chain
		want   string
	}{
		{nft.FamilyIP, nft.Chain{Name: "1"}, `compile chain: name "1"`},
		{nft.FamilyIP, nft.Chain{Name: "c", Comment: strings.Repeat("x", 129)}, "want at most 128"},
		{nft.Family(99), nft.Chain{Name: "c"}, "no chains in family(99)"},
		{nft.FamilyIP, nft.Chain{Name: "c", Policy: "drop"}, "only base chains have a policy"},
		{nft.FamilyIP, nft.Chain{Name: "c", Device: "eth0"}, "only base chains have a device"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter"}, "missing hook, priority"},
		{nft.FamilyIP, nft.Chain{Name: "c", Hook: "input", Priority: "0"}, "missing type"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "ingress", Priority: "0"}, `unknown hook "ingress" in family ip: want prerouting`},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "mangle", Hook: "input", Priority: "0"}, `unknown chain type "mangle"`},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "nat", Hook: "forward", Priority: "0"}, "chain type nat is not possible at hook forward"},
		{nft.FamilyBridge, nft.Chain{Name: "c", Type: "nat", Hook: "prerouting", Priority: "0"}, "want filter"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "nat", Hook: "prerouting", Priority: "raw"}, "after connection tracking"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "dstnat"}, "priority dstnat is not possible at hook input of family ip: want hook prerouting or output"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "out"}, `unknown priority "out" at hook input`},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "filter + x"}, "malformed priority"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "filter - -1"}, "malformed priority"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "security + 2147483647"}, "out of range"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "2147483648"}, "unknown priority"},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "0", Policy: "reject"}, `unknown policy "reject"`},
		{nft.FamilyIP, nft.Chain{Name: "c", Type: "filter", Hook: "input", Priority: "0", Device: "eth0"}, "takes no device"},
		{nft.FamilyNetdev, nft.Chain{Name: "c", Type: "filter", Hook: "ingress", Priority: "0"}, "needs a device"},
		{nft.FamilyNetdev, nft.Chain{Name: "c", Type: "filter", Hook: "ingress", Priority: "0", Device: "a-much-too-long-name"}, "1 to 15 bytes"},
	} {
		_, err := CompileChain(test.family, &test.chain)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: error %v, want %q in it", test.family, test.chain, err, test.want)
		}
	}
}

func TestChainDeclaration(t *testing.T) {
	for _, tt := range []struct {
		family nft.Family
		in     nft.Chain
	}{
		{nft.FamilyIP, nft.Chain{Name: "plain", Comment: "jumped to"}},
		{nft.FamilyIP, nft.Chain{Name: "in", Type: "filter", Hook: "input", Priority: "10", Policy: "drop"}},
		{nft.FamilyInet, nft.Chain{Name: "post", Type: "nat", Hook: "postrouting", Priority: "100", Policy: "accept"}},
		{nft.FamilyNetdev, nft.Chain{Name: "dev", Type: "filter", Hook: "ingress", Device: "eth0", Priority: "-5", Policy: "accept"}},
		{nft.FamilyARP, nft.Chain{Name: "arp", Type: "filter", Hook: "output", Priority: "0", Policy: "accept"}},
	} {
		c, err := CompileChain(tt.family, &tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.in, c.Declaration(tt.family)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in.Name, diff)
		}
	}
}
