package cyclonus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// The source ports of a stream's frames, exclusively.
const (
	firstSource = 20_000
	lastSource  = 29_999
)

// tally counts frames by flow in each pod's kernel, so that sockets need not keep up. It drops the
// frames, so they are not answered.
type tally struct {
	network *network
	// the counters of the last read
	seen map[policytest.Flow]int
}

// The counters end with the pods.
func (n *network) newTally(ctx context.Context) (*tally, error) {
	t := &tally{network: n, seen: map[policytest.Flow]int{}}
	for key, a := range n.agents {
		var b strings.Builder
		fmt.Fprintln(&b, "table netdev tally {")
		for f, typ := range []string{"ipv4_addr", "ipv6_addr"} {
			fmt.Fprintf(&b, "set flows%d { type %s . inet_proto . inet_service; counter; elements = {\n", f, typ)
			for other, p := range n.places {
				for _, port := range ports {
					if other != key {
						fmt.Fprintf(&b, "%[1]s . tcp . %[2]d, %[1]s . udp . %[2]d,\n", p.addresses[f], port)
					}
				}
			}
			fmt.Fprintln(&b, "} }")
		}
		fmt.Fprintf(&b, `chain arrive { type filter hook ingress device eth0 priority 0;
			meta l4proto { tcp, udp } th sport %d-%[2]d ip saddr . meta l4proto . th dport @flows0 drop
			meta l4proto { tcp, udp } th sport %[1]d-%[2]d ip6 saddr . meta l4proto . th dport @flows1 drop
			meta l4proto { tcp, udp } th dport %[1]d-%[2]d counter drop
			}
			}
			`, firstSource, lastSource)
		file := filepath.Join(runDir, "tally.nft")
		if err := errors.Join(os.MkdirAll(runDir, 0o755), os.WriteFile(file, []byte(b.String()), 0o600)); err != nil {
			return nil, err
		}
		if _, err := a.pod.Run(ctx, "nft", "-f", file); err != nil {
			return nil, err
		}
	}
	return t, nil
}

type listing struct {
	Nftables []struct {
		Set *struct {
			Elem []struct {
				Elem struct {
					Val struct {
						Concat []any `json:"concat"`
					} `json:"val"`
					Counter struct {
						Packets int `json:"packets"`
					} `json:"counter"`
				} `json:"elem"`
			} `json:"elem"`
		} `json:"set"`
		Rule *struct {
			Expr []struct {
				Counter *struct {
					Packets int `json:"packets"`
				} `json:"counter"`
			} `json:"expr"`
		} `json:"rule"`
	} `json:"nftables"`
}

// read returns the frames of each flow since the network began, and the number of replies.
func (t *tally) read(ctx context.Context) (flows map[policytest.Flow]int, replies int, err error) {
	var mu sync.Mutex
	var errs []error
	flows = map[policytest.Flow]int{}
	var reading sync.WaitGroup
	for key, a := range t.network.agents {
		reading.Go(func() {
			l, err := list(ctx, a)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				var n int
				n, err = l.add(flows, t.network.places[key])
				replies += n
			}
			errs = append(errs, err)
		})
	}
	reading.Wait()
	return flows, replies, errors.Join(errs...)
}

func list(ctx context.Context, a *agent) (*listing, error) {
	out, err := a.pod.Run(ctx, "nft", "-j", "-n", "list", "table", "netdev", "tally")
	if err != nil {
		return nil, err
	}
	var l listing
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		return nil, fmt.Errorf("decode counters of pod %s: %w", a.pod.Name(), err)
	}
	return &l, nil
}

func (l *listing) add(flows map[policytest.Flow]int, at place) (replies int, err error) {
	for _, o := range l.Nftables {
		if o.Rule != nil {
			for _, e := range o.Rule.Expr {
				if e.Counter != nil {
					replies += e.Counter.Packets
				}
			}
		}
		if o.Set == nil {
			continue
		}
		for _, e := range o.Set.Elem {
			key := e.Elem.Val.Concat
			if len(key) != 3 {
				return 0, fmt.Errorf("element %v: want an address, a protocol and a port", key)
			}
			from, err := netip.ParseAddr(fmt.Sprint(key[0]))
			if err != nil {
				return 0, fmt.Errorf("element %v: %w", key, err)
			}
			f := policytest.Flow{From: from, To: at.addresses[family(from)], Protocol: corev1.ProtocolTCP}
			if p := fmt.Sprint(key[1]); p == "17" || p == "udp" {
				f.Protocol = corev1.ProtocolUDP
			}
			if _, err := fmt.Sscan(fmt.Sprint(key[2]), &f.Port); err != nil {
				return 0, fmt.Errorf("element %v: %w", key, err)
			}
			flows[f] += e.Elem.Counter.Packets
		}
	}
	return replies, nil
}

// since returns the frames of each flow since the last call.
func (t *tally) since(ctx context.Context) (map[policytest.Flow]int, error) {
	now, _, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	news := maps.Clone(now)
	for f, n := range t.seen {
		news[f] -= n
	}
	t.seen = now
	return news, nil
}
