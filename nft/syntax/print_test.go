package syntax

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// samples are rules of every statement and expression, with their canonical
// text where it is another.
var samples = []struct{ in, want string }{
	{"ip daddr . meta l4proto . th dport vmap @services", ""},
	{"meta l4proto { tcp,udp , sctp, } dnat ip to ip daddr . th dport . numgen random mod 3 map @endpoints", "meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . th dport . numgen random mod 3 map @endpoints"},
	{"update @affinity { ip saddr . ip daddr timeout 90m : 10.1.0.1 . 8080 }", "update @affinity { ip saddr . ip daddr timeout 1h30m : 10.1.0.1 . 8080 }"},
	{"mark and 0x4000 eq 0x4000 mark set mark xor 0x4000 masquerade fully-random", "meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random"},
	{"dnat to 10.1.0.1:8080", "dnat to 10.1.0.1:8080"},
	{"dnat to [fe80::1]:80-90 random,persistent", "dnat to [fe80::1]:80-90 persistent,random"},
	{"dnat to [fe80::1]-[fe80::5]:80", "dnat to [fe80::1]-[fe80::5]:80"},
	{"dnat to 10.0.0.1 : tcp dport map { 80 : 8080 }", "dnat to 10.0.0.1:tcp dport map { 80 : 8080 }"},
	{"snat to 10.0.0.1-10.0.0.9", ""},
	{"ct state established,related accept", ""},
	{"ct original ip saddr 10.0.0.1", ""},
	{"tcp flags syn / syn,ack", ""},
	{"tcp flags & (syn|ack) == syn", "tcp flags & (syn | ack) == syn"},
	{"tcp dport ssh - http", ""},
	{"meta mark & (0x1 | 0x2) | 0x4 == 0x5", ""},
	{"limit rate 10 mbytes / second burst 5 kbytes", "limit rate 10 mbytes/second burst 5 kbytes"},
	{"counter bytes 5 packets 1", "counter packets 1 bytes 5"},
	{"counter name x", `counter name "x"`},
	{"limit name ip saddr map { 10.0.0.1 : x }", ""},
	{"quota until 5 mbytes", "quota 5 mbytes"},
	{"quota over 5 mbytes used 3 kbytes drop", ""},
	{"ct count over 5", ""},
	{"ct helper set x", `ct helper set "x"`},
	{"ct timeout set tcp dport map @m", ""},
	{`ct expectation set "x" accept`, ""},
	{"meta secmark set x", `meta secmark set "x"`},
	{"queue num 5 bypass", "queue flags bypass to 5"},
	{"queue fanout,bypass", "queue bypass,fanout"},
	{"dup to 10.0.0.1 device lo", ""},
	{"fwd ip6 to ::1 device lo", ""},
	{"tproxy to [::1]:80", ""},
	{"tproxy ip to :80", ""},
	{"synproxy timestamp wscale 7 mss 1460", "synproxy mss 1460 wscale 7 timestamp"},
	{"synproxy name s", `synproxy name "s"`},
	{"flow offload @f", "flow add @f"},
	{"redirect to 80", "redirect to :80"},
	{"dnat 10.0.0.1:80", "dnat to 10.0.0.1:80"},
	{"dnat to 10.0.0.0/24 :80", ""},
	{"dnat ip interval to 10.0.0.1-10.0.0.2", "dnat ip to 10.0.0.1-10.0.0.2"},
	{"snat to 10.0.0.1 random persistent", "snat to 10.0.0.1 persistent"},
	{"limit rate over 1/minute burst 3 packets", ""},
	{"fib daddr . iif type local", ""},
	{"log prefix \"x y\" level info flags all", ""},
	{"log prefix \"\" group 1 snaplen 2 queue-threshold 3", ""},
	{"log flags tcp options,sequence flags ip options", "log flags tcp options flags tcp sequence flags ip options"},
	{"iifname eth* oifname \"lo\"", ""},
	{"ip saddr 10.0.0.0/8 tcp dport != {\n 22 ,\n 80-90 , } drop", "ip saddr 10.0.0.0/8 tcp dport != { 22, 80-90 } drop"},
	{"tcp dport vmap { 22 comment \"ssh\" : accept, * : jump other }", ""},
	{"reject with tcp reset", ""},
	{"reject with icmp type host-unreachable", "reject with icmp host-unreachable"},
	{"add @seen { ip saddr limit rate 1/second counter }", "add @seen { ip saddr limit rate 1/second counter }"},
	{"counter packets 1 bytes 2 notrack continue return goto x", ""},
	{"ip saddr 10.0.0.1 # why", "ip saddr 10.0.0.1"},
	{"ip saddr \\\n 10.0.0.1 comment \"a b\"", "ip saddr 10.0.0.1 comment \"a b\""},
	{"rt ip6 nexthop fe80::1 rt classid 5", ""},
	{"socket cgroupv2 level 2 5 socket transparent 1", ""},
	{"osf ttl skip version \"Linux:3.0\" osf name Linux", ""},
	{"ipsec in spnum 0 reqid 1 ipsec out spnum 2 ip6 daddr ::1", "ipsec in reqid 1 ipsec out spnum 2 ip6 daddr ::1"},
	{"ipsec exists", "meta ipsec exists"},
	{"jhash ip saddr . tcp dport mod 4 seed 0x10 offset 2 vmap { 2 : drop }", "jhash ip saddr . tcp dport mod 4 seed 16 offset 2 vmap { 2 : drop }"},
	{"jhash (meta mark & 0xff) mod 0x4 1", "jhash meta mark & 0xff mod 4 1"},
	{"meta mark set symhash mod 2 offset 1", ""},
	{"ct event set new,related ct original zone set 5", ""},
	{"hour \"22:00\"-\"06:00\" day Monday time > \"2024-01-01\"", "meta hour \"22:00\" - \"06:00\" meta day Monday meta time > \"2024-01-01\""},
	{"meta priority { 1:2, ab:cd-ab:ce, root }", "meta priority { 1:2, ab:cd - ab:ce, root }"},
	{"ip saddr . tcp dport { 10.0.0.0/8 . 1-5 }", ""},
	{"frag more-fragments 1 exthdr  hbh missing rt type 4 srh sid [ 2 ] fd00::1", "frag more-fragments 1 exthdr hbh missing rt type 4 srh sid[2] fd00::1"},
	{"tcp option mss size eq 5 tcp option sack-perm exists tcp option @0x22 , 0x10, 8 1", "tcp option mss size == 5 tcp option sack-perm exists tcp option @0x22,16,8 1"},
	{"tcp option 8 length 10 ip option rr ptr 4 sctp chunk init a-rwnd 5 sctp chunk data ne exists", "tcp option 8 length 10 ip option rr ptr 4 sctp chunk init a-rwnd 5 sctp chunk data != exists"},
	{"@nh,0x8,8 5 @th , 16 , 16 80", "@nh,8,8 5 @th,16,16 80"},
	{"meter m size 5 { ip saddr timeout 5s limit rate 1/second }", ""},
	{"reset tcp option timestamp tcp option maxseg size set rt mtu rt ip6 nexthop fd00::1", ""},
}

func TestPrint(t *testing.T) {
	for _, s := range samples {
		want := s.want
		if want == "" {
			want = s.in
		}
		r, err := ParseRule(nft.FamilyIP, s.in)
		if err != nil {
			t.Errorf("%s: %v", s.in, err)
			continue
		}
		if got := Print(r); got != want {
			t.Errorf("%s\n got %s\nwant %s", s.in, got, want)
		}
		roundTrip(t, r)
	}
}

// TestPrintCorpus reads and prints the rules that are compared with nft(8).
func TestPrintCorpus(t *testing.T) {
	rules := corpusRules(t)
	for _, text := range rules {
		if r, err := ParseRule(nft.FamilyInet, text); err == nil {
			roundTrip(t, r)
		}
	}
}

// corpusRules returns the rules of package compile's corpora.
func corpusRules(t testing.TB) []string {
	t.Helper()
	var rules []string
	file := ""
	for _, c := range nfttest.ReadCorpora(t, "../compile/testdata/corpus") {
		if dir := path.Dir(c.Name); dir != file { // the rules are the same in all families
			file = dir
			rules = append(rules, c.Rules...)
		}
	}
	return rules
}

// roundTrip checks that printing and parsing gives the same tree.
func roundTrip(t *testing.T, r *Rule) {
	t.Helper()
	text := Print(r)
	again, err := ParseRule(r.Family, text)
	if err != nil {
		t.Errorf("printed rule does not parse: %v\n%s", err, text)
		return
	}
	if got := Print(again); got != text {
		t.Errorf("printing is not idempotent:\n%s\n%s", text, got)
	}
	withoutPos(r)
	withoutPos(again)
	if !reflect.DeepEqual(r, again) {
		t.Errorf("%s: another tree after printing", text)
	}
}

// walk visits all structs in a tree.
func walk(v reflect.Value, visit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	case reflect.Struct:
		visit(v)
		for i := range v.NumField() {
			walk(v.Field(i), visit)
		}
	}
}

// withoutPos clears all places in a tree.
func withoutPos(r *Rule) {
	walk(reflect.ValueOf(r), func(v reflect.Value) {
		if v.Type() == reflect.TypeFor[Pos]() && v.CanSet() {
			v.SetZero()
		}
	})
}

func TestPrintTypeOf(t *testing.T) {
	for _, s := range []string{
		"ip daddr", "ip daddr . meta l4proto . th dport : verdict", "ip saddr . numgen random mod 65536 : ip daddr . th dport",
		"ip saddr : interval ip daddr", "ct original ip saddr . fib daddr type",
		"frag id . rt0 addr[1] : tcp option maxseg size", "exthdr frag : verdict", "tcp option @2,16,16 . ip option ra . sctp chunk data",
	} {
		d, err := ParseTypeOf(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got := PrintTypeOf(d); got != s {
			t.Errorf("%s: printed as %s", s, got)
		}
	}
	for _, s := range []string{"", "ip", "ip daddr :", "ip daddr : verdict x", "ip daddr .", "accept"} {
		if d, err := ParseTypeOf(s); err == nil && s != "accept" && s != "ip" {
			t.Errorf("%q: parsed as %s", s, PrintTypeOf(d))
		}
	}
}

// TestEveryNodeIsPrinted finds the statements, expressions and bodies of objects in the
// source of the package, and requires a sample of each that was parsed and printed. A type
// without a print method does not compile.
func TestEveryNodeIsPrinted(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	want := map[string]bool{}
	for _, name := range files {
		file := nfttest.Must(goparser.ParseFile(token.NewFileSet(), name, nil, 0))
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "printStmt" && f.Name.Name != "printExpr" && f.Name.Name != "printBody" {
				continue
			}
			want[f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
		}
	}
	got := map[string]bool{}
	collect := func(v reflect.Value) { got[v.Type().Name()] = true }
	for _, s := range samples {
		r := nfttest.Must(ParseRule(nft.FamilyIP, s.in))
		walk(reflect.ValueOf(r), collect)
	}
	for kind, text := range objectSamples {
		body := nfttest.Must(ParseObject(kind, text))
		if printed := PrintObject(body); printed != text {
			t.Errorf("%s %q is printed as %q", kind, text, printed)
		}
		walk(reflect.ValueOf(body), collect)
	}
	// nft lists extensions of iptables, and cannot load them.
	xt := &XT{Kind: "match", Name: "conntrack"}
	if text := PrintStmt(xt); text != `xt match "conntrack"` {
		t.Errorf("an extension of iptables is printed as %s", text)
	}
	got["XT"] = true
	if len(want) < 40 {
		t.Errorf("only %d types found in the source", len(want))
	}
	for name := range want {
		if !got[name] {
			t.Errorf("%s: no sample has one", name)
		}
	}
	for _, kind := range nft.ObjectKinds {
		if objectSamples[kind] == "" {
			t.Errorf("%s: no sample", kind)
		}
		use := kind.Statement() + ` "x"`
		if r, err := ParseRule(nft.FamilyInet, use); err != nil || Print(r) != use {
			t.Errorf("%s: %v", use, err)
		}
	}
}

// objectSamples are bodies of all kinds of objects in canonical form.
var objectSamples = map[nft.ObjectKind]string{
	nft.ObjectCounter:       "packets 1 bytes 2",
	nft.ObjectQuota:         "over 25 mbytes used 3 kbytes",
	nft.ObjectLimit:         "rate over 10 kbytes/minute burst 5 kbytes",
	nft.ObjectCTHelper:      `type "ftp" protocol tcp; l3proto ip`,
	nft.ObjectCTTimeout:     "protocol tcp; l3proto ip; policy = { established : 100, close : 4 }",
	nft.ObjectCTExpectation: "protocol udp; dport 99; timeout 2m; size 12; l3proto ip6",
	nft.ObjectSecMark:       `"system_u:object_r:x_t:s0"`,
	nft.ObjectSynProxy:      "mss 1460 wscale 7 timestamp sack-perm",
}

// PrintTypeOf returns a typeof declaration in canonical form, without the word "typeof".
func PrintTypeOf(t *TypeOf) string {
	p := &printer{}
	p.list(t.Key, " . ")
	switch {
	case t.Verdict:
		p.str(" : verdict")
	case t.Map && t.Interval:
		p.str(" : interval ")
	case t.Map:
		p.str(" : ")
	}
	p.list(t.Data, " . ")
	return p.b.String()
}
