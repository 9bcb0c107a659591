package compile

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
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
		{"accept", Effects{Classes: classes()}},
		{"ip saddr 10.0.0.1 counter drop", Effects{Classes: classes()}},
		{"tcp dport { 22, 80 } ct count over 5 reject", Effects{Classes: classes()}},
		{"tcp dport vmap { 22 : jump nat, 80 : drop }", Effects{Classes: classes()}},
		{"ip saddr 10.0.0.1 masquerade", Effects{Classes: classes(nft.ClassNAT)}},
		{"ip protocol tcp masquerade to :1024-2048", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 redirect to :8080", Effects{Classes: classes(nft.ClassNAT)}},
		{"accept comment \"x\"", Effects{Classes: classes()}},
		{"ip saddr 10.0.0.1 dnat to 10.0.0.1", Effects{Classes: classes(nft.ClassNAT)}},
		{"ip saddr 10.0.0.1 snat to 10.0.0.1-10.0.0.9 persistent", Effects{Classes: classes(nft.ClassNAT)}},
		{"ip saddr 10.0.0.1 dnat to tcp dport map { 80 : 10.0.0.1, 81 : 10.0.0.2 }", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 tproxy to :8080", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 tcp dport set 81", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 ip daddr set 127.0.0.1 accept", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 @nh,128,32 set 0x7f000001", Effects{Classes: classes(nft.ClassNAT)}},
		{"tcp dport 80 ip dscp set cs1", Effects{Classes: classes(nft.ClassMangle)}},
		{"tcp flags syn tcp option maxseg size set 1200", Effects{Classes: classes(nft.ClassMangle)}},
		{"tcp dport 80 notrack", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 ct mark set 1", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 ct helper set \"ftp\"", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 ct timeout set tcp dport map { 80 : \"a\" }", Effects{Classes: classes(nft.ClassConntrack)}},
		{"tcp dport 80 counter name \"a\"", Effects{Classes: classes()}},
		{"tcp dport 80 meta nftrace set 1", Effects{Classes: classes(nft.ClassTrace)}},
		{"tcp dport 80 meta secmark set \"a\"", Effects{Classes: classes(nft.ClassSecMark)}},
		{"tcp dport 80 dup to 10.0.0.1", Effects{Classes: classes(nft.ClassDup)}},
		{"tcp dport 80 queue num 1", Effects{Classes: classes(nft.ClassQueue)}},
		{"tcp dport 80 synproxy mss 1460", Effects{Classes: classes(nft.ClassSynProxy)}},
		{"tcp dport 80 flow add @f", Effects{Classes: classes(nft.ClassFlowtables)}},

		{"tcp dport 80 meta mark set 0x100", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set meta mark | 0x100", Effects{Classes: classes(nft.ClassMarks), Mark: 0x100}},
		{"tcp dport 80 meta mark set meta mark xor 0x4000", Effects{Classes: classes(nft.ClassMarks), Mark: 0x4000}},
		{"tcp dport 80 meta mark set meta mark & 0xffff00ff | 0x1200", Effects{Classes: classes(nft.ClassMarks), Mark: 0xff00}},
		{"tcp dport 80 meta mark set meta mark & 0xff", Effects{Classes: classes(nft.ClassMarks), Mark: 0xffffff00}},
		{"tcp dport 80 meta mark set meta mark << 1", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set ct mark", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
		{"tcp dport 80 meta mark set ct mark & 0xff00", Effects{Classes: classes(nft.ClassMarks), Mark: every}},
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
		r, err := CompileRule(nft.FamilyIP, nft.Rule{Text: tt.rule}, anyChain{})
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if r.Effects != tt.want {
			t.Errorf("%s: effects %+v, want %+v", tt.rule, r.Effects, tt.want)
		}
	}
}

// anyChain is a scope that has every chain and no set.
type anyChain struct{}

func (anyChain) Set(string) (*set.Set, bool) { return nil, false }

func (anyChain) Chain(string) bool { return true }

func (anyChain) Object(nft.ObjectKind, string) bool { return true }

func (anyChain) Flowtable(string) bool { return true }
