package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
)

// names knows the user agent (100) and the group weft (200).
var names = Lookup{
	User: func(name string) (uint32, error) {
		if name == "agent" {
			return 100, nil
		}
		return 0, errors.New("no such user")
	},
	Group: func(name string) (uint32, error) {
		if name == "weft" {
			return 200, nil
		}
		return 0, errors.New("no such group")
	},
}

func to[T any](v T) *T { return &v }

const head = "apiVersion: weft.dev/v1alpha1\nkind: Configuration\n"

// TestParse has what TestDescribeRights does not show.
func TestParse(t *testing.T) {
	p := mustParse(t, `
socketGroup: weft
publishers:
- {name: cni, match: {uid: agent, gid: 7, executable: /opt/cni/*, cgroup: /system.slice/**}}
- {name: second, match: {cgroup: /x}, allow: {tables: [], families: [], devices: []}, limits: {elements: 1000000, bytes: 2Ki}}
defaults:
  limits: {elements: 10, bytes: 1Gi, updatesPerSecond: 100, burst: 7}
`)
	if p.SocketGroup == nil || *p.SocketGroup != 200 || p.File != "weft.yaml" || p.Publisher("third") != nil {
		t.Errorf("policy %+v", p)
	}
	cni, second := p.Publisher("cni"), p.Publisher("second")
	match := Match{UID: to[uint32](100), GID: to[uint32](7), Executable: "/opt/cni/*", Cgroup: "/system.slice/**"}
	if diff := cmp.Diff(match, cni.Match); diff != "" {
		t.Errorf("match (-want +got):\n%s", diff)
	}
	limits := Limits{UpdatesPerSecond: 100, Burst: 7, Most: map[Limit]int{
		LimitFragments: 1000, LimitRules: 400_000, LimitElements: 10, LimitBytes: 1 << 30, LimitChains: 200_000, LimitBaseChains: 64,
		LimitSets: 1010, LimitMemory: 256 << 20, LimitPacket: 500_000, LimitEveryPacket: 20_000,
	}}
	if diff := cmp.Diff(limits, cni.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if most := second.Limits.Most; most[LimitElements] != 1_000_000 || most[LimitSets] != 10_000 || most[LimitBytes] != 2048 {
		t.Errorf("limits %v", most)
	}
	if a := second.Allow; a.Tables == nil || a.Families == nil || a.Devices == nil || len(a.Tables)+len(a.Families)+len(a.Devices) > 0 {
		t.Errorf("rights %+v", a)
	}
}

// TestParseErrors has every error of the parser. Want is all that is reported.
func TestParseErrors(t *testing.T) {
	publisher := func(text string) string { return head + "publishers:\n- name: a\n" + text }
	limit := func(text string) string { return head + "defaults: {limits: {" + text + "}}" }
	match := "  match: {uid: 1}\n"
	whole := "a whole number from 1 to 1048576Gi, such as 500000, 64Ki or 16Mi"
	logged := "want a number of packets a second from 0 to 1000000, or unlimited"
	mask := "want a whole number from 0 to 4294967295, such as 65280 or 0xff00"
	rate := "want a number greater than 0, such as 0.5 or 100, and at most 1000000"
	tests := []struct{ name, text, want string }{
		{"empty", "", "f: the file is empty: begin it with apiVersion: weft.dev/v1alpha1 and kind: Configuration"},
		{"comment alone", "# nothing\n", "f: the file is empty: begin it with apiVersion: weft.dev/v1alpha1 and kind: Configuration"},
		{"not YAML", head + "a: [\n", "f:3: did not find expected node content"},
		{"tab", head + "a:\n\t- b\n", "f:4: found character that cannot start any token"},
		{"not a mapping", "- a\n", "f:1: got a list: want a mapping of fields"},
		{"kind", "apiVersion: weft.dev/v1\nkind: Config\nfoo: 1\n", `f:1: got apiVersion "weft.dev/v1" and kind "Config": want apiVersion weft.dev/v1alpha1 and kind Configuration`},
		{"two documents", head + "---\n" + head, "f:3: there is a second document: put everything into one"},
		{"unknown field", head + "publisher: []\n", `f:3: unknown field "publisher": want apiVersion, defaults, kind, publishers, socketGroup`},
		{"unknown nested field", publisher(match + "  limit: {}\n"), `f:6: publishers[0]: unknown field "limit": want accept, admin, allow, flows, limits, match, name, priorities, read, system`},
		{"key that is not a name", head + "[a]: 1\n", `f:3: unknown field "": want apiVersion, defaults, kind, publishers, socketGroup`},
		{"merge key", publisher(match + "  <<: {admin: true}\n"), `f:6: publishers[0]: unknown field "<<": want accept, admin, allow, flows, limits, match, name, priorities, read, system`},
		{"repeated field", head + "socketGroup: 1\nsocketGroup: 2\n", "f:4: socketGroup: duplicate field, first set in line 3: remove one"},
		{"alias", publisher("  match: &m {uid: 1}\n- name: b\n  match: *m\n"),
			"f:7: publishers[1].match: aliases are not supported: write the value out"},
		{"no value", publisher(match + "  limits:\n"), "f:6: publishers[0].limits: the value is missing: give it one, or leave the field out"},
		{"mapping for list", head + "publishers: {a: 1}\n", "f:3: publishers: got a mapping: want a list"},
		{"share without a table", publisher(match + "  allow:\n    shared: [{chains: [a]}]\n"), `f:7: publishers[0].allow.shared[0]: the entry has no table: give it one, or "*" for each`},
		{"share of nothing", publisher(match + "  allow:\n    shared: [{table: a, family: ip}]\n"), "f:7: publishers[0].allow.shared[0]: the entry allows nothing: give it chains, sets, objects or flags"},
		{"share of a flag", publisher(match + "  allow:\n    shared: [{table: a, flags: [owner]}]\n"), `f:7: publishers[0].allow.shared[0].flags[0]: unknown flag "owner": want dormant`},
		{"unknown socket group", head + "socketGroup: wheel\n", `f:3: socketGroup: group "wheel" is not known on this machine: make it, or give its id (no such group)`},
		{"socket group out of range", head + "socketGroup: 4294967295\n", `f:3: socketGroup: got "4294967295": want a whole number from 0 to 4294967294`},
		{"socket group is not a scalar", head + "socketGroup: [1]\n", "f:3: socketGroup: got a list: want a single value"},
		{"no name", head + "publishers:\n- match: {uid: 1}\n", "f:4: publishers[0]: the publisher has no name: give it one"},
		{"empty name", head + "publishers:\n- name: ''\n  match: {uid: 1}\n", `f:4: publishers[0].name: the value is missing: give it one, or leave the field out`},
		{"malformed name", head + "publishers:\n- name: A/b\n  match: {uid: 1}\n", `f:4: publishers[0].name: got "A/b": want 1 to 63 of [a-z0-9._-], a letter or digit first`},
		{"name is a number", head + "publishers:\n- name: 1\n  match: {uid: 1}\n", `f:4: publishers[0].name: got "1": want a text in quotes`},
		{"repeated publisher", publisher(match + "- name: a\n" + match), "f:6: publishers[1].name: publisher a is there twice, also in line 4: join them"},
		{"no match", publisher(""), "f:4: publishers[0]: the publisher has no match: say with uid, gid or cgroup who it is"},
		{"match of no user", publisher("  match: {executable: /bin/a}\n"),
			"f:5: publishers[0].match: nothing says whose process it is: give it a uid, gid or cgroup (every user can run an executable)"},
		{"unknown user", publisher("  match: {uid: nosuchuser}\n"), `f:5: publishers[0].match.uid: user "nosuchuser" is not known on this machine: make it, or give its id (no such user)`},
		{"negative uid", publisher("  match: {uid: -1}\n"), `f:5: publishers[0].match.uid: got "-1": want a whole number from 0 to 4294967294`},
		{"octal uid", publisher("  match: {uid: 0100}\n"), `f:5: publishers[0].match.uid: got "0100": want a whole number from 0 to 4294967294`},
		{"relative executable", publisher("  match: {uid: 1, executable: bin/a}\n"), `f:5: publishers[0].match.executable: path "bin/a" is not absolute: begin it with /`},
		{"malformed glob", publisher("  match: {uid: 1, cgroup: '/a[b'}\n"), `f:5: publishers[0].match.cgroup: malformed glob "/a[b": close what [ opens`},
		{"long glob", publisher("  match: {uid: 1, cgroup: /" + strings.Repeat("a", 4096) + "}\n"), "f:5: publishers[0].match.cgroup: the glob has 4097 bytes: at most 4096 are read"},
		{"depth in a component", publisher("  match: {uid: 1, cgroup: /a**/b}\n"), `f:5: publishers[0].match.cgroup: ** in "/a**/b" is only part of a component: write it between two slashes`},
		{"table without name", publisher(match + "  allow: {tables: [{family: ip}]}\n"), `f:6: publishers[0].allow.tables[0]: the table has no name: give it one, or "*" for each`},
		{"table's name", publisher(match + "  allow: {tables: [{name: 'a['}, {name: 3}]}\n"),
			"f:6: publishers[0].allow.tables[0].name: malformed glob \"a[\": close what [ opens\nf:6: publishers[0].allow.tables[1].name: got \"3\": want a text in quotes"},
		{"family", publisher(match + "  allow: {families: [ip, 6]}\n"), `f:6: publishers[0].allow.families[1]: unknown family "6": want ip, ip6, inet, arp, bridge or netdev`},
		{"hook", publisher(match + "  allow: {hooks: [input, INPUT]}\n"),
			`f:6: publishers[0].allow.hooks[1]: unknown hook "INPUT": want prerouting, input, forward, output, postrouting, ingress, egress`},
		{"nat", publisher(match + "  allow: {nat: yes}\n"), `f:6: publishers[0].allow.nat: got "yes": want true or false`},
		{"nat in quotes", publisher(match + "  allow: {nat: 'true'}\n"), `f:6: publishers[0].allow.nat: got "true": want true or false`},
		{"log", publisher(match + "  allow: {log: true}\n"), `f:6: publishers[0].allow.log: got "true": ` + logged},
		{"log is too much", publisher(match + "  allow: {log: 1000001}\n"), `f:6: publishers[0].allow.log: got "1000001": ` + logged},
		{"marks", publisher(match + "  allow: {marks: true}\n"), `f:6: publishers[0].allow.marks: got "true": ` + mask},
		{"wide marks", publisher(match + "  allow: {marks: 0x1ffffffff}\n"), `f:6: publishers[0].allow.marks: got "0x1ffffffff": ` + mask},
		{"filter is not a grant", publisher(match + "  allow: {filter: true}\n"), `f:6: publishers[0].allow: unknown field "filter": want chainPriorities, conntrack, devices, dup, families, flowtables, fwd, hooks, log, mangle, marks, masqueradeMark, nat, policyDrop, queue, route, secmark, shared, synproxy, tables, trace`},
		{"empty range", publisher(match + "  priorities: {}\n"), "f:6: publishers[0].priorities: neither min nor max is given: give one of them, or leave the field out"},
		{"range upside down", publisher(match + "  allow: {chainPriorities: {min: 3, max: -3}}\n"),
			"f:6: publishers[0].allow.chainPriorities: min 3 is greater than max -3: nothing would be allowed"},
		{"range out of range", publisher(match + "  priorities: {max: 2147483648}\n"),
			`f:6: publishers[0].priorities.max: got "2147483648": want a whole number from -2147483648 to 2147483647`},
		{"number of wrong kind", limit("rules: [1]"), "f:3: defaults.limits.rules: got a list: want a single value"},
		{"zero", limit("fragments: 0"), `f:3: defaults.limits.fragments: got "0": want ` + whole},
		{"hexadecimal", limit("elements: 0x10"), `f:3: defaults.limits.elements: got "0x10": want ` + whole},
		{"huge number", limit("elements: 99999999999999999999"), `f:3: defaults.limits.elements: got "99999999999999999999": want ` + whole},
		{"bytes", limit("bytes: 1KB"), `f:3: defaults.limits.bytes: got "1KB": want ` + whole},
		{"huge bytes", limit("bytes: 9223372036854775807Gi"), `f:3: defaults.limits.bytes: got "9223372036854775807Gi": want ` + whole},
		{"no rate", limit("updatesPerSecond: 0"), `f:3: defaults.limits.updatesPerSecond: got "0": ` + rate},
		{"rate that is none", limit("updatesPerSecond: .nan"), `f:3: defaults.limits.updatesPerSecond: got ".nan": ` + rate},
		{"rate as text", limit("updatesPerSecond: '5'"), `f:3: defaults.limits.updatesPerSecond: got "5": want a number`},
		{"burst alone", publisher(match + "  limits: {burst: 3}\n"), "f:6: publishers[0].limits.burst: it does nothing without updatesPerSecond: set that too"},
		{"accept without publishers", publisher(match + "  accept: {mark: 1}\n"), "f:6: publishers[0].accept: it names no publishers: give it publishers"},
		{"accept without a mark", publisher(match + "  accept: {publishers: [b]}\n"), "f:6: publishers[0].accept: no mark is given: give it a bit of the packet mark that nothing else uses, such as 0x10"},
		{"accept with two bits", publisher(match + "  accept: {publishers: [b], mark: 3}\n"), "f:6: publishers[0].accept.mark: got 0x3: want one bit, and not 0x4000, which marks what is masqueraded"},
		{"accept with kube-proxy's bit", publisher(match + "  accept: {publishers: [b], mark: 0x4000}\n"), "f:6: publishers[0].accept.mark: got 0x4000: want one bit, and not 0x4000, which marks what is masqueraded"},
		{"accept of an unknown one", publisher(match + "  accept: {publishers: [b], mark: 1}\n"), "f:6: publishers[0].accept.publishers: there is no publisher b: add it, or remove the name"},
		{"accept of itself", publisher(match + "  accept: {publishers: [a], mark: 1}\n"), "f:6: publishers[0].accept.publishers: publisher a need not name itself: remove the name"},
		{"all at once, in order", publisher("  match: {uid: x}\n  admin: 2\n  foo: 3\n") + "socketGroup: [a]\n",
			"f:5: publishers[0].match.uid: user \"x\" is not known on this machine: make it, or give its id (no such user)\n" +
				"f:6: publishers[0].admin: got \"2\": want true or false\n" +
				"f:7: publishers[0]: unknown field \"foo\": want accept, admin, allow, flows, limits, match, name, priorities, read, system\n" +
				"f:8: socketGroup: got a list: want a single value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Parse("f", []byte(tt.text), names)
			if p != nil || !errors.Is(err, ErrConfig) {
				t.Fatalf("policy %+v, error %v", p, err)
			}
			if err.Error() != tt.want {
				t.Errorf("error:\n%v\nwant:\n%s", err, tt.want)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	if _, err := Parse("f", make([]byte, maxFile+1), names); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("a large file: %v", err)
	}
	_, err := Parse("f", []byte(head+strings.Repeat("x: 1\n", 5000)), names)
	var ferr *FileError
	if !errors.As(err, &ferr) || len(ferr.Problems) != maxProblems {
		t.Errorf("many problems: %v", err)
	}
}

// TestExample loads the example that the documentation points to.
func TestExample(t *testing.T) {
	example, err := os.ReadFile(filepath.FromSlash("../../deploy/examples/config.yaml"))
	must(t, err)
	p, err := Parse("config.yaml", example, System())
	must(t, err)
	if len(p.Publishers) != 5 || !p.Publisher("operators").Admin || !p.Publisher("policy").System || !p.Publisher("policy").Flows || p.Publisher("cni").Flows || p.Publisher("cni").Limits.Most[LimitElements] != 500000 {
		t.Errorf("publishers %+v", p.Publishers)
	}
	// Every field that doc.go names is in the example, or is that of a limit.
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	fields := 0
	for line := range strings.Lines(string(doc)) {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "//\t") || len(words) < 2 || !strings.HasPrefix(line[3:], words[1]) && !strings.HasPrefix(line[3:], "  "+words[1]) {
			continue
		}
		fields++
		name := words[1][strings.LastIndexByte(words[1], '.')+1:]
		if !strings.Contains(string(example), name+":") {
			t.Errorf("field %s is not in the example", name)
		}
	}
	if fields < 20 {
		t.Errorf("found %d fields in doc.go", fields)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(filepath.FromSlash("../../deploy/examples/config.yaml"))
	must(f, err)
	f.Add(example)
	f.Add([]byte(head + "publishers: [{name: a, match: {uid: 1, executable: /**/x}, allow: {tables: [{name: '*'}]}}]"))
	f.Add([]byte(head + "a: &a [*a]\n<<: *a\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data, names)
		if (p == nil) == (err == nil) {
			t.Fatalf("policy %v, error %v", p, err)
		}
		if err != nil {
			return
		}
		peer := &Peer{PID: 1, UID: 1, Executable: "/a/b", Cgroups: []string{"/x/y"}}
		for _, pub := range p.Publishers {
			if p.Publisher(pub.Name) != pub || checkName(pub.Name) != nil {
				t.Fatalf("publisher %q", pub.Name)
			}
			if pub.Limits.UpdatesPerSecond > 0 && pub.Limits.Burst < 1 {
				t.Fatalf("publisher %s has a rate without a burst", pub.Name)
			}
			if _, err := p.Resolve(peer, false, pub.Name); err != nil && !errors.Is(err, ErrDenied) {
				t.Fatal(err)
			}
			_ = pub.Table(nft.TableID{Family: nft.FamilyIP, Name: "t"})
		}
	})
}
