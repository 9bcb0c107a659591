package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Attacks on the lock of nftables: transactions that hold it for long. What each takes, and what is
// predicted, is printed by BenchmarkTransaction of package nft/cost.

// contender is another writer of nftables in the host's network namespace. It makes small
// transactions of its own until it is stopped, and notes how long the longest one waited.
type contender struct {
	stop, done chan struct{}
	longest    time.Duration
}

func (h *host) contend() *contender {
	h.Helper()
	k, err := kernel.Open(kernel.Config{NetNS: h.ns.FD()})
	must(h.T, err)
	h.Cleanup(func() { _ = k.Close() })
	c := &contender{stop: make(chan struct{}), done: make(chan struct{})}
	id := nft.TableID{Family: nft.FamilyIP, Name: "contender"}
	go func() {
		defer close(c.done)
		for {
			began := time.Now()
			for _, op := range []kernel.Op{kernel.AddTable{Table: id}, kernel.DeleteTable{Table: id}} {
				if _, err := k.Commit([]kernel.Op{op}); err != nil {
					h.Error(err)
					return
				}
			}
			c.longest = max(c.longest, time.Since(began))
			select {
			case <-c.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return c
}

// end returns how long another writer waited at most.
func (c *contender) end() time.Duration {
	close(c.stop)
	<-c.done
	return c.longest.Round(time.Millisecond)
}

// wide is element i of a set of three fields that each are divided into many rules.
func wide(i int) string {
	return fmt.Sprintf("%d.%d.0.1-%d.%d.255.254 . 1.0.0.1-9.255.255.254 . 1-65534", 1+i>>8, i&255, 1+i>>8, i&255)
}

// exact is element i of a set of three fields of which one is a range.
func exact(i int) string { return fmt.Sprintf("10.%d.%d.%d . tcp . 1001-4007", i>>16, i>>8&255, i&255) }

// TestLongTransactions fills sets of concatenated ranges and of ports, adds as many elements again
// while a rule names them, and takes many out. Each way is refused, or divided.
func TestLongTransactions(t *testing.T) {
	for name, tt := range map[string]struct {
		typ, flags, match string
		n                 int
		element           func(i int) string
	}{
		"ranges of three fields":  {"ipv4_addr . inet_proto . inet_service", "interval", "ip saddr . meta l4proto . th dport", 8000, exact},
		"wide ranges of 3 fields": {"ipv4_addr . ipv4_addr . inet_service", "interval", "ip saddr . ip daddr . tcp dport", 1200, wide},
		"ports without a range":   {"inet_service", "", "tcp dport", 9000, func(i int) string { return fmt.Sprint(i) }},
		"ranges of one field": {"ipv4_addr", "interval", "ip saddr", 30_000, func(i int) string {
			return fmt.Sprintf("%d.%d.%d.0-%d.%d.%d.9", 10+i>>16, i>>8&255, i&255, 10+i>>16, i>>8&255, i&255)
		}},
		"addresses without ranges": {"ipv4_addr", "", "ip saddr", 24_000, address},
	} {
		attack(t, options{}, func(h *host) {
			c := h.contend()
			apply := func(n int) error {
				return h.apply(uidBig, bigSet(&weftv1.Set{Type: tt.typ, Flags: strings.Fields(tt.flags)}, tt.match, n, tt.element))
			}
			if err := apply(tt.n); err != nil {
				h.Errorf("a new set of %d elements: %v", tt.n, err)
			}
			more, fewer := apply(2*tt.n), apply(tt.n/10)
			if tt.flags != "" || tt.typ == "inet_service" {
				h.refused(more, "at most 100ms are allowed")
			}
			if fewer != nil {
				h.refused(fewer, "at most 100ms are allowed")
			}
			h.observe("%s, %d, as many again (%.90s) and most removed (%v): the longest wait for the kernel's lock was %v",
				name, tt.n, strings.TrimPrefix(status.Convert(more).Message(), "fragment big/rules rejected: "), status.Code(fewer), c.end())
			if c.longest > longestHold && strict() {
				h.Errorf("another writer waited for %v: at most %v are wanted", c.longest, longestHold)
			}
		})
	}
}

// longestHold is how long another writer of nftables may wait: for one transaction, on a machine
// that does other things too.
const longestHold = 200 * time.Millisecond
