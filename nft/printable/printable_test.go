package printable_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/weft-proxy/weft/nft/printable"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		index    int
	}{
		{"", "", -1},
		{"plain ~ text", "plain ~ text", -1},
		{"größe 東京 🙂 a\u0300", "größe 東京 🙂 a\u0300", -1},
		{"a\x1b[31m", `a\u001b[31m`, 1},
		{"a\x00b\x7f", `a\u0000b\u007f`, 1},
		{"é\u009b31m", `é\u009b31m`, 2},
		{"a\nb\tc\r", `a\u000ab\u0009c\u000d`, 1},
		{"x\u202edrop\u202c", `x\u202edrop\u202c`, 1},
		{"\u2066a\u2069\u061c\u200f", `\u2066a\u2069\u061c\u200f`, 0},
		{"a\u2028b\u2029", `a\u2028b\u2029`, 1},
		{"a\xffb\xc3", `a\xffb\xc3`, 1},
		{"\xed\xa0\x80", `\xed\xa0\x80`, 0}, // a surrogate
		{"\ufffd", "\ufffd", -1},
	} {
		if got := printable.Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q) = %q: want %q", tt.in, got, tt.want)
		}
		if got := printable.Index(tt.in); got != tt.index {
			t.Errorf("Index(%q) = %d: want %d", tt.in, got, tt.index)
		}
		if err := printable.Check(tt.in); (err != nil) != (tt.index >= 0) {
			t.Errorf("Check(%q): %v", tt.in, err)
		}
	}
	if got := printable.Lines("a\tb\r\nc\x1b"); got != "a\tb\\u000d\nc\\u001b" {
		t.Errorf("Lines: %q", got)
	}
}

// TestEveryCharacter compares Index with the tables of Unicode.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		want := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		if got := printable.Index(string(r)) >= 0; got != want {
			t.Fatalf("%U is hidden: %v", r, got)
		}
	}
}

func TestNothingToEscapeIsNotCopied(t *testing.T) {
	text := strings.Repeat("ip saddr 10.0.0.1 counter ü ", 10)
	if n := testing.AllocsPerRun(100, func() { _ = printable.Escape(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzEscape checks that escaped text is shown as it is, however it is cut.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x1b[0m", "é\u009b", "\u202e\u2066", "\xff\xc3", "a\nb\tc\r\n", "\\u001b", "🙂\xf0\x9f"} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		got := printable.Escape(s)
		if printable.Index(got) >= 0 {
			t.Fatalf("Escape(%q) = %q", s, got)
		}
		if printable.Escape(got) != got {
			t.Fatalf("%q is escaped twice", got)
		}
		if printable.Index(s) < 0 && got != s {
			t.Fatalf("Escape(%q) = %q", s, got)
		}
		if utf8.ValidString(s) && !strings.ContainsAny(s, `"\`) {
			var back string
			if err := json.Unmarshal([]byte(`"`+got+`"`), &back); err != nil || back != s {
				t.Fatalf("%q is read back as %q, %v", got, back, err)
			}
		}
		lines := printable.Lines(s)
		if strings.Count(lines, "\n") != strings.Count(s, "\n") || printable.Index(strings.NewReplacer("\n", "", "\t", "").Replace(lines)) >= 0 {
			t.Fatalf("Lines(%q) = %q", s, lines)
		}
		cut = min(max(cut, 0), len(s))
		var b bytes.Buffer
		w := printable.NewWriter(&b)
		for _, part := range []string{s[:cut], s[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Flush(); err != nil || b.String() != lines {
			t.Fatalf("written in two parts, cut at %d: %q, want %q", cut, b.String(), lines)
		}
	})
}
