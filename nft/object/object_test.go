package object

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestCompileObject compiles texts to their canonical form, which stays as it is.
func TestCompileObject(t *testing.T) {
	for _, tt := range []struct {
		kind       nft.ObjectKind
		text, want string
	}{
		{nft.ObjectCounter, "", "packets 0 bytes 0"},
		{nft.ObjectCounter, "packets 0x10 bytes 18446744073709551615", "packets 16 bytes 18446744073709551615"},
		{nft.ObjectCounter, "packets 1 bytes 2; packets 3 bytes 4", "packets 3 bytes 4"},
		{nft.ObjectQuota, "", "0 bytes"},
		{nft.ObjectQuota, "until 2048 bytes used 1024 bytes", "2 kbytes used 1 kbytes"},
		{nft.ObjectQuota, "9223372036854775807 bytes", "9223372036854775807 bytes"},
		{nft.ObjectLimit, "rate 10/second", "rate 10/second"},
		{nft.ObjectLimit, "rate over 7/week burst 5 packets", "rate over 7/week"},
		{nft.ObjectLimit, "rate 2048 bytes/day burst 1025 bytes", "rate 2 kbytes/day burst 1025 bytes"},
		{nft.ObjectCTHelper, `type "ftp" protocol tcp`, `type "ftp" protocol tcp; l3proto inet`},
		{nft.ObjectCTHelper, "l3proto ip6\ntype \"sip\" protocol udp", `type "sip" protocol udp; l3proto ip6`},
		{nft.ObjectCTHelper, `type "ftp" protocol tcp; l3proto bridge`, `type "ftp" protocol tcp; l3proto inet`},
		{nft.ObjectCTTimeout, "protocol tcp", "protocol tcp; l3proto inet"},
		{nft.ObjectCTTimeout, "policy = { close : 4, established : 0, close : 10 }; l3proto ip; protocol tcp", "protocol tcp; l3proto ip; policy = { established : 0 }"},
		{nft.ObjectCTTimeout, "protocol udp; policy = { }", "protocol udp; l3proto inet"},
		{nft.ObjectCTTimeout, "protocol udp; policy = { replied : 1, unreplied : 2 }", "protocol udp; l3proto inet; policy = { unreplied : 2, replied : 1 }"},
		{nft.ObjectCTExpectation, "l3proto ip; size 255; dport 65535; timeout 1ms; protocol tcp", "protocol tcp; dport 65535; timeout 1ms; size 255; l3proto ip"},
		{nft.ObjectSecMark, `"system_u:object_r:x; y"`, `"system_u:object_r:x; y"`},
		{nft.ObjectSynProxy, "", ""},
		{nft.ObjectSynProxy, "mss 1460; wscale 7; timestamp", "mss 1460 wscale 7 timestamp"},
	} {
		o, err := Compile(nft.FamilyInet, &nft.Object{Kind: tt.kind, Name: "o", Text: tt.text, Comment: "why"})
		if err != nil {
			t.Errorf("%s %q: %v", tt.kind, tt.text, err)
			continue
		}
		if o.Text != tt.want {
			t.Errorf("%s %q compiles to %q, want %q", tt.kind, tt.text, o.Text, tt.want)
		}
		d := o.Declaration()
		again, err := Compile(nft.FamilyInet, &d)
		if err != nil || again.Text != o.Text || !again.Same(o) || again.Comment != "why" {
			t.Errorf("%s %q compiles again to %+v, %v", tt.kind, o.Text, again, err)
		}
		parsed := &Object{Name: "o", Comment: "why", Type: o.Type, Data: o.Data}
		if known, err := parsed.Complete(nft.FamilyInet); err != nil || !known || !parsed.Same(o) || parsed.Ref() != o.Ref() {
			t.Errorf("%s %q parses to %+v, %v", tt.kind, o.Text, parsed, err)
		}
	}
}

func TestCompileObjectErrors(t *testing.T) {
	for _, tt := range []struct {
		kind       nft.ObjectKind
		text, want string
	}{
		{"meter", "", "unknown kind of object"},
		{nft.ObjectQuota, "9223372036854775808 bytes", "1:1: quota: the amount is too large"},
		{nft.ObjectQuota, "1 kbytes used 1025 bytes", "quota: more is used than the quota has"},
		{nft.ObjectLimit, "", "a limit has a rate"},
		{nft.ObjectLimit, "rate 10/second burst 4294967296 packets", "want a burst of at most 4294967295"},
		{nft.ObjectCTHelper, "l3proto ip", "a ct helper has a type and a protocol"},
		{nft.ObjectCTHelper, `type "ftp" protocol tcp; l3proto arp`, "not possible for family arp"},
		{nft.ObjectCTTimeout, "", "a ct timeout has a protocol"},
		{nft.ObjectCTTimeout, "protocol udp\npolicy = { close : 3 }", `2:12: unknown state "close" of protocol udp: want unreplied or replied`},
		{nft.ObjectCTExpectation, "protocol tcp; dport 7; size 1", "missing timeout"},
		{nft.ObjectCTExpectation, "protocol tcp; dport 7; size 1; timeout 1s", "add l3proto ip or l3proto ip6"},
		{nft.ObjectSecMark, "", "a secmark has a security context"},
		{nft.ObjectSynProxy, "mss 1", "want wscale"},
	} {
		o, err := Compile(nft.FamilyInet, &nft.Object{Kind: tt.kind, Name: "o", Text: tt.text})
		if o != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: %+v, %v, want %q", tt.kind, tt.text, o, err, tt.want)
		}
		var e *syntax.Error
		if tt.kind != "meter" && (!errors.As(err, &e) || !e.Pos.IsValid()) {
			t.Errorf("%s %q: %v has no place", tt.kind, tt.text, err)
		}
	}
	for _, o := range []nft.Object{
		{Kind: nft.ObjectCounter, Name: "1"},
		{Kind: nft.ObjectCounter, Name: "a", Comment: `"`},
		{Kind: nft.ObjectCounter, Name: strings.Repeat("a", 256)},
	} {
		if _, err := Compile(nft.FamilyIP, &o); err == nil {
			t.Errorf("%.20q, comment %q is taken", o.Name, o.Comment)
		}
	}
}

// TestSameObject tests that Same ignores counts.
func TestSameObject(t *testing.T) {
	object := func(kind nft.ObjectKind, text string) *Object {
		return nfttest.Must(Compile(nft.FamilyInet, &nft.Object{Kind: kind, Name: "o", Text: text}))
	}
	for _, tt := range []struct {
		a, b *Object
		same bool
	}{
		{object(nft.ObjectCounter, ""), object(nft.ObjectCounter, "packets 1 bytes 2"), true},
		{object(nft.ObjectQuota, "over 1 mbytes"), object(nft.ObjectQuota, "over 1 mbytes used 7 bytes"), true},
		{object(nft.ObjectQuota, "over 1 mbytes"), object(nft.ObjectQuota, "1 mbytes"), false},
		{object(nft.ObjectCounter, ""), object(nft.ObjectQuota, ""), false},
		{object(nft.ObjectLimit, "rate 1/second"), object(nft.ObjectLimit, "rate 1/minute"), false},
		{object(nft.ObjectCTHelper, `type "irc" protocol tcp`), object(nft.ObjectCTHelper, `type "irc" protocol tcp; l3proto ip`), true},
		{object(nft.ObjectCTHelper, `type "irc" protocol tcp; l3proto ip6`), object(nft.ObjectCTHelper, `type "irc" protocol tcp; l3proto ip`), false},
	} {
		if got := tt.a.Same(tt.b); got != tt.same || got != tt.b.Same(tt.a) {
			t.Errorf("%s %q and %q are the same: %v", tt.a.Kind, tt.a.Text, tt.b.Text, got)
		}
	}
}

func TestCompileFlowtable(t *testing.T) {
	f := nfttest.Must(CompileFlowtable(&nft.Flowtable{
		Name: "f", Hook: "ingress", Priority: "filter - 5", Devices: []string{"lo", "eth0"}, Flags: []string{"offload"}, Counter: true,
	}))
	d := f.Declaration()
	if f.Priority != -5 || strings.Join(f.Devices, " ") != "eth0 lo" || f.Flags != FlowtableOffload|FlowtableCounter || d.Priority != "-5" || !d.Counter {
		t.Errorf("compiles to %+v, declared as %+v", f, d)
	}
	if f, err := CompileFlowtable(&nft.Flowtable{Name: "f"}); err != nil || f.Hook != 0 || f.Priority != 0 {
		t.Errorf("without a hook: %+v, %v", f, err)
	}
	for want, f := range map[string]nft.Flowtable{
		"want ingress":       {Name: "f", Hook: "egress", Priority: "0"},
		"unknown priority":   {Name: "f", Hook: "ingress", Priority: "dstnat"},
		"is given twice":     {Name: "f", Devices: []string{"lo", "lo"}},
		"is not the name":    {Name: "f", Devices: []string{"a/b"}},
		"device":             {Name: "f", Devices: []string{"a-name-that-is-too-long"}},
		"want offload":       {Name: "f", Flags: []string{"fast"}},
		"want offload alone": {Name: "f", Flags: []string{"offload", "offload"}},
		"at most 256":        {Name: "f", Devices: make([]string, 257)},
		"unexpected '1'":     {Name: "1"},
	} {
		if _, err := CompileFlowtable(&f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

func TestChainDevices(t *testing.T) {
	base := nft.Chain{Name: "c", Type: "filter", Hook: "ingress", Priority: "0", Devices: []string{"veth1", "eth0"}, Flags: []string{"offload"}}
	c := nfttest.Must(CompileChain(nft.FamilyNetdev, &base))
	d := c.Declaration(nft.FamilyNetdev)
	again, err := CompileChain(nft.FamilyNetdev, &d)
	if err != nil || *again.Base != *c.Base || strings.Join(d.Devices, " ") != "eth0 veth1" || len(d.Flags) != 1 {
		t.Errorf("declared as %+v, %v", d, err)
	}
	one := base
	one.Devices = []string{"lo"}
	if c, err := CompileChain(nft.FamilyNetdev, &one); err != nil || c.Base.Device != "lo" || c.Base.Devices != "" {
		t.Errorf("one device: %+v, %v", c, err)
	}
	for want, change := range map[string]func(*nft.Chain){
		"give one of both":        func(c *nft.Chain) { c.Device = "lo" },
		"is given twice":          func(c *nft.Chain) { c.Devices = []string{"lo", "lo"} },
		"needs a device":          func(c *nft.Chain) { c.Devices = nil },
		"takes no device":         func(c *nft.Chain) { c.Hook = "input" },
		"only base chains have d": func(c *nft.Chain) { c.Type, c.Hook, c.Priority = "", "", "" },
		"only base chains have f": func(c *nft.Chain) { *c = nft.Chain{Name: "c", Flags: []string{"offload"}} },
		"unknown flag":            func(c *nft.Chain) { c.Flags = []string{"fast"} },
	} {
		c := base
		change(&c)
		if _, err := CompileChain(nft.FamilyInet, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

// TestKinds checks that each kind has a number of its own, and unknown kinds none.
func TestKinds(t *testing.T) {
	for _, kind := range nft.ObjectKinds {
		if got := KindOf(Number(kind)); got != kind {
			t.Errorf("the number %d of %s is that of %q", Number(kind), kind, got)
		}
	}
	ref := Ref{Kind: nft.ObjectCounter, Name: "web"}
	if ref.String() != "counter web" || ref.Type() != Number(nft.ObjectCounter) {
		t.Errorf("%s has type %d", ref, ref.Type())
	}
	if n, kind := Number("other"), KindOf(99); n != 0 || kind != "" {
		t.Errorf("unknown kinds: number %d, kind %q", n, kind)
	}
	if known, err := (&Object{Type: 99}).Complete(nft.FamilyIP); known || err != nil {
		t.Errorf("object of type 99: known %t, %v", known, err)
	}
}

// TestCompileChain has what TestChainsAsNft has not.
func TestCompileChain(t *testing.T) {
	base := func(typ string, hook uint32, prio int32) *Base { return &Base{Type: typ, Hook: hook, Priority: prio} }
	for _, test := range []struct {
		family nft.Family
		chain  nft.Chain
		want   *Base
	}{
		{nft.FamilyIP, nft.Chain{}, nil},
		{nft.FamilyIP6, nft.Chain{Type: "nat", Hook: "prerouting", Priority: "dstnat - 10"}, base("nat", 0, -110)},
		{nft.FamilyInet, nft.Chain{Type: "nat", Hook: "postrouting", Priority: "srcnat+5"}, base("nat", 4, 105)},
		{nft.FamilyIP, nft.Chain{Type: "nat", Hook: "output", Priority: "dstnat"}, base("nat", 3, -100)},
		{nft.FamilyInet, nft.Chain{Type: "nat", Hook: "input", Priority: "srcnat"}, base("nat", 1, 100)},
		{nft.FamilyInet, nft.Chain{Type: "filter", Hook: "ingress", Priority: "filter", Device: "eth0"}, &Base{Type: "filter", Hook: 5, Device: "eth0"}},
		{nft.FamilyNetdev, nft.Chain{Type: "filter", Hook: "egress", Priority: "-5", Device: "eth0"}, &Base{Type: "filter", Hook: 1, Priority: -5, Device: "eth0"}},
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
		c := nfttest.Must(CompileChain(tt.family, &tt.in))
		if diff := cmp.Diff(tt.in, c.Declaration(tt.family)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in.Name, diff)
		}
	}
}
