package access

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// mustParse parses the part of a configuration after its head.
func mustParse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("weft.yaml", []byte(head+text), names)
	if err != nil {
		t.Fatal(err)
	}
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
		{"uid: 101", false},
		{"uid: 0", false},
		{"gid: 200", true},
		{"gid: weft", true},
		{"gid: 27", true},
		{"gid: 28", false},
		{"uid: 100, gid: 300", true},
		{"uid: 100, gid: 301", false},
		{"uid: 101, gid: 300", false},
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
		{"cgroup: /mem", false},
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
		{"table of another family", table(cni, nft.FamilyIP, "cni-a"), LimitTable,
			"publisher cni may not use table ip cni-a: allowed tables are inet cni-*, shared (allow.tables at weft.yaml:8)"},
		{"family", table(cni, nft.FamilyBridge, "shared"), LimitFamily,
			"publisher cni may not use table bridge shared: allowed families are inet, ip (allow.families at weft.yaml:9)"},
		{"table of its name", table(plain, nft.FamilyBridge, "plain"), "", ""},
		{"table of another name", table(plain, nft.FamilyIP, "plain2"), LimitTable,
			"publisher plain may not use table ip plain2: allowed tables are plain (no allow.tables at weft.yaml:14)"},
		{"hook", one(cni.Chain(BaseChain{Hook: "output", Type: "filter"})), LimitHook, "publisher cni may not use hook output: allowed hooks are input (allow.hooks at weft.yaml:10)"},
		{"chain of type nat", one(cni.Chain(BaseChain{Hook: "input", Type: "nat"})), "nat", "publisher cni may not have base chains of type nat: nat is not allowed (no allow.nat at weft.yaml:5)"},
		{"chain priority", one(cni.Chain(BaseChain{Hook: "input", Type: "filter", Priority: 11})), LimitChainPriority,
			"publisher cni may not use chain priority 11: allowed is -10 to 10 (allow.chainPriorities at weft.yaml:11)"},
		{"chain", one(cni.Chain(BaseChain{Hook: "input", Type: "filter", Priority: -10})), "", ""},
		{"any hook", one(plain.Chain(BaseChain{Hook: "egress", Type: "filter", Priority: -999})), "", ""},
		{"rule", cni.Class(nft.ClassNAT), "nat", "publisher cni may not translate addresses"},
		{"chain of type route", one(cni.Chain(BaseChain{Hook: "input", Type: "route"})), "route",
			"publisher cni may not have base chains of type route: route is not allowed (no allow.route at weft.yaml:5)"},
		{"policy drop", one(cni.Chain(BaseChain{Hook: "input", Type: "filter", Drop: true})), "policyDrop",
			"publisher cni may not have base chains with policy drop: policyDrop is not allowed (no allow.policyDrop at weft.yaml:5)"},
		{"device", one(plain.Chain(BaseChain{Hook: "ingress", Type: "filter", Devices: []string{"eth0"}})), LimitDevices,
			"publisher plain may not use device eth0: allowed devices are none (no allow.devices at weft.yaml:14)"},
		{"one device of several", one(logger.Chain(BaseChain{Hook: "ingress", Type: "filter", Devices: []string{"veth0", "eth0"}})), LimitDevices,
			"may not use device eth0: allowed devices are eth1, veth* (allow.devices at weft.yaml:22)"},
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
		{"log", plain.Class(nft.ClassLog), "log", "publisher plain may not log packets: log is not allowed (no allow.log at weft.yaml:14)"},
		{"every packet", logger.UnlimitedLog(), "log", "publisher logger may not log every packet: 10 packets a second are allowed: write a limit"},
		{"much log", logger.Logs(0, 36001), "log", "publisher logger would log up to 10.1 packets a second, and logs 0: at most 10 are allowed, all rules together, and a burst counts once a minute (allow.log at weft.yaml:19)"},
		{"log at the limit", logger.Logs(0, 36000), "", ""},
		{"log over a lowered limit", logger.Logs(40000, 40000), "", ""},
		{"priority", cni.Priority(-1), LimitPriority, "publisher cni may not use priority -1: allowed is at least 0 (priorities at weft.yaml:12)"},
		{"priority in range", cni.Priority(7), "", ""},
		{"elements", cni.Holds(LimitElements, 4, 11), LimitElements,
			"publisher cni would hold 11 elements, and holds 4: at most 10 are allowed (limits.elements at weft.yaml:13)"},
		{"elements at the limit", cni.Holds(LimitElements, 4, 10), "", ""},
		{"elements over a lowered limit", cni.Holds(LimitElements, 12, 12), "", ""},
		{"inherited", cni.Holds(LimitRules, 0, 6), LimitRules, "at most 5 are allowed (defaults.limits.rules at weft.yaml:3)"},
		{"no limit", cni.Holds(LimitBytes, 0, 1<<30), "", ""},
		{"snapshot", cni.Brings(LimitElements, 11), LimitElements, "sends a snapshot with at least 11 elements: at most 10"},
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
