package compile

import (
	"bytes"
	"strings"
	"testing"
)

func TestRuleUserData(t *testing.T) {
	long := strings.Repeat("c", MaxComment)
	for _, comment := range []string{"", "a comment", long, "ünïcode"} {
		for _, owner := range []string{"", "services/default", strings.Repeat("o", MaxOwner)} {
			r := &Rule{Comment: comment, Fingerprint: Fingerprint{1, 2, 3, 255}}
			b, err := r.UserData(owner)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > MaxUserData {
				t.Errorf("comment of %d and owner of %d bytes take %d", len(comment), len(owner), len(b))
			}
			if comment != "" && !bytes.HasPrefix(b, append([]byte{0, byte(len(comment) + 1)}, comment...)) {
				t.Errorf("the comment is not the first record of %q", b)
			}
			info, err := ParseRuleUserData(b)
			want := RuleInfo{Comment: comment, Fingerprint: r.Fingerprint, Owner: owner, Ours: true}
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
	if _, err := (&Rule{}).UserData(strings.Repeat("o", MaxOwner+1)); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("a long owner gives %v", err)
	}
	if info, err := ParseRuleUserData([]byte("\x00\x06hello\x00\x01\x00")); err != nil || info.Ours || info.Comment != "hello" {
		t.Errorf("nft's own userdata reads as %+v (%v)", info, err)
	}
}

func TestTableUserData(t *testing.T) {
	for _, comment := range []string{"", "made by weft"} {
		b, err := TableUserData(comment)
		if err != nil {
			t.Fatal(err)
		}
		info, err := ParseTableUserData(b)
		if want := (TableInfo{Comment: comment, Ours: true, Version: 1}); err != nil || info != want {
			t.Errorf("%q reads back as %+v (%v), want %+v", b, info, err, want)
		}
	}
	if info, err := ParseTableUserData([]byte("\x00\x02x\x00")); err != nil || info.Ours || info.Comment != "x" {
		t.Errorf("nft's own userdata reads as %+v (%v)", info, err)
	}
	if info, err := ParseTableUserData(nil); err != nil || info != (TableInfo{}) {
		t.Errorf("no userdata reads as %+v (%v)", info, err)
	}
}

func TestChainAndElementUserData(t *testing.T) {
	if b, err := ChainUserData(""); err != nil || b != nil {
		t.Errorf("no comment gives %q (%v)", b, err)
	}
	b, err := ChainUserData("a chain")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseChainUserData(b); err != nil || got != "a chain" {
		t.Errorf("%q reads back as %q (%v)", b, got, err)
	}
	for _, want := range []ElementInfo{{}, {Comment: "default/web:http"}, {Open: true}, {Comment: strings.Repeat("x", MaxComment), Open: true}} {
		b, err := ElementUserData(want.Comment, want.Open)
		if err != nil {
			t.Fatal(err)
		}
		if (b == nil) != (want == ElementInfo{}) {
			t.Errorf("%+v gives %q", want, b)
		}
		if got, err := ParseElementUserData(b); err != nil || got != want {
			t.Errorf("%q reads back as %+v (%v), want %+v", b, got, err, want)
		}
	}
	if _, err := ElementUserData(strings.Repeat("x", MaxComment+1), false); err == nil {
		t.Error("a long comment is taken")
	}
}

func FuzzParseUserData(f *testing.F) {
	f.Add([]byte("\x00\x06hello\x00\xe1\x10aaaaaaaaaaaaaaaa\xe2\x01x"))
	f.Add([]byte("\x00\x06hello\x00\xe0\x01\x01"))
	f.Add([]byte("\x01\x04\x01\x00\x00\x00"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if info, err := ParseRuleUserData(b); err != nil && info != (RuleInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if info, err := ParseTableUserData(b); err != nil && info != (TableInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if info, err := ParseElementUserData(b); err != nil && info != (ElementInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if comment, err := ParseChainUserData(b); err != nil && comment != "" {
			t.Errorf("an error and %q", comment)
		}
	})
}
