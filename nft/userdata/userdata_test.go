package userdata

import (
	"errors"
	"strings"
	"testing"

	library "github.com/google/nftables/userdata"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func TestTableUserData(t *testing.T) {
	for _, comment := range []string{"", "made by weft"} {
		b := nfttest.Must(Table(comment))
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
	b := nfttest.Must(AppendComment(nil, "a chain"))
	if got, err := ParseComment(b); err != nil || got != "a chain" {
		t.Errorf("%q reads back as %q (%v)", b, got, err)
	}
	for _, want := range []ElementInfo{{}, {Comment: "default/web:http"}, {Open: true}, {Comment: strings.Repeat("x", MaxComment), Open: true}} {
		b := nfttest.Must(AppendElement(nil, want.Comment, want.Open))
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

func TestRuleUserData(t *testing.T) {
	b := nfttest.Must(AppendComment(nil, "why"))
	want := RuleInfo{Comment: "why", Fingerprint: Fingerprint{1, 2, 3}, Owner: "services", Ours: true}
	b = append(append(b, UdataFingerprint, byte(len(want.Fingerprint))), want.Fingerprint[:]...)
	b = append(append(b, UdataOwner, byte(len(want.Owner))), want.Owner...)
	if info, err := ParseRule(append(b, 0x77, 0)); err != nil || info != want {
		t.Errorf("%q reads as %+v (%v), want %+v", b, info, err, want)
	}
	for n := 1; n < len(b); n++ {
		if info, err := ParseRule(b[:n]); err == nil && info == want {
			t.Errorf("%d of %d bytes read as the rule", n, len(b))
		}
	}
}

// TestDamaged checks that damaged userdata is an error, of which nothing is returned.
func TestDamaged(t *testing.T) {
	for _, b := range []string{"\x00", "\x00\x05abc", "\x00\x00", "\x00\x01x", "\xe0\x02ab", "\xe1\x01a", "\x01\x02ab"} {
		table, errTable := ParseTable([]byte(b))
		rule, errRule := ParseRule([]byte(b))
		element, errElement := ParseElement([]byte(b))
		if table != (TableInfo{}) || rule != (RuleInfo{}) || element != (ElementInfo{}) {
			t.Errorf("%q reads as %+v, %+v, %+v", b, table, rule, element)
		}
		if errs := errors.Join(errTable, errRule, errElement); !errors.Is(errs, ErrMalformed) {
			t.Errorf("%q: %v, want ErrMalformed", b, errs)
		}
	}
	for _, comment := range []string{strings.Repeat("x", MaxComment+1), "a\"b", "a\nb", "\x7f"} {
		if _, err := Table(comment); err == nil {
			t.Errorf("comment %q was accepted", comment)
		}
	}
}

func TestFindRecord(t *testing.T) {
	b := AppendUint32(AppendString(nil, 3, "typeof"), 4, 0x01020304)
	if v, ok := FindRecord(b, 3); !ok || string(v) != "typeof\x00" {
		t.Errorf("record 3 = %q, %v", v, ok)
	}
	v, _ := FindRecord(b, 4)
	if n, ok := ParseUint32(v); !ok || n != 0x01020304 {
		t.Errorf("record 4 = %#x, %v", n, ok)
	}
	if _, ok := FindRecord(b, 5); ok {
		t.Error("there is no record 5")
	}
	if _, ok := FindRecord(b[:len(b)-1], 3); ok {
		t.Error("a record of damaged userdata was returned")
	}
	if _, ok := ParseUint32([]byte{1}); ok {
		t.Error("a number of one byte was accepted")
	}
}

// TestLibraryPanics fails when Get of google/nftables accepts truncated input. Then this
// package needs no parser of its own.
func TestLibraryPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("google/nftables/userdata.Get accepts truncated input now: use it")
		}
	}()
	library.Get([]byte{0, 5, 'a'}[:3:3], 0)
}

// TestLongString tests that no record gets a length that is not its own.
func TestLongString(t *testing.T) {
	if b := AppendString(nil, 1, strings.Repeat("x", 254)); len(b) != 257 || b[1] != 255 {
		t.Errorf("a record of %d bytes, whose length is %d", len(b), b[1])
	}
	defer func() {
		if recover() == nil {
			t.Error("a string of 255 bytes has a record")
		}
	}()
	AppendString(nil, 1, strings.Repeat("x", 255))
}
