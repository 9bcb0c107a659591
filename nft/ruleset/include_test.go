package ruleset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// files is an OpenFunc of some files; a name with a star is a pattern of its head.
func files(all map[string]string) OpenFunc {
	return func(_, pattern string) ([]SourceFile, error) {
		if head, wild := strings.CutSuffix(pattern, "*"); wild {
			var out []SourceFile
			for _, name := range []string{head + "1", head + "2"} {
				if text, ok := all[name]; ok {
					out = append(out, SourceFile{name, text})
				}
			}
			return out, nil
		}
		text, ok := all[pattern]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []SourceFile{{pattern, text}}, nil
	}
}

func TestInclude(t *testing.T) {
	b, err := Include("main", `include "vars"
table ip x {
	include "none*"; chain c { include "rule*"; drop; }
	# include "nothing"
	chain include { meta mark @include accept; }
	set include { type mark; }
}
`, files(map[string]string{"vars": "define a = 1", "rule1": "meta mark $a accept # why", "rule2": "include \"vars2\"\nmeta mark $b accept", "vars2": "define b = 2"}))
	if err != nil {
		t.Fatal(err)
	}
	tables := nfttest.Must(b.Parse(Parse))
	got := fmt.Sprint(tables[0].Chains[0].Rules)
	if got != "[{meta mark 1 accept } {meta mark 2 accept } {drop }]" || len(tables[0].Sets) != 1 {
		t.Errorf("includes to %+v", tables)
	}
	if same, err := Include("main", "table ip x { }", nil); err != nil || same.Text != "table ip x { }" {
		t.Errorf("a file without includes becomes %+v, %v", same, err)
	}
}

// TestIncludePlaces finds the places of mistakes in the files that they are in.
func TestIncludePlaces(t *testing.T) {
	b := nfttest.Must(Include("main", "table ip x {\n\tinclude \"a\"; chain c { bogus; }\n\tbogus }\nbogus", files(map[string]string{
		"a": "\n  chain a {\n\tinclude \"b\"\n bogus }", "b": "accept\nbogus",
	})))
	_, err := b.Parse(Parse)
	var list *ErrorList
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Errors {
		file, pos, line := b.Place(syntax.Pos{Line: 1, Column: 1})
		if file != "" || pos != (syntax.Pos{Line: 1, Column: 1}) || line != "table ip x {" {
			t.Errorf("the first place is %s:%s %q", file, pos, line)
		}
		got = append(got, strings.SplitAfter(e.Error(), ": ")[0]+strings.ReplaceAll(e.Excerpt(), "\n", "|"))
	}
	want := []string{
		"b:2:6: bogus|     ^",
		"a:4:7:  bogus }|      ^",
		"2:30: \tinclude \"a\"; chain c { bogus; }|\t                            ^",
		"3:2: \tbogus }|\t^",
		"4:1: bogus|^",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("errors at\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := err.Error(); !strings.Contains(text, "\nmain:2:30: ") || !strings.HasPrefix(text, "b:2:6: ") {
		t.Errorf("the errors read %s", text)
	}
}

func TestIncludeErrors(t *testing.T) {
	open := files(map[string]string{"loop": `include "loop"`, "deep": "\n include 5", "twice": "include \"loop\"\ninclude \"loop\"", "big": strings.Repeat(" ", MaxLength)})
	for text, want := range map[string]string{
		`include "nosuch"`:                    `main:1:1: include "nosuch": no such file`,
		"include 5":                           `main:1:9: unexpected "5": want the name of a file in double quotes`,
		`include "deep" table`:                `main:1:16: unexpected "table": want the end of the line`,
		`include "deep"`:                      `deep:2:10: unexpected "5"`,
		`include "loop"`:                      `loop:1:1: include "loop": files are included more than 16 levels deep`,
		`include "twice"`:                     `more than 16 levels deep`,
		`include "big"; include "big"`:        `main:1:16: include "big": want at most 1024 files, of 67108864 bytes together`,
		strings.Repeat("include \"e*\"\n", 4): "",
	} {
		b, err := Include("main", text, open)
		if want == "" {
			if err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
			continue
		}
		var list *ErrorList
		if b != nil || !errors.As(err, &list) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// FuzzInclude includes a text into itself in all ways: no panic, and places in the
// files.
func FuzzInclude(f *testing.F) {
	f.Add("include \"a\"\n", "table ip x { }")
	f.Add("table ip x { include \"a\"; }", "chain c { include \"b\"; bogus")
	f.Fuzz(func(t *testing.T, text, other string) {
		b, err := Include("main", text, files(map[string]string{"a": other, "b": text}))
		if err != nil {
			return
		}
		_, err = b.Parse(Parse)
		var list *ErrorList
		if err != nil && !errors.As(err, &list) {
			t.Fatal(err)
		}
		if list == nil {
			return
		}
		for _, e := range list.Errors {
			if e.Pos.IsValid() && e.Pos.Column > len(e.Line)+2 {
				t.Errorf("error %v after the end of its line %q", e, e.Line)
			}
		}
	})
}
