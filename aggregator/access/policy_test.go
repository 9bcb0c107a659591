package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustParse parses the part of a configuration after its head.
func mustParse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("weft.yaml", []byte(head+text), names)
	must(t, err)
	return p
}

func TestMatch(t *testing.T) {
	peer := Peer{
		PID: 7, UID: 100, GID: 200, Groups: []uint32{27, 300}, Executable: "/opt/cni/bin/agent",
		Cgroups: []string{"/system.slice/cni.service/worker", "/cpu"},
	}
	for _, tt := range []struct {
		match string
		want  bool
	}{
		{"uid: 100", true},
		{"uid: agent", true},
		{"gid: weft", true},
		{"uid: 101", false},
		{"gid: 200", true},
		{"gid: 27", true},
		{"gid: 28", false},
		{"uid: 100, gid: 300", true},
		{"uid: 100, gid: 301", false},
		{"uid: 100, executable: /opt/cni/bin/agent", true},
		{"uid: 100, executable: /opt/cni/bin/*", true},
		{"uid: 100, executable: /opt/**", true},
		{"uid: 100, executable: /opt/*", false},
		{"uid: 100, executable: /opt/cni/bin", false},
		{"uid: 101, executable: /opt/**", false},
		{"cgroup: /system.slice/cni.service", false},
		{"cgroup: /system.slice/cni.service/**", true},
		{"cgroup: /**/worker", true},
		{"cgroup: /cpu", true},
	} {
		p := mustParse(t, "publishers: [{name: a, match: {"+tt.match+"}}]")
		if _, err := p.Resolve(&peer, false, ""); (err == nil) != tt.want {
			t.Errorf("match %s: error %v", tt.match, err)
		}
	}
	unknown := Peer{UID: 100, Unknown: errors.New("too fast")}
	for _, match := range []string{"uid: 100, executable: /**", "cgroup: /**"} {
		p := mustParse(t, "publishers: [{name: a, match: {"+match+"}}]")
		if _, err := p.Resolve(&unknown, false, ""); err == nil || !strings.Contains(err.Error(), "too fast") {
			t.Errorf("match %s of what is not known: %v", match, err)
		}
	}
}

func TestMatchPath(t *testing.T) {
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"/", "/", true},
		{"/**", "/", true},
		{"/**", "/a/b", true},
		{"/a/**", "/a", true},
		{"/a/**", "/ab", false},
		{"/**/b", "/b", true},
		{"/**/b/**/c", "/x/b/y/z/c", true},
		{"/**/b/**/c", "/x/b/y/z/d", false},
		{"/a?c/[x-z]*", "/abc/yes", true},
		{"/a?c/[x-z]*", "/abc/no", false},
		{"/a", "/a/", false},
		{"/a", "a", false},
		{"/a", "", false},
		{"/../x", "/../x", true},
	} {
		if got := matchPath(tt.glob, tt.path); got != tt.want {
			t.Errorf("glob %s, path %s: %v", tt.glob, tt.path, got)
		}
	}
	// Not exponential.
	if matchPath(strings.Repeat("/**", 200)+"/x", strings.Repeat("/a", 2000)) {
		t.Error("matched what is not there")
	}
}

func TestResolve(t *testing.T) {
	p := mustParse(t, `
publishers:
- {name: one, match: {uid: 100}}
- {name: two, match: {gid: 200}}
- {name: boss, match: {uid: 300}, admin: true}
- {name: node, match: {uid: 400}, system: true}
- {name: cutter, match: {uid: 500}, flows: true}
- {name: rooted, match: {uid: 0, gid: 7}}
`)
	for _, tt := range []struct {
		name  string
		peer  Peer
		root  bool
		want  string
		got   Identity
		limit Limit
		text  string
	}{
		{"the only match", Peer{UID: 100}, false, "", Identity{"one", false, false, false, false}, "", ""},
		{"the first of several", Peer{UID: 100, GID: 200}, false, "", Identity{"one", false, false, false, false}, "", ""},
		{"another of several", Peer{UID: 100, GID: 200}, false, "two", Identity{"two", false, false, false, false}, "", ""},
		{"a name that is not its own", Peer{UID: 100}, false, "two", Identity{}, LimitPublisher,
			`uid 100 may not act as publisher "two": weft.yaml lets it act as one`},
		{"an unknown name", Peer{UID: 100}, false, "three", Identity{}, LimitPublisher, `"three"`},
		{"a stranger", Peer{UID: 101, GID: 5, Groups: []uint32{6}, Executable: "/bin/x", Cgroups: []string{"/c"}}, false, "", Identity{}, LimitCaller,
			"uid 101 may not call the aggregator: no publisher in weft.yaml matches it (gid 5, groups [6], executable /bin/x, cgroup /c)"},
		{"a stranger by a name", Peer{UID: 101}, false, "one", Identity{}, LimitCaller, "no publisher"},
		{"root", Peer{}, true, "", Identity{"uid-0", true, true, true, true}, "", ""},
		{"root under a name", Peer{}, true, "anything", Identity{"anything", true, true, true, true}, "", ""},
		{"root that is matched", Peer{GID: 7}, true, "", Identity{"rooted", true, true, true, true}, "", ""},
		{"a frontend of the node", Peer{UID: 400}, false, "", Identity{"node", false, false, false, true}, "", ""},
		{"one with the right to flows", Peer{UID: 500}, false, "", Identity{"cutter", false, false, true, false}, "", ""},
		{"an administrator", Peer{UID: 300}, false, "", Identity{"boss", true, true, true, true}, "", ""},
		{"an administrator as another", Peer{UID: 300}, false, "one", Identity{"one", true, true, true, true}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.Resolve(&tt.peer, tt.root, tt.want)
			if tt.limit == "" {
				if err != nil || got != tt.got {
					t.Fatalf("identity %+v, error %v", got, err)
				}
				return
			}
			var r *Refusal
			if !errors.As(err, &r) || !errors.Is(err, ErrDenied) || r.Limit != tt.limit || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("identity %+v, error %v", got, err)
			}
		})
	}
	none := &Policy{}
	if _, err := none.Resolve(&Peer{UID: 5}, false, ""); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "without a configuration") {
		t.Errorf("without a configuration: %v", err)
	}
}

func TestRights(t *testing.T) {
	p := mustParse(t, `defaults: {limits: {rules: 5}}
publishers:
- name: cni
  match: {uid: 1}
  allow:
    tables: [{family: inet, name: cni-*}, {name: shared}]
    families: [inet, ip]
    hooks: [input]
    chainPriorities: {min: -10, max: 10}
  priorities: {min: 0}
  limits: {elements: 10, updatesPerSecond: 2, streams: 1}
- name: plain
  match: {uid: 2}
- name: logger
  match: {uid: 3}
  allow:
    log: 10
    marks: 0xff00
    nat: true
    devices: [eth1, veth*]
- name: services
  match: {uid: 4}
  allow: {masqueradeMark: true}
`)
	services := p.Publisher("services")
	logger := p.Publisher("logger")
	cni, plain := p.Publisher("cni"), p.Publisher("plain")
	table := func(pub *Publisher, f nft.Family, name string) *Refusal {
		return pub.Table(nft.TableID{Family: f, Name: name})
	}
	one := func(all []*Refusal) *Refusal {
		if len(all) != 1 {
			return nil
		}
		return all[0]
	}
	for _, tt := range []struct {
		what  string
		got   *Refusal
		limit Limit
		text  string
	}{
		{"table", table(cni, nft.FamilyInet, "cni-a/b"), "", ""},
		{"table of any family", table(cni, nft.FamilyIP, "shared"), "", ""},
		{"table of another family", table(cni, nft.FamilyIP, "cni-a"), LimitTable, "allowed tables are inet cni-*, shared (allow.tables at weft.yaml:8)"},
		{"table of its name", table(plain, nft.FamilyBridge, "plain"), "", ""},
		{"chain", one(cni.Chain(BaseChain{Hook: "input", Type: "filter", Priority: -10})), "", ""},
		{"any hook", one(plain.Chain(BaseChain{Hook: "egress", Type: "filter", Priority: -999})), "", ""},
		{"rule", cni.Class(nft.ClassNAT), "nat", "publisher cni may not translate addresses"},
		{"chain of type route", one(cni.Chain(BaseChain{Hook: "input", Type: "route"})), "route",
			"publisher cni may not have base chains of type route: route is not allowed (no allow.route at weft.yaml:5)"},
		{"one device of several", one(logger.Chain(BaseChain{Hook: "ingress", Type: "filter", Devices: []string{"veth0", "eth0"}})), LimitDevices, "may not use device eth0"},
		{"devices", one(logger.Chain(BaseChain{Hook: "ingress", Type: "filter", Devices: []string{"veth0", "eth1"}})), "", ""},
		{"filter", plain.Class(nft.ClassFilter), "", ""},
		{"a class that is allowed", logger.Class(nft.ClassNAT), "", ""},
		{"an unknown class", plain.Class(0), "class(0)", "class(0) is not allowed"},
		{"mark", plain.Marks(0x4000), "marks", "publisher plain may not change the packet mark: marks is not allowed (no allow.marks at weft.yaml:14)"},
		{"mark outside of the mask", logger.Marks(0xffffffff), "marks",
			"publisher logger may not change the bits 0xffff40ff of the packet mark: allowed bits are 0x0000bf00: write meta mark set meta mark & 0xffff40ff | VALUE; " +
				"0x00004000, by which Services masquerade, needs masqueradeMark (allow.marks at weft.yaml:20)"},
		{"one bit outside of the mask", logger.Marks(0x1), "marks", "allowed bits are 0x0000bf00: write meta mark set meta mark & 0xffff40ff | VALUE (allow.marks"},
		{"mark of Services", logger.Marks(MasqueradeMark), "marks", "may not change the bits 0x00004000 of the packet mark"},
		{"mark of Services that is allowed", services.Marks(MasqueradeMark), "", ""},
		{"another mark", services.Marks(0x1), "marks", "allowed bits are 0x00004000"},
		{"mark within the mask", logger.Marks(0x1200), "", ""},
		{"much log", logger.Logs(0, 36001), "log", "publisher logger would log up to 10.1 packets a second, and logs 0: at most 10 are allowed, all rules together, and a burst counts once a minute (allow.log at weft.yaml:19)"},
		{"log at the limit", logger.Logs(0, 36000), "", ""},
		{"log over a lowered limit", logger.Logs(40000, 40000), "", ""},
		{"priority in range", cni.Priority(7), "", ""},
		{"elements at the limit", cni.Holds(LimitElements, 4, 10), "", ""},
		{"elements over a lowered limit", cni.Holds(LimitElements, 12, 12), "", ""},
		{"inherited", cni.Holds(LimitRules, 0, 6), LimitRules, "at most 5 are allowed (defaults.limits.rules at weft.yaml:3)"},
		{"no limit", cni.Holds(LimitBytes, 0, 1<<30), "", ""},
		{"stream", cni.Streams(1), "", ""},
		{"second stream", cni.Streams(2), LimitStreams, "publisher cni would have 2 open streams: at most 1 are allowed"},
		{"rate", cni.TooFast("3s"), LimitUpdates, "2 a second are allowed, and 2 at once: retry in 3s (limits.updatesPerSecond at weft.yaml:13)"},
	} {
		if tt.limit == "" {
			if tt.got != nil {
				t.Errorf("%s: refused: %v", tt.what, tt.got)
			}
			continue
		}
		if tt.got == nil || tt.got.Limit != tt.limit || !strings.Contains(tt.got.Text, tt.text) {
			t.Errorf("%s: %v, want %s", tt.what, tt.got, tt.text)
			continue
		}
		if errors.Is(tt.got, ErrDenied) != tt.limit.Right() || errors.Is(tt.got, ErrExceeded) == tt.limit.Right() {
			t.Errorf("%s: %v is of the wrong kind", tt.what, tt.got)
		}
	}
}

func TestShared(t *testing.T) {
	p := mustParse(t, `publishers:
- name: cni
  match: {uid: 1}
  allow:
    shared:
    - {family: ip, table: filter, chains: [input, fw-*], objects: [quota-*]}
    - {table: "nat*", sets: ["*"]}
    - {family: ip, table: filter, flags: [dormant]}
- {name: plain, match: {uid: 2}}
`)
	cni, plain := p.Publisher("cni"), p.Publisher("plain")
	filter, nat := nft.TableID{Family: nft.FamilyIP, Name: "filter"}, nft.TableID{Family: nft.FamilyIP6, Name: "nat6"}
	for _, tt := range []struct {
		p          *Publisher
		table      nft.TableID
		kind, name string
		// want is the text of the refusal; "" means that there is none.
		want string
	}{
		{cni, filter, "chain", "input", ""},
		{cni, filter, "chain", "fw-new", ""},
		{cni, filter, "chain", "output", "publisher cni may not use chain output of table ip filter: publisher owner declared it first, and no grant names it (allow.shared at weft.yaml:7)"},
		{cni, filter, "set", "input", "publisher cni may not use set input of table ip filter"},
		{cni, filter, "quota", "quota-a", ""},
		{cni, filter, "flowtable", "quota-a", ""},
		{cni, filter, "counter", "other", "publisher cni may not use counter other of table ip filter"},
		{cni, filter, "", "", ""},
		{cni, nat, "map", "any", ""},
		{cni, nat, "set", "any", ""},
		{cni, nat, "chain", "any", "publisher cni may not use chain any of table ip6 nat6"},
		{cni, nat, "", "", "publisher cni may not make table ip6 nat6 dormant: publisher owner has fragments in it, and no grant names the flag (allow.shared at weft.yaml:7)"},
		{plain, filter, "chain", "input", "publisher owner declared it first, and no grant names it (no allow.shared at weft.yaml:11)"},
		{plain, filter, "chain", strings.Repeat("x", 100), "may not use chain " + strings.Repeat("x", 80) + "... of table ip filter"},
	} {
		r := tt.p.Shared(tt.table, tt.kind, tt.name, "owner")
		switch {
		case tt.want == "" && r != nil:
			t.Errorf("%s %s of %s: refused: %v", tt.kind, tt.name, tt.table, r)
		case tt.want != "" && (r == nil || !strings.Contains(r.Text, tt.want) || r.Limit != LimitShared || !errors.Is(r, ErrDenied)):
			t.Errorf("%s %s of %s: %v, want %s", tt.kind, tt.name, tt.table, r, tt.want)
		}
	}
}

// TestFixedLimits has limits that are not configured, and those of what packets pay.
func TestFixedLimits(t *testing.T) {
	p := mustParse(t, `publishers:
- {name: cni, match: {uid: 1}, limits: {packetNanoseconds: 2500, everyPacketNanoseconds: 100}}
- {name: boss, match: {uid: 2}, admin: true}
- {name: services, match: {uid: 3}, system: true}
`)
	cni := p.Publisher("cni")
	path := func() string { return "90 of them in chain a, then chain b" }
	for _, tt := range []struct {
		what  string
		got   *Refusal
		limit Limit
		want  string
	}{
		{"packet at the limit", cni.Packet(LimitPacket, 2500, "input", path), "", ""},
		{"packet", cni.Packet(LimitPacket, 2501, "input", path), LimitPacket,
			"publisher cni makes a packet take up to 2.501µs at hook input (90 of them in chain a, then chain b): at most 2.5µs are allowed: use sets and verdict maps, smaller sets with concatenated ranges, fewer jumps, or ct count over a small number with drop (limits.packetNanoseconds at weft.yaml:4)"},
		{"every packet", cni.Packet(LimitEveryPacket, 101, "input", path), LimitEveryPacket,
			"publisher cni makes every packet take 101ns at hook input (90 of them in chain a, then chain b): at most 100ns are allowed: use sets and verdict maps, or jump to the rules only with the packets that they are for (limits.everyPacketNanoseconds at weft.yaml:4)"},
		{"last base chain", cni.HookChains("ip input", MaxHookChains), "", ""},
		{"base chain", cni.HookChains("ip input", MaxHookChains+1), LimitHookChains,
			"publisher cni would add base chain 513 to hook ip input: 512 are allowed, the others are reserved for the system: use the base chains that there are, or set system for the publisher at weft.yaml:4"},
		{"times that are not set", cni.Times(0, 0), "", ""},
		{"times at the limits", cni.Times(MaxTimeout, MinGCInterval), "", ""},
		{"negative timeout", cni.Times(-1, 0), LimitTimes, "declares a timeout of -1ns"},
		{"long gc-interval", cni.Times(0, MaxTimeout+time.Second), LimitTimes, "publisher cni declares a gc-interval of 87600h0m1s: at most 87600h0m0s is allowed"},
	} {
		switch {
		case tt.want == "" && tt.got != nil:
			t.Errorf("%s: refused: %v", tt.what, tt.got)
		case tt.want != "" && (tt.got == nil || !strings.Contains(tt.got.Text, tt.want) || tt.got.Limit != tt.limit || !errors.Is(tt.got, ErrExceeded)):
			t.Errorf("%s: %v, want %s", tt.what, tt.got, tt.want)
		}
	}
	for _, pub := range []*Publisher{p.Publisher("boss"), p.Publisher("services"), nil} {
		if pub.Limited() {
			t.Errorf("publisher %+v is limited", pub)
		}
		if pub == nil {
			continue
		}
		for _, r := range []*Refusal{pub.Packet(LimitPacket, 1<<30, "input", path), pub.HookChains("ip input", 2000), pub.Times(2*MaxTimeout, 1)} {
			if r != nil {
				t.Errorf("publisher %s: refused: %v", pub.Name, r)
			}
		}
	}
}

// described returns the rights of a publisher as lines "name = value (where)".
func described(p *Publisher) string {
	var b strings.Builder
	for _, r := range p.Rights() {
		fmt.Fprintf(&b, "%s = %s (%s)\n", r.Name, r.Value, r.Where)
	}
	return b.String()
}

func TestDescribeRights(t *testing.T) {
	p := mustParse(t, `defaults: {limits: {rules: 5, memory: 64Mi}}
publishers:
- name: cni
  match: {uid: 1}
  read: true
  allow:
    tables: [{family: inet, name: cni-*}, {name: shared}]
    families: [inet, ip]
    hooks: []
    chainPriorities: {min: -10}
    devices: [eth1, veth*]
    log: 10
    marks: 0xff00
    masqueradeMark: true
    nat: true
    policyDrop: false
    shared:
    - {family: ip, table: filter, chains: [input, fw-*], sets: [s], objects: [o]}
    - {table: "*", flags: [dormant]}
  priorities: {max: 7}
  limits: {elements: 10, bytes: 1000, updatesPerSecond: 2.5, streams: 1, sets: 3}
- name: logger
  match: {uid: 3}
  allow: {log: unlimited}
  limits: {updatesPerSecond: 2, burst: 9}
  system: true
- {name: few, match: {uid: 4}, limits: {elements: 20}}
- {name: boss, match: {uid: 5}, admin: true}
`)
	const cni = `allow.tables = inet cni-*, shared (allow.tables at weft.yaml:9)
allow.families = inet, ip (allow.families at weft.yaml:10)
allow.hooks = none (allow.hooks at weft.yaml:11)
allow.chainPriorities = at least -10 (allow.chainPriorities at weft.yaml:12)
allow.devices = eth1, veth* (allow.devices at weft.yaml:13)
allow.policyDrop = no (allow.policyDrop at weft.yaml:18)
allow.log = 10 packets a second (allow.log at weft.yaml:14)
allow.marks = 0x0000ff00 (allow.marks at weft.yaml:15)
allow.conntrack = no (no allow.conntrack at weft.yaml:5)
allow.nat = yes (allow.nat at weft.yaml:17)
allow.mangle = no (no allow.mangle at weft.yaml:5)
allow.dup = no (no allow.dup at weft.yaml:5)
allow.fwd = no (no allow.fwd at weft.yaml:5)
allow.queue = no (no allow.queue at weft.yaml:5)
allow.route = no (no allow.route at weft.yaml:5)
allow.flowtables = no (no allow.flowtables at weft.yaml:5)
allow.synproxy = no (no allow.synproxy at weft.yaml:5)
allow.secmark = no (no allow.secmark at weft.yaml:5)
allow.trace = no (no allow.trace at weft.yaml:5)
allow.masqueradeMark = yes (allow.masqueradeMark at weft.yaml:16)
allow.shared = ip filter chains input fw-* sets s objects o, * flags dormant (allow.shared at weft.yaml:19)
accept = none (no accept at weft.yaml:5)
priorities = at most 7 (priorities at weft.yaml:22)
admin = no (no admin at weft.yaml:5)
read = yes (read at weft.yaml:7)
flows = no (no flows at weft.yaml:5)
system = no (no system at weft.yaml:5)
limits.fragments = 1000 (the default: limits.fragments is not set at weft.yaml:5)
limits.rules = 5 (defaults.limits.rules at weft.yaml:3)
limits.elements = 10 (limits.elements at weft.yaml:23)
limits.bytes = 1000 (limits.bytes at weft.yaml:23)
limits.streams = 1 (limits.streams at weft.yaml:23)
limits.chains = 1005 (the default: 1000 more than defaults.limits.rules at weft.yaml:3)
limits.baseChains = 64 (the default: limits.baseChains is not set at weft.yaml:5)
limits.sets = 3 (limits.sets at weft.yaml:23)
limits.memory = 64Mi (defaults.limits.memory at weft.yaml:3)
limits.packetNanoseconds = 500000 (the default: limits.packetNanoseconds is not set at weft.yaml:5)
limits.everyPacketNanoseconds = 20000 (the default: limits.everyPacketNanoseconds is not set at weft.yaml:5)
limits.updatesPerSecond = 2.5 (limits.updatesPerSecond at weft.yaml:23)
limits.burst = 3 (the default: one second of limits.updatesPerSecond at weft.yaml:23)
base chains at one hook = refused where all publishers have 512 (fixed)
timeout of elements = at most 87600h0m0s (fixed)
gc-interval of sets = at least 1s (fixed)
`
	if diff := cmp.Diff(cni, described(p.Publisher("cni"))); diff != "" {
		t.Errorf("rights of cni (-want +got):\n%s", diff)
	}
	for name, want := range map[string][]string{
		"logger": {
			"allow.tables = logger (no allow.tables at weft.yaml:24)",
			"allow.families = all (", "allow.hooks = all (", "allow.chainPriorities = any (", "allow.devices = none (",
			"allow.log = unlimited (allow.log at weft.yaml:26)",
			"allow.shared = none (no allow.shared at weft.yaml:24)",
			"system = yes (system at weft.yaml:28)",
			"limits.rules = 5 (defaults.limits.rules at weft.yaml:3)",
			"limits.chains = unlimited (the default: limits.chains is not set at weft.yaml:24)",
			"limits.updatesPerSecond = 2 (limits.updatesPerSecond at weft.yaml:27)",
			"limits.burst = 9 (limits.burst at weft.yaml:27)",
			"base chains at one hook = unlimited (fixed)",
			"timeout of elements = unlimited (fixed)",
			"gc-interval of sets = unlimited (fixed)",
		},
		"few": {
			"limits.sets = 1020 (the default: 1000 more than limits.elements at weft.yaml:29)",
			"limits.updatesPerSecond = unlimited (the default: limits.updatesPerSecond is not set at weft.yaml:29)",
			"limits.burst = unlimited (the default: limits.burst is not set at weft.yaml:29)",
		},
		"boss": {"admin = yes (admin at weft.yaml:30)", "limits.sets = unlimited (the default: limits.sets is not set at weft.yaml:30)"},
	} {
		got := described(p.Publisher(name))
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("rights of %s lack %q:\n%s", name, line, got)
			}
		}
	}
}
