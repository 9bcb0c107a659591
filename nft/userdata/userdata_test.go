package userdata

import (
	"strings"
	"testing"
)

func TestTableUserData(t *testing.T) {
	for _, comment := range []string{"", "made by weft"} {
		b, err := Table(comment)
		if err != nil {
			t.Fatal(err)
		}
		info, err := ParseTable(b)
		if want := (TableInfo{Comment: comment, Ours: true, Version: 1}); err != nil || info != want {
			t.Errorf("%q reads back as %+v (%v), want %+v", b, info, err, want)
		}
	}
	if info, err := ParseTable([]byte("\x00\x02x\x00")); err != nil || info.Ours || info.Comment != "x" {
		t.Errorf("nft's own userdata reads as %+v (%v)", info, err)
	}
	if info, err := ParseTable(nil); err != nil || info != (TableInfo{}) {
		t.Errorf("no userdata reads as %+v (%v)", info, err)
	}
}

func TestChainAndElementUserData(t *testing.T) {
	if b, err := AppendComment(nil, ""); err != nil || b != nil {
		t.Errorf("no comment gives %q (%v)", b, err)
	}
	b, err := AppendComment(nil, "a chain")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseComment(b); err != nil || got != "a chain" {
		t.Errorf("%q reads back as %q (%v)", b, got, err)
	}
	for _, want := range []ElementInfo{{}, {Comment: "default/web:http"}, {Open: true}, {Comment: strings.Repeat("x", MaxComment), Open: true}} {
		b, err := AppendElement(nil, want.Comment, want.Open)
		if err != nil {
			t.Fatal(err)
		}
		if (b == nil) != (want == ElementInfo{}) {
			t.Errorf("%+v gives %q", want, b)
		}
		if got, err := ParseElement(b); err != nil || got != want {
			t.Errorf("%q reads back as %+v (%v), want %+v", b, got, err, want)
		}
	}
	if _, err := AppendElement(nil, strings.Repeat("x", MaxComment+1), false); err == nil {
		t.Error("a long comment is taken")
	}
}

func FuzzParseUserData(f *testing.F) {
	f.Add([]byte("\x00\x06hello\x00\xe1\x10aaaaaaaaaaaaaaaa\xe2\x01x"))
	f.Add([]byte("\x00\x06hello\x00\xe0\x01\x01"))
	f.Add([]byte("\x01\x04\x01\x00\x00\x00"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if info, err := ParseRule(b); err != nil && info != (RuleInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if info, err := ParseTable(b); err != nil && info != (TableInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if info, err := ParseElement(b); err != nil && info != (ElementInfo{}) {
			t.Errorf("an error and %+v", info)
		}
		if comment, err := ParseComment(b); err != nil && comment != "" {
			t.Errorf("an error and %q", comment)
		}
	})
}
