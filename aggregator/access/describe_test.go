package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	logger := described(p.Publisher("logger"))
	for _, want := range []string{
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
	} {
		if !strings.Contains(logger, want) {
			t.Errorf("rights of logger lack %q:\n%s", want, logger)
		}
	}
}

// TestDescribeDefaults has publishers without limits of their own.
func TestDescribeDefaults(t *testing.T) {
	p := mustParse(t, `publishers:
- {name: plain, match: {uid: 1}}
- {name: few, match: {uid: 2}, limits: {elements: 20}}
- {name: boss, match: {uid: 3}, admin: true}
`)
	for name, want := range map[string][]string{
		"plain": {
			"limits.rules = 400000 (the default: limits.rules is not set at weft.yaml:4)",
			"limits.chains = 200000 (the default: limits.chains is not set at weft.yaml:4)",
			"limits.sets = 10000 (the default: limits.sets is not set at weft.yaml:4)",
			"limits.memory = 256Mi (the default: limits.memory is not set at weft.yaml:4)",
			"limits.updatesPerSecond = unlimited (the default: limits.updatesPerSecond is not set at weft.yaml:4)",
			"limits.burst = unlimited (the default: limits.burst is not set at weft.yaml:4)",
		},
		"few":  {"limits.sets = 1020 (the default: 1000 more than limits.elements at weft.yaml:5)"},
		"boss": {"admin = yes (admin at weft.yaml:6)", "limits.memory = unlimited (the default: limits.memory is not set at weft.yaml:6)"},
	} {
		got := described(p.Publisher(name))
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("rights of %s lack %q:\n%s", name, line, got)
			}
		}
	}
}
