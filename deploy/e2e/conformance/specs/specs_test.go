package specs

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var program = flag.String("specs.program", "", "a built cmd/specs: its specs are written to testdata/names.txt")

func names(t *testing.T) []string {
	t.Helper()
	const file = "testdata/names.txt"
	if *program != "" {
		all, err := List(t.Context(), *program)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestLists checks the lists in the tree against the names of the specs.
func TestLists(t *testing.T) {
	all := names(t)
	skips, err := Skips()
	if err != nil {
		t.Fatal(err)
	}
	if err := check(all, skips, Short()); err != nil {
		t.Error(err)
	}
	if _, err := Known(); err != nil {
		t.Error(err)
	}
	for i, name := range all[1:] {
		if name == all[i] {
			t.Errorf("two specs are called %q: a report cannot tell them apart", name)
		}
	}
	count := func(part string) int {
		n := 0
		for _, name := range all {
			if strings.Contains(name, part) {
				n++
			}
		}
		return n
	}
	if got := [...]int{len(all), count("[Conformance]"), count("[Serial]"), count("] Netpol ")}; got != [...]int{244, 47, 10, 50} {
		t.Errorf("specs, [Conformance], [Serial], NetworkPolicy: %v", got)
	}
}

func TestParseSkips(t *testing.T) {
	skips, err := parse("skip.txt", "# a comment\n\nNo sockets.\n    [Feature:A]\n    a name\n\nNo internet.\n    [Feature:B]\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Skip{{"[Feature:A]", "No sockets."}, {"a name", "No sockets."}, {"[Feature:B]", "No internet."}}
	if !slices.Equal(skips, want) {
		t.Errorf("got %v, want %v", skips, want)
	}
	if reason, ok := Reason(skips, "[sig-network] has a name of its own"); !ok || reason != "No sockets." {
		t.Errorf("reason %q, %t", reason, ok)
	}
	for _, text := range []string{"  pattern without a reason", "A reason.\nAnother one.\n  pattern", "A reason without a pattern."} {
		if _, err := parse("skip.txt", text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestCheck(t *testing.T) {
	all := []string{"[sig-network] one [Feature:A]", "[sig-network] two"}
	for _, c := range []struct {
		skip, short, want string
	}{
		{"[Feature:A]", "[sig-network] two", ""},
		{"[Feature:B]", "[sig-network] two", `skip.txt: no spec has "[Feature:B]" in its name`},
		{"[Feature:A]", "two", `short.txt: there is no spec "two"`},
		{"[Feature:A]", "[sig-network] one [Feature:A]", `short.txt: "[sig-network] one [Feature:A]" is in skip.txt: why`},
	} {
		got := ""
		if err := check(all, []Skip{{c.skip, "why"}}, []string{c.short}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: got %q", c, got)
		}
	}
}

func TestChoose(t *testing.T) {
	all := names(t)
	skips, err := Skips()
	if err != nil {
		t.Fatal(err)
	}
	every, err := (&Config{}).choose(all, skips)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		config Config
		want   func(string) bool
	}{
		{"focus", Config{Focus: "affinity"}, func(name string) bool { return strings.Contains(name, "affinity") }},
		{"skip", Config{Skip: `\[Slow\]|DNS`}, func(name string) bool {
			return !strings.Contains(name, "[Slow]") && !strings.Contains(name, "DNS")
		}},
		{"no policy", Config{NoPolicy: true}, func(name string) bool { return !NeedsPolicy(name) }},
		{"short", Config{Short: true}, func(name string) bool { return slices.Contains(Short(), name) }},
	} {
		var want []string
		for _, name := range every {
			if c.want(name) {
				want = append(want, name)
			}
		}
		if got, err := c.config.choose(all, skips); err != nil || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %d specs, want %d; %v", c.name, len(got), len(want), err)
		}
	}
	for _, c := range []Config{{Focus: "("}, {Skip: "("}, {Focus: "no such spec"}} {
		if _, err := c.choose(all, skips); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	p := progress{out: &out, total: 3}
	p.write([]byte(`{"name":"[sig-network] one","state":"passed","seconds":1.25}` + "\n" + `{"name":"[sig-net`))
	p.write([]byte(`work] two","state":"failed","seconds":61,"message":"no answer\nand more"}` + "\n"))
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "1 of 3, 0 failed  passed     1.2s  one") ||
		!strings.HasSuffix(lines[1], "2 of 3, 1 failed  failed    61.0s  two") || strings.TrimSpace(lines[2]) != "no answer" {
		t.Errorf("got:\n%s", out.String())
	}
}
