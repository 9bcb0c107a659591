package scan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
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
