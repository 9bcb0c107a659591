package knft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"sigs.k8s.io/knftables"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want []string
		err  string
	}{
		{"nothing", "", nil, ""},
		{"two", "add rule ip t c accept\nflush table ip t\n", []string{"add rule ip t c accept", "flush table ip t"}, ""},
		{"a line break in a rule", "add rule ip t c tcp dport {\n80,\n443 } accept\nflush table ip t\n",
			[]string{"add rule ip t c tcp dport {\n80,\n443 } accept", "flush table ip t"}, ""},
		{"a command in a rule", "add rule ip t c accept\ndelete table ip x\n", []string{"add rule ip t c accept", "delete table ip x"}, ""},
		{"an operation that knftables refuses", "add table ip t\n# ERROR: no rule specified", nil, "no rule specified"},
		{"a handle without a line break after it", "delete chain ip t handle 0add table ip t\n", nil,
			"delete chain by handle: not supported by weft: give its name"},
		{"a handle and a refused operation", "delete table ip handle 0# ERROR: no rule specified", nil,
			"delete table by handle: not supported by weft: give its name"},
		{"a chain that is called handle", "delete chain ip t handle\n", []string{"delete chain ip t handle"}, ""},
		{"no command", "frob\n", nil, `"frob" is not a command`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := split(c.text)
			if fmt.Sprint(err) != c.err && (err != nil || c.err != "") || !slices.Equal(got, c.want) {
				t.Errorf("%q\n%q, %v\nwant %q, %s", c.text, got, err, c.want, c.err)
			}
		})
	}
}

func TestParseRule(t *testing.T) {
	for _, c := range []struct {
		rest, text, comment string
		index               int
		handle              uint64
		err                 string
	}{
		{rest: "accept", text: "accept", index: -1},
		{rest: `accept comment "x"`, text: "accept", comment: "x", index: -1},
		{rest: `index 3 tcp dport 80 accept comment ""`, text: "tcp dport 80 accept", index: 3},
		{rest: `handle 17 accept`, text: "accept", index: -1, handle: 17},
		{rest: `handle 17`, index: -1, handle: 17},
		{rest: `log prefix "comment \"" accept`, text: `log prefix "comment \"" accept`, index: -1},
		{rest: `log prefix "a comment "`, text: `log prefix "a comment "`, index: -1},
		{rest: `log prefix "x" comment "y: {"`, text: `log prefix "x"`, comment: "y: {", index: -1},
		{rest: `accept comment "say \"hi\""`, text: `accept comment "say \"hi\""`, index: -1},
		{rest: "index frob accept", err: `malformed index "frob"`},
		{rest: "index -1 accept", err: `malformed index "-1"`},
		{rest: "handle 0 accept", err: `malformed handle "0"`},
		{rest: "handle 99999999999999999999 accept", err: `malformed handle "99999999999999999999"`},
	} {
		at, r, err := parseRule(c.rest)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v: want %s", c.rest, err, c.err)
			}
			continue
		}
		if err != nil || r.GetText() != c.text || r.GetComment() != c.comment || at.index != c.index || at.handle != c.handle {
			t.Errorf("%s: %q %q %+v %v", c.rest, r.GetText(), r.GetComment(), at, err)
		}
	}
}

func TestParseElements(t *testing.T) {
	one := func(key, value, comment string, ms int64) []*weftv1.Element {
		e := &weftv1.Element{Key: key, Value: value, Comment: comment}
		if ms != 0 {
			e.Timeout = durationpb.New(time.Duration(ms) * time.Millisecond)
		}
		return []*weftv1.Element{e}
	}
	for _, c := range []struct {
		rest string
		want []*weftv1.Element
		err  string
	}{
		{rest: "{ 10.0.0.1 }", want: one("10.0.0.1", "", "", 0)},
		{rest: "{ 10.0.0.1 . tcp . 80 : goto x }", want: one("10.0.0.1 . tcp . 80", "goto x", "", 0)},
		{rest: `{ fd00::1 . tcp . 80 comment "a : b, c { d }" : fd00::2 . 8080 }`, want: one("fd00::1 . tcp . 80", "fd00::2 . 8080", "a : b, c { d }", 0)},
		{rest: `{ "eth 0 : 1" }`, want: one(`"eth 0 : 1"`, "", "", 0)},
		{rest: `{ 10.0.0.1 timeout 1m30s }`, want: one("10.0.0.1", "", "", 90_000)},
		{rest: `{ 10.0.0.1 timeout 5s comment "x" }`, want: one("10.0.0.1", "", "x", 5_000)},
		{rest: "{ 1, 2 }", want: append(one("1", "", "", 0), one("2", "", "", 0)...)},
		{rest: "{ 10.0.0.1 timeout soon }", err: "element 10.0.0.1 timeout soon"},
		{rest: "{ 10.0.0.1 expires 5s }", err: "expires of element 10.0.0.1 expires 5s: not supported by weft"},
		{rest: "{ }", err: "no key"},
		{rest: "{ : 80 }", err: "no key"},
		{rest: "{", err: "malformed element {"},
		{rest: "", err: "malformed element "},
	} {
		got, err := parseElements(c.rest)
		if c.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%s: %v: want %s", c.rest, err, c.err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, %v: want %v", c.rest, got, err, c.want)
		}
	}
}

func TestReferences(t *testing.T) {
	type names struct{ sets, chains []string }
	for text, want := range map[string]names{
		"ip saddr @blocked drop":                             {sets: []string{"blocked"}},
		"ip saddr . tcp dport vmap @a-b/c.d":                 {sets: []string{"a-b/c.d"}},
		"tcp dport vmap { 22 : jump ssh,80:goto web-1 }":     {chains: []string{"ssh", "web-1"}},
		"add @seen { ip saddr timeout 5s } jump x":           {sets: []string{"seen"}, chains: []string{"x"}},
		"@th,16,16 80 accept":                                {},
		`log prefix "jump none @none counter name x" accept`: {},
		`log prefix "unfinished @x`:                          {},
		"counter packets 0 bytes 0 accept":                   {},
		"counter name web accept":                            {},
		"ip protocol { tcp, udp } flow offload @f":           {},
		"dnat to numgen random mod 2 map { 0 : 10.0.0.1 }":   {},
		"jump":            {},
		"jump { accept }": {},
		"meta mark set ip saddr map @marks\n\tgoto next # no": {sets: []string{"marks"}, chains: []string{"next"}},
	} {
		var got names
		for _, id := range references(text) {
			if id.kind == kindChain {
				got.chains = append(got.chains, id.name)
			} else {
				got.sets = append(got.sets, id.name)
			}
		}
		if !slices.Equal(got.sets, want.sets) || !slices.Equal(got.chains, want.chains) {
			t.Errorf("%s: %+v: want %+v", text, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	for text, want := range map[string][]string{
		"10.0.0.1":             {"10.0.0.1"},
		"10.0.0.1 . tcp . 80":  {"10.0.0.1", "tcp", "80"},
		`"eth0" . 0x00004000`:  {"eth0", "16384"},
		`"a . b" . 10.0.0.0/8`: {"a . b", "10.0.0.0/8"},
		"goto service-1":       {"goto service-1"},
		"02:00:00:00:00:01":    {"02:00:00:00:00:01"},
		"0xzz":                 {"0xzz"},
		"":                     {""},
	} {
		if got := fields(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q: want %q", text, got, want)
		}
	}
}

// TestConditions checks knftables' functions on the package's errors.
func TestConditions(t *testing.T) {
	cause := errors.New("cause")
	wrapped := &conditionError{msg: "m", condition: missing(), cause: cause}
	if err := fmt.Errorf("run: %w", wrapped); !knftables.IsNotFound(err) || knftables.IsAlreadyExists(err) || !errors.Is(err, cause) {
		t.Errorf("not found: %v", err)
	}
	if err := exists("x"); knftables.IsNotFound(err) || !knftables.IsAlreadyExists(err) {
		t.Errorf("exists: %v", err)
	}
}

// FuzzTransaction parses any text as a transaction, and applies it to an empty fragment.
func FuzzTransaction(f *testing.F) {
	for _, seed := range []string{
		"add table ip t { comment \"x\" ; }\nadd chain ip t c { type filter hook input priority 0 ; policy drop ; }\nadd rule ip t c accept comment \"y\"\n",
		"add table ip t\nadd map ip t m { type ipv4_addr : verdict ; flags interval ; }\nadd element ip t m { 10.0.0.0/8 comment \"z\" : drop }\ndelete element ip t m { 10.0.0.0/8 }\n",
		"add table ip t\nadd set ip t s { typeof ip saddr . tcp dport ; timeout 5s ; size 5 ; auto-merge ; }\nflush set ip t s\ndestroy set ip t s\n",
		"add table ip t\nadd chain ip t c\nadd rule ip t c index 0 jump c\ninsert rule ip t c tcp dport { 1,\n2 } @x\ndelete table ip t\n",
		"delete chain ip t handle 5add table ip t\n", "# ERROR: x", "add rule ip t c \"", "add element ip t s { , }\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := split(text)
		if err != nil {
			return
		}
		var cmds []command
		for _, line := range found {
			c, err := parse(line)
			if err != nil {
				return
			}
			cmds = append(cmds, c)
		}
		known := views{}
		for i := range cmds {
			known[cmds[i].table] = newView("", nil, true)
		}
		a := &Adapter{cfg: Config{Fragment: "f"}, content: newContent()}
		if err := a.apply(known, cmds, true, func(c *transaction) { a.fragment() }); err != nil && len(a.content.tables) != 0 {
			t.Errorf("%v: the content is not what it was", err)
		}
		a.content = newContent()
		if err := a.apply(known, cmds, false, (*transaction).rollback); err == nil && len(a.content.tables) != 0 {
			t.Error("rollback leaves something")
		}
	})
}
