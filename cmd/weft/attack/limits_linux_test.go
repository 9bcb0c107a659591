package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Attacks on what the kernel pays: its memory, its hooks, and its time for each packet.

// applyFile applies a file as a user, and returns how that ended.
func (h *host) applyFile(uid uint32, name, nft string) error {
	h.Helper()
	return h.apply(uid, &weftv1.Fragment{Name: name, Nft: nft})
}

// refused checks that an update was refused with a message that has want.
func (h *host) refused(err error, want string) {
	h.Helper()
	if message := status.Convert(err).Message(); err == nil || !strings.Contains(message, want) {
		h.Errorf("the answer is %.300v: want %q", err, want)
	}
}

// repeat returns the texts of format with the numbers from 0 to n-1.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestNestedVariables lets variables double 22 times, and lets others name a long one.
func TestNestedVariables(t *testing.T) {
	double := "define a0 = 10.0.0.1, 10.0.0.2\n"
	for i := range 22 {
		double += fmt.Sprintf("define a%d = $a%d, $a%d\n", i+1, i, i)
	}
	double += "table ip big { set s { type ipv4_addr; elements = { $a%d } } }\n"
	long := "define long = { " + repeat(60_000, "10.0.0.%d, ") + "}\n"
	for name, text := range map[string]string{
		"doubled 22 times":         fmt.Sprintf(double, 22),
		"400 names of a long list": long + repeat(400, "define a%d = $long\n") + "table ip big { }\n",
	} {
		attack(t, options{}, func(h *host) {
			began := time.Now()
			err := h.applyFile(uidBig, "variables", text)
			h.observe("%d bytes of variables, %s: refused after %v", len(text), name, time.Since(began).Round(time.Millisecond))
			h.refused(err, "variables of the file expand to more than")
		})
	}
}

// TestCostlyDeclarations declares content that costs the kernel more than it seems.
func TestCostlyDeclarations(t *testing.T) {
	const memory = "bytes of kernel memory"
	// Commas within a rule, of which the file has few.
	ports := func(n int) string {
		return "chain in {\n" + strings.Repeat("tcp dport { "+repeat(n, "%d, ")+"}\n", 3) + "}"
	}
	for name, tt := range map[string]struct {
		uid           uint32
		content, want string
	}{
		"a set of size 32,000,000":         {uidCNI, "set s { type ipv4_addr; size 32000000; }", memory},
		"40 dynamic sets":                  {uidCNI, repeat(40, "set s%d { type ipv4_addr; flags dynamic; size 65535; counter; }\n"), memory},
		"a dynamic set of size 16777216":   {uidCNI, "set s { type ipv4_addr; flags dynamic,timeout; timeout 1h; size 16777216; }", memory},
		"8,500 sets of ports, 32 KiB each": {uidBig, repeat(8500, "set s%d { type inet_service; }\n"), memory},
		"3 rules with 6,000 elements":      {uidCNI, ports(2000), "elements"},
		"6,400 sets with gc-interval 1ms":  {uidBig, repeat(6400, "set s%d { type ipv4_addr; flags timeout; gc-interval 1ms; }\n"), "gc-interval"},
	} {
		attack(t, options{}, func(h *host) {
			err := h.applyFile(tt.uid, "costly", "table ip "+map[uint32]string{uidCNI: "cni", uidBig: "big"}[tt.uid]+" {\n"+tt.content+"\n}\n")
			h.observe("%s: %.110s", name, status.Convert(err).Message())
			h.refused(err, tt.want)
		})
	}
}

// fanOut is a table in which every chain of a level jumps k times to the next.
func fanOut(table string, k, depth int, verdict string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table ip %s {\n", table)
	for i := depth; i >= 0; i-- {
		fmt.Fprintf(&b, "chain l%d {\n", i)
		for range k {
			if i < depth {
				fmt.Fprintf(&b, verdict+"\n", i+1)
			} else {
				b.WriteString("meta mark 1\n")
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("chain in { type filter hook input priority 0; jump l0; }\n}\n")
	return b.String()
}

// packetIsFast checks that a packet to the host's own address takes less than 5 ms.
func (h *host) packetIsFast() time.Duration {
	h.Helper()
	took := h.sendTime()
	if took > 5*time.Millisecond {
		h.Errorf("a packet takes %v", took)
	}
	return took
}

// TestFanOut sends each packet through millions of rules by jumps, by verdict maps, and in
// two fragments of which each is harmless. What is accepted in the end costs a packet
// less than 5 ms.
func TestFanOut(t *testing.T) {
	for name, verdict := range map[string]string{
		"jumps": "jump l%d", "anonymous verdict maps": "ip protocol vmap { udp : jump l%d }",
	} {
		attack(t, options{}, func(h *host) {
			err := h.applyFile(uidCNI, "fan", fanOut("cni", 3, 14, verdict))
			h.refused(err, "packet take")
			h.observe("%s that fan out, k=3, depth 14: %.90s; a packet takes %v", name, status.Convert(err).Message(), h.packetIsFast())
		})
	}
}

// TestFanOutInParts builds the same out of updates that each change little: a verdict map
// gets its elements later, and the chain of the hook comes last.
func TestFanOutInParts(t *testing.T) {
	attack(t, options{}, func(h *host) {
		must(h.T, h.applyFile(uidCNI, "below", strings.ReplaceAll(fanOut("cni", 3, 12, "jump l%d"), "jump l0;", "")))
		dispatch := "table ip cni { map to { type inet_proto : verdict; %s }\nchain front { type filter hook input priority 1; ip protocol vmap @to\n}\n}\n"
		must(h.T, h.applyFile(uidCNI, "hook", fmt.Sprintf(dispatch, "")))
		err := h.applyFile(uidCNI, "hook", fmt.Sprintf(dispatch, "elements = { udp : jump l0 }"))
		h.refused(err, "in front, then l0, then l1")
		h.observe("a fan-out in parts: %.90s; a packet takes %v", status.Convert(err).Message(), h.packetIsFast())
	})
}

// TestBaseChains fills a hook of the kernel with base chains.
func TestBaseChains(t *testing.T) {
	config := strings.Replace(configuration, "limits: {rules: 10000", "limits: {baseChains: 2000, rules: 10000", 1)
	for uid, want := range map[uint32]string{uidCNI: "base chains", uidBig: "hook input"} {
		attack(t, options{config: config}, func(h *host) {
			table := map[uint32]string{uidCNI: "cni", uidBig: "big"}[uid]
			n := 0
			var err error
			for ; n < 30 && err == nil; n++ {
				err = h.applyFile(uid, fmt.Sprintf("hooks-%d", n%5), fmt.Sprintf("table ip %s%d {\n", table, n%5)+
					repeat(40*(n/5+1), "chain c%d { type filter hook input priority 0; }\n")+"}\n")
			}
			h.refused(err, want)
			_, err = h.ns.Output("table ip other {\nchain c {\ntype filter hook input priority 0;\n}\n}\n", "nft", "-f", "-")
			h.observe("uid %d adds base chains to input: refused in update %d, and nft still can: %v", uid, n, err == nil)
			if err != nil {
				h.Errorf("nft cannot add a base chain: %v", err)
			}
		})
	}
}

// TestManyWrongRules makes the daemon look for the places of errors in a file: once for
// each wrong rule would take minutes.
func TestManyWrongRules(t *testing.T) {
	attack(t, options{}, func(h *host) {
		began := time.Now()
		err := h.applyFile(uidBig, "wrong", "table ip big {\n"+repeat(9000, "chain c%d { ip saddr == tcp dport\n }\n")+"}\n")
		took := time.Since(began)
		h.observe("9,000 wrong rules in a file: refused after %v", took.Round(time.Millisecond))
		h.refused(err, "")
		if took > 3*time.Second {
			h.Errorf("the refusal takes %v", took)
		}
	})
}
