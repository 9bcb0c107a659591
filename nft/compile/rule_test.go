package compile

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
	"github.com/weft-proxy/weft/nft/userdata"
)

func TestEffects(t *testing.T) {
	classes := func(list ...nft.Class) nft.ClassSet {
		all := nft.ClassSet(0).With(nft.ClassFilter)
		for _, c := range list {
			all = all.With(c)
		}
		return all
	}
	const every = 1<<32 - 1
	for _, tt := range []struct {
		rule string
		want Effects
	}{
		{"ip saddr 10.0.0.1 counter drop", Effects{Classes: classes()}},
		{"tcp dport { 22, 80 } ct count over 5 reject", Effects{Classes: classes()}},
		{"tcp dport vmap { 22 : jump nat, 80 : drop }", Effects{Classes: classes()}},
		{"ip saddr 10.0.0.1 masquerade", Effects{Classes: classes(nft.ClassNAT)}},
		{"accept comment \"x\"", Effects{Classes: classes()}},
		{"ip saddr 10.0.0.1 dnat to tcp dport map { 80 : 10.0.0.1, 81 : 10.0.0.2 }", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 ip daddr set 127.0.0.1 accept", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 @nh,128,32 set 0x7f000001", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 ip dscp set cs1", Effects{Classes: classes(nft.ClassMangle)}},
		{"tcp flags syn tcp option maxseg size set 1200", Effects{Classes: classes(nft.ClassMangle)}},
		{"tcp dport 80 ct mark set 1", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 ct timeout set tcp dport map { 80 : \"a\" }", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 counter name \"a\"", Effects{Classes: classes()}},
		{"tcp dport 80 flow add @f", Effects{Classes: classes(nft.ClassFlowtables)}},

		{"tcp dport 80 meta mark set 0x100", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set meta mark | 0x100", Effects{Classes: classes(nft.ClassMarks), Mark: 0x100}},
		{"tcp dport 80 meta mark set meta mark xor 0x4000", Effects{Classes: classes(nft.ClassMarks), Mark: 0x4000}},
		{"tcp dport 80 meta mark set meta mark & 0xffff00ff | 0x1200", Effects{Classes: classes(nft.ClassMarks), Mark: 0xff00}},
		{"tcp dport 80 meta mark set meta mark & 0xff", Effects{Classes: classes(nft.ClassMarks), Mark: 0xffffff00}},
		{"tcp dport 80 meta mark set meta mark << 1", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set ct mark", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set tcp dport map { 80 : 1 }", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"meta mark & 0x100 == 0x100 meta mark set 0x200", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"meta mark set meta mark | 0x1 meta mark set meta mark | 0x2", Effects{Classes: nft.ClassSet(0).With(nft.ClassMarks), Mark: 3}},

		{"tcp dport 80 log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit rate 1/second log", Effects{Classes: classes(nft.ClassLog), LogRate: 3600 + 5*60}},
		{"limit rate 10/minute burst 1 packets log log", Effects{Classes: classes(nft.ClassLog), LogRate: 2 * (600 + 60)}},
		{"log limit rate 1/second", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit rate over 1/second log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit rate 1 kbytes/second log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit name \"a\" log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit rate 18446744073709551610/second log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
		{"limit rate 1/week burst 4294967295 packets log", Effects{Classes: classes(nft.ClassLog), LogRate: UnlimitedLog}},
	} {
		r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: tt.rule}, declared.Sets{})
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if r.Effects != tt.want {
			t.Errorf("%s: effects %+v, want %+v", tt.rule, r.Effects, tt.want)
		}
	}
}

// TestDumpComment writes comments in the notation of `nft --debug=netlink`.
func TestDumpComment(t *testing.T) {
	for comment, want := range map[string]string{"": "", "x": "  userdata = { \\x00\\x02x\\x00 }\n"} {
		r := nfttest.Must(CompileRule(nft.FamilyIP, nft.Rule{Text: "accept", Comment: comment}, nil))
		if got := r.DumpComment(); got != want {
			t.Errorf("comment %q: DumpComment = %q, want %q", comment, got, want)
		}
	}
}

// TestWrites compares elements with the padded data of a rule.
func TestWrites(t *testing.T) {
	e := &set.Element{Data: "\x00\x50"}
	for _, tt := range []struct {
		w    Write
		want bool
	}{{Write{Data: "\x00\x50\x00\x00"}, true}, {Write{Data: "\x00\x51\x00\x00"}, false}, {Write{Any: true}, true}} {
		if got := tt.w.Writes(e); got != tt.want {
			t.Errorf("%+v writes %+v: %t, want %t", tt.w, e, got, tt.want)
		}
	}
}

func TestRuleUserData(t *testing.T) {
	long := strings.Repeat("c", userdata.MaxComment)
	for _, comment := range []string{"", "a comment", long, "ünïcode"} {
		for _, owner := range []string{"", "services/default", strings.Repeat("o", userdata.MaxOwner)} {
			r := &Rule{Comment: comment, Fingerprint: userdata.Fingerprint{1, 2, 3, 255}}
			b := nfttest.Must(r.UserData(owner))
			if len(b) > userdata.Max {
				t.Errorf("comment of %d and owner of %d bytes take %d", len(comment), len(owner), len(b))
			}
			if comment != "" && !bytes.HasPrefix(b, append([]byte{0, byte(len(comment) + 1)}, comment...)) {
				t.Errorf("the comment is not the first record of %q", b)
			}
			info, err := userdata.ParseRule(b)
			want := userdata.RuleInfo{Comment: comment, Fingerprint: r.Fingerprint, Owner: owner, Ours: true}
			if err != nil || info != want {
				t.Errorf("%q reads back as %+v (%v), want %+v", b, info, err, want)
			}
		}
	}
	for _, r := range []*Rule{{Comment: long + "x"}, {Comment: "a\nb"}, {Comment: `a"b`}} {
		if b, err := r.UserData("o"); err == nil {
			t.Errorf("comment %q gives %q", r.Comment, b)
		}
	}
	if _, err := (&Rule{}).UserData(strings.Repeat("o", userdata.MaxOwner+1)); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("a long owner gives %v", err)
	}
	if info, err := userdata.ParseRule([]byte("\x00\x06hello\x00\x01\x00")); err != nil || info.Ours || info.Comment != "hello" {
		t.Errorf("nft's own userdata reads as %+v (%v)", info, err)
	}
}

// TestRawOptionSet leaves out the type of a raw option: nft 1.0.6 stores one
// that it aborts on when it lists the set.
func TestRawOptionSet(t *testing.T) {
	const keyTypeOf = 3 // NFTNL_UDATA_SET_KEY_TYPEOF
	for text, stored := range map[string]bool{
		"tcp option @2,24,8 { 1, 2 }": false, "tcp option @200,16,16 { 1, 2 }": false, "tcp option @2,16,16 { 1, 2 }": true,
	} {
		r := nfttest.Must(CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil))
		if _, ok := userdata.FindRecord(r.Anonymous[0].Set.UserData, keyTypeOf); ok != stored {
			t.Errorf("%s: the type is stored: %v, want %v", text, ok, stored)
		}
	}
}

// TestExtensionNames tests that each error has the possible names.
func TestExtensionNames(t *testing.T) {
	for text, want := range map[string]string{
		"exthdr srh exists": "hbh, rt, frag, dst, mh",
		"ip6 saddr . ip6 daddr . ip6 saddr . ip6 daddr . tcp dport { fe80::1 . fe80::1 . fe80::1 . fe80::1 . 80 }": "68 bytes",
		"rt2 addr ::1":             "no field",
		"srh sid[3] ::1":           "sid[1], sid[2]",
		"srh sid[0] ::1":           "want a number from 1",
		"rt0 addr[0] ::1":          "want a number from 1",
		"ip option bogus exists":   "lsrr, rr, ssrr, ra",
		"tcp option maxseg kind 2": "length, size, exists or missing",
		"tcp option 3 count 5":     "length, exists or missing",
		"tcp option 200 length 1":  "exists or missing",
		"sctp chunk data a 3":      "tsn, stream, ssn, ppid",
		"tcp option @2,0,129 1":    "128",
		"tcp option @2,7,122 1":    "128",
		"tcp option @2,321,8 1":    "320",
	} {
		_, err := CompileRule(nft.FamilyInet, nft.Rule{Text: text}, nil)
		var e *syntax.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}

// TestEncode gives each anonymous set its number, and no named one.
func TestEncode(t *testing.T) {
	rule := nfttest.Must(CompileRule(nft.FamilyIP, nft.Rule{Text: "meta l4proto { tcp, udp } th dport vmap { 80 : accept } drop"}, nil))
	zero := nfttest.Must(rule.Encode(0))
	base := nfttest.Must(rule.Encode(0x01020300))
	for _, id := range []byte{1, 2} {
		if n := bytes.Count(base, []byte{8, 0, 4, 0, 1, 2, 3, id}); n != 1 {
			t.Errorf("set %d with a base is %d times in %x", id, n, base)
		}
	}
	byHand := &Rule{Family: rule.Family, Exprs: rule.Exprs}
	if got, err := byHand.Encode(0); err != nil || !bytes.Equal(got, zero) {
		t.Errorf("rule without a cache: %x, %v", got, err)
	}
}

// TestFingerprint depends on what the kernel sees and on the comment, not on
// how the rule is written.
func TestFingerprint(t *testing.T) {
	print := func(family nft.Family, text, comment string) userdata.Fingerprint {
		t.Helper()
		return nfttest.Must(CompileRule(family, nft.Rule{Text: text, Comment: comment}, nil)).Fingerprint
	}
	a := print(nft.FamilyIP, "tcp dport 80 accept", "")
	if a != print(nft.FamilyIP, "meta  l4proto tcp tcp dport http accept", "") {
		t.Error("the same rule in other words has another fingerprint")
	}
	for _, b := range []userdata.Fingerprint{
		print(nft.FamilyIP6, "tcp dport 80 accept", ""), print(nft.FamilyIP, "tcp dport 80 accept", "x"),
		print(nft.FamilyIP, "tcp dport 81 accept", ""), print(nft.FamilyIP, "tcp dport { 80, 81 } accept", ""),
	} {
		if a == b {
			t.Error("another rule has the same fingerprint")
		}
	}
	if print(nft.FamilyIP, "tcp dport { 80, 81 }", "") == print(nft.FamilyIP, "tcp dport { 80, 82 }", "") {
		t.Error("elements of an anonymous set are not in the fingerprint")
	}
	if print(nft.FamilyIP, "accept comment \"x\"", "") != print(nft.FamilyIP, "accept", "x") {
		t.Error("a comment in the text is another comment")
	}
}

// TestValue compares the 128-bit arithmetic with that of math/big.
func TestValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	toBig := func(v value) *big.Int {
		b := new(big.Int).SetUint64(v.hi)
		return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(v.lo))
	}
	all := toBig(valueMask(128))
	for range 2000 {
		a, b := value{rnd.Uint64(), rnd.Uint64()}, value{rnd.Uint64() >> rnd.UintN(64), rnd.Uint64()}
		n := uint32(rnd.UintN(128))
		x, y := toBig(a), toBig(b)
		for _, op := range []struct {
			name string
			got  value
			want *big.Int
		}{
			{"and", a.and(b), new(big.Int).And(x, y)},
			{"or", a.or(b), new(big.Int).Or(x, y)},
			{"xor", a.xor(b), new(big.Int).Xor(x, y)},
			{"not", a.not(), new(big.Int).Xor(x, all)},
			{"shl", a.shl(n), new(big.Int).And(new(big.Int).Lsh(x, uint(n)), all)},
		} {
			if toBig(op.got).Cmp(op.want) != 0 {
				t.Fatalf("%s of %x, %x, %d: %x: want %x", op.name, x, y, n, op.got, op.want)
			}
		}
		if a.cmp(b) != x.Cmp(y) || a.cmp(a) != 0 {
			t.Fatalf("cmp of %x, %x: %d", x, y, a.cmp(b))
		}
	}
}
