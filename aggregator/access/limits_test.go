package access

import (
	"errors"
	"strings"
	"testing"
	"time"
)

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
		{"timeout", cni.Times(MaxTimeout+1, 0), LimitTimes, "publisher cni declares a timeout of 87600h0m0.000000001s: at most 87600h0m0s is allowed"},
		{"negative timeout", cni.Times(-1, 0), LimitTimes, "declares a timeout of -1ns"},
		{"gc-interval", cni.Times(0, time.Millisecond), LimitTimes, "publisher cni declares a gc-interval of 1ms: at least 1s is allowed"},
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

// TestReads has the refusal of reads.
func TestReads(t *testing.T) {
	p := mustParse(t, "publishers: [{name: cni, match: {uid: 1}}]")
	r := p.Publisher("cni").Reads("table ip filter")
	if want := "publisher cni may not read table ip filter: it belongs to other publishers (no read at weft.yaml:3)"; r.Text != want || !errors.Is(r, ErrDenied) {
		t.Errorf("%v, want %s", r, want)
	}
}
