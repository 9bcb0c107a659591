package runtime

import (
	"fmt"
	"net/netip"
	"strings"
)

// A pod has the same number in the prefix of each family. A number is reused as late as possible,
// because other programs remember addresses of ended pods.
type pool struct {
	prefixes []netip.Prefix
	used     map[int]bool
	last     int
}

// 1 is the node's address, and an IPv4 prefix ends with its broadcast address.
const (
	gatewayNumber = 1
	firstNumber   = 2
	lastNumber    = 254
)

func parsePrefixes(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for s := range strings.SplitSeq(text, ",") {
		if s == "" {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("read prefixes of pods: %w", err)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

func (p *pool) allocate() (int, error) {
	if p.used == nil {
		p.used, p.last = map[int]bool{}, firstNumber-1
	}
	for range lastNumber {
		if p.last++; p.last > lastNumber {
			p.last = firstNumber
		}
		if !p.used[p.last] {
			p.used[p.last] = true
			return p.last, nil
		}
	}
	return 0, fmt.Errorf("all addresses of %v are in use", p.prefixes)
}

func (p *pool) free(number int) { delete(p.used, number) }

func address(p netip.Prefix, number int) netip.Addr {
	b := p.Addr().AsSlice()
	b[len(b)-1] += byte(number)
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func (p *pool) addresses(number int) []netip.Addr {
	var all []netip.Addr
	for _, prefix := range p.prefixes {
		all = append(all, address(prefix, number))
	}
	return all
}
