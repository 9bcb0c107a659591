package attack

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
)

// Attacks on packets: rules, lookups and counts that take long. What each expression takes, and what is
// predicted, is printed by BenchmarkPacket of package nft/cost.

// sendTime returns how long the fastest of some packets to the own address takes to be sent, with
// all that happens to it at the hooks on loopback.
func (h *host) sendTime() time.Duration {
	h.Helper()
	h.ns.Run(h.T, "ip", "link", "set", "lo", "up")
	least := time.Hour
	must(h.T, h.ns.Do(func() error {
		to, err := net.ListenPacket("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }()
		from, err := net.Dial("udp4", to.LocalAddr().String())
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		for range 100 {
			began := time.Now()
			if _, err := from.Write([]byte("x")); err != nil {
				return err
			}
			least = min(least, time.Since(began))
		}
		return nil
	}))
	return least
}

// TestDearPackets adds rules that packets pay for until that is refused, and measures the most
// expensive packet that is admitted.
func TestDearPackets(t *testing.T) {
	ranges := "set s { type ipv4_addr . inet_service; flags interval; elements = { "
	for i := range 6000 {
		ranges += fmt.Sprintf("10.1.%d.%d . 1001-4007, ", i>>8, i&255)
	}
	ranges += "} }\n"
	for name, tt := range map[string]struct{ content, rule string }{
		"lookups in 6,000 ranges":  {ranges, "ip saddr . udp dport @s drop\n"},
		"counts of connections":    {"", "meta l4proto udp ct count over 1000 drop\n"},
		"counts that drop nothing": {"", "meta l4proto udp ct count over 5\n"},
		"comparisons":              {"", "ip saddr 10.0.0.1 drop\n"},
		"many matches":             {"", "meta l4proto udp ip saddr != 10.0.0.1 udp dport != 1 meta mark != 7 ip ttl 5\n"},
	} {
		attack(t, options{}, func(h *host) {
			base := h.sendTime()
			apply := func(n int) error {
				rules := "chain in { type filter hook output priority 0;\n" + strings.Repeat(tt.rule, n) + "}\n"
				return h.applyFile(uidBig, "dear", "table ip big {\n"+tt.content+rules+"}\n")
			}
			admitted, refused := 0, 9000
			err := apply(refused)
			h.refused(err, "at most")
			for refused-admitted > admitted/8+1 {
				if n := (admitted + refused) / 2; apply(n) == nil {
					admitted = n
				} else {
					refused = n
				}
			}
			must(h.T, apply(admitted))
			took := h.sendTime() - base
			h.observe("%s: %d rules are admitted, and a packet takes %v; %d are refused: %.100s", name, admitted, took.Round(time.Microsecond), refused,
				strings.TrimPrefix(status.Convert(err).Message(), "fragment big/dear rejected: chain ip big in: publisher big "))
			if took > dearest && strict() {
				h.Errorf("a packet takes %v: at most %v are wanted", took, dearest)
			}
		})
	}
}

// dearest is how long an admitted packet may take: twice the default limit.
const dearest = time.Millisecond
