package scan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// tokens scans a text and prints its tokens.
func tokens(text string) string {
	s := New(text)
	var out []string
	for {
		t := s.Next()
		switch t.Kind {
		case Illegal:
			return strings.Join(append(out, "error "+t.Pos.String()+": "+t.Text), " ")
		case EOF:
			return strings.Join(out, " ")
		case Newline:
			out = append(out, "newline")
		case Punct, Semicolon:
			out = append(out, t.Text)
		default:
			out = append(out, fmt.Sprintf("%s(%s)", t.Kind, t.Text))
		}
	}
}

func TestScanner(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"ip saddr 10.0.0.1":           "name(ip) name(saddr) address(10.0.0.1)",
		"10.0.0.1:80":                 "address(10.0.0.1) : number(80)",
		"10.0.0.1:tcp":                "address(10.0.0.1) : name(tcp)",
		"10.0.0.1-10.0.0.5":           "address(10.0.0.1) - address(10.0.0.5)",
		"10.0.0.0/8":                  "address(10.0.0.0) / number(8)",
		"10.0.0":                      "word(10.0.0)",
		"1024-2048":                   "number(1024) - number(2048)",
		"fe80::1":                     "address(fe80::1)",
		"::":                          "address(::)",
		"::1/128":                     "address(::1) / number(128)",
		"dead:beef:1:2:3:4:5:6":       "address(dead:beef:1:2:3:4:5:6)",
		"::ffff:10.0.0.1":             "address(::ffff:10.0.0.1)",
		"00:11:22:33:44:55":           "address(00:11:22:33:44:55)",
		"[fe80::1]:80":                "[ address(fe80::1) ] : number(80)",
		"{ a : drop }":                "{ name(a) : name(drop) }",
		"80:accept":                   "number(80) : name(accept)",
		"a . b":                       "name(a) . name(b)",
		"0x4000 0xzz 0x":              "number(0x4000) word(0xzz) word(0x)",
		"1h30m 5s":                    "word(1h30m) word(5s)",
		"eth* my-chain.2/x":           "name(eth*) name(my-chain.2/x)",
		"== != <= >= << >> < > ! & |": "== != <= >= << >> < > ! & |",
		"\"a b\" x":                   "string(a b) name(x)",
		"a # b\nc":                    "name(a) newline name(c)",
		"a \\\n b;c":                  "name(a) name(b) ; name(c)",
		"a\r\nb":                      "name(a) newline name(b)",
		"1:10 ab:cd-1:2 80:accept":    "word(1:10) word(ab:cd) - word(1:2) number(80) : name(accept)",
		"eth\\* \\*a x*":              "name(eth\\*) name(\\*a) name(x*)",
		"\"a\nb\"":                    "error 1:1: string is not closed: add a double quote",
		"a \x00":                      "name(a) error 1:3: unexpected character '\\x00'",
		"ä":                           "error 1:1: unexpected character 'ä'",
		"\\x":                         "error 1:1: unexpected character '\\\\'",
	} {
		if got := tokens(in); got != want {
			t.Errorf("%q\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestScannerPlaces(t *testing.T) {
	s := New("ab \"c\"\n\t d \\\n e")
	want := []struct {
		text        string
		pos         Pos
		offset, end int
	}{
		{"ab", Pos{1, 1}, 0, 2}, {"c", Pos{1, 4}, 3, 6}, {"\n", Pos{1, 7}, 6, 7}, {"d", Pos{2, 3}, 9, 10}, {"e", Pos{3, 2}, 14, 15}, {"", Pos{3, 3}, 15, 15},
	}
	for _, w := range want {
		tok := s.Next()
		if tok.Text != w.text || tok.Pos != w.pos || tok.Offset != w.offset || tok.End != w.end {
			t.Errorf("token %q at %v (%d-%d): want %q at %v (%d-%d)", tok.Text, tok.Pos, tok.Offset, tok.End, w.text, w.pos, w.offset, w.end)
		}
	}
}

// FuzzScanner scans anything. The scanner ends, every token is at its offset, the tokens
// are in order, and between them are only blanks, comments and continued lines.
func FuzzScanner(f *testing.F) {
	files, err := filepath.Glob("../../compile/testdata/corpus/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus found: %v", err)
	}
	for _, file := range files {
		text := nfttest.Must(os.ReadFile(file))
		for i, line := range strings.Split(string(text), "\n") {
			if i%50 == 0 {
				f.Add(line)
			}
		}
	}
	f.Add("a # b\n\\\n\"c d\" 10.0.0.1 ::1:80 1:2 00:11:22:33:44:55 eth*\\*")
	f.Fuzz(func(t *testing.T, text string) {
		s, end := New(text), 0
		for {
			tok := s.Next()
			if tok.Kind == Illegal {
				if !tok.Pos.IsValid() || tok.Text == "" {
					t.Fatalf("%q: error without a place or a message: %v", text, tok)
				}
				return
			}
			if tok.Offset < end || tok.End > len(text) || tok.End < tok.Offset {
				t.Fatalf("%q: token %v from %d to %d, after %d", text, tok, tok.Offset, tok.End, end)
			}
			if gap := text[end:tok.Offset]; !strings.Contains(gap, "#") && strings.Trim(gap, " \t\r\n\\") != "" {
				t.Fatalf("%q: %q is in no token", text, gap)
			}
			if tok.Kind == EOF {
				return
			}
			if tok.End == tok.Offset || tok.Kind != String && tok.Text != text[tok.Offset:tok.End] {
				t.Fatalf("%q: token %v from %d to %d", text, tok, tok.Offset, tok.End)
			}
			end = tok.End
		}
	})
}

// recorder is a parser that records its errors.
type recorder struct {
	Cursor
	*Scanner
	errs *[]string
}

func (r *recorder) Report(at Token, format string, args ...any) {
	*r.errs = append(*r.errs, at.Pos.String()+": "+fmt.Sprintf(format, args...))
	r.Failed = true
}

// newCursor returns a cursor that records its errors.
func newCursor(text string, errs *[]string) *Cursor {
	r := &recorder{Scanner: New(text), errs: errs}
	r.Start(r)
	return &r.Cursor
}

func TestCursor(t *testing.T) {
	var errs []string
	c := newCursor("\n; add { 5s \"x\" } , y", &errs)
	c.SkipNewlines()
	c.SkipEnds()
	if got := c.OneOf("insert", "add"); got != "add" || c.End != 6 {
		t.Errorf("word %q, end %d", got, c.End)
	}
	c.ExpectPunct("{")
	if d := c.ExpectTime(); d != 5*time.Second || c.Braces != 1 {
		t.Errorf("time %v in %d braces", d, c.Braces)
	}
	if got := c.ExpectText("a text"); got != "x" {
		t.Errorf("text %q", got)
	}
	if !c.Tok.EndsStatement() || c.AcceptIdent("y") || !c.AcceptPunct("}") || c.Braces != 0 {
		t.Errorf("at %v in %d braces", c.Tok, c.Braces)
	}
	if !c.IsPunct(",") || c.IsIdent(",") || c.Ahead.Text != "y" {
		t.Errorf("at %v before %v", c.Tok, c.Ahead)
	}
	if len(errs) > 0 {
		t.Error(errs)
	}
}

// TestCursorErrors checks the message of each failure, and that only the first counts.
func TestCursorErrors(t *testing.T) {
	for want, f := range map[string]func(*Cursor){
		`1:1: unexpected "a": want ";"`:                        func(c *Cursor) { c.ExpectPunct(";") },
		`1:1: unexpected "a": want b, c`:                       func(c *Cursor) { c.OneOf("b", "c") },
		`1:1: unexpected "a": want a time such as 1h30m or 5s`: func(c *Cursor) { c.ExpectTime() },
		`1:3: unexpected end of line: want a name`:             func(c *Cursor) { c.Advance(); c.Advance(); c.ExpectIdent("a name") },
		`2:1: unexpected character '\x00'`:                     func(c *Cursor) { c.Inline++; c.Advance(); c.Advance() },
	} {
		var errs []string
		c := newCursor("a:\n\x00", &errs)
		f(c)
		c.Unexpected("something else")
		if len(errs) != 1 || errs[0] != want {
			t.Errorf("errors %q, want %q", errs, want)
		}
		if c.AcceptIdent("a") || c.AcceptPunct(":") {
			t.Errorf("%s: a token is accepted after the error", want)
		}
	}
}

func TestIsNameAndWord(t *testing.T) {
	for text, want := range map[string][2]bool{
		"a-b": {true, true}, "10.0.0.1": {false, true}, "5s": {false, true}, "80": {false, true},
		"a b": {}, " a": {}, "a;": {}, `"a"`: {}, "": {}, "{": {},
	} {
		if got := [2]bool{IsName(text), IsWord(text)}; got != want {
			t.Errorf("%q: name and word %v, want %v", text, got, want)
		}
	}
	if !IsClassID("1:2a") || IsClassID("80:accept") {
		t.Error("classes of traffic control")
	}
}
