package compile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/userdata"
)

func TestRuleUserData(t *testing.T) {
	long := strings.Repeat("c", userdata.MaxComment)
	for _, comment := range []string{"", "a comment", long, "ünïcode"} {
		for _, owner := range []string{"", "services/default", strings.Repeat("o", userdata.MaxOwner)} {
			r := &Rule{Comment: comment, Fingerprint: userdata.Fingerprint{1, 2, 3, 255}}
			b, err := r.UserData(owner)
			if err != nil {
				t.Fatal(err)
			}
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
