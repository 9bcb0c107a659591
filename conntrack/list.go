package conntrack

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

const familyAny family = unix.AF_UNSPEC

// maxFiltered limits the addresses filtered by the kernel: each takes two passes, and a pass with
// all entries takes about ten times as long.
const maxFiltered = 4

// Selection selects entries by source and reply source.
type Selection struct {
	addrs map[netip.Addr]struct{}
	all   bool
}

// SelectAll selects all entries.
func SelectAll() *Selection { return &Selection{all: true} }

// Select selects the entries with a source or reply source in addrs. IPv4-mapped addresses are IPv4
// addresses.
func Select(addrs []netip.Addr) *Selection {
	s := &Selection{addrs: make(map[netip.Addr]struct{}, len(addrs))}
	for _, a := range addrs {
		if a.IsValid() {
			s.addrs[normalize(a)] = struct{}{}
		}
	}
	return s
}

func (s *Selection) has(a netip.Addr) bool {
	_, ok := s.addrs[a]
	return ok
}

func (s *Selection) selects(e *Entry) bool {
	return s.all || s.has(e.Source.Addr()) || s.has(e.ReplySource.Addr())
}

type listPass struct {
	family family
	// addr filters the reply's source if reply is true, and else the source; the zero Addr means
	// all entries.
	addr  netip.Addr
	reply bool
}

func (s *Selection) passes(filters bool) []listPass {
	if s.all {
		return []listPass{{family: familyAny}}
	}
	var v4, v6 bool
	for a := range s.addrs {
		v4, v6 = v4 || a.Is4(), v6 || a.Is6()
	}
	switch {
	case v4 && !v6 && filters && len(s.addrs) <= maxFiltered:
		var out []listPass
		for a := range s.addrs {
			out = append(out, listPass{familyIPv4, a, false}, listPass{familyIPv4, a, true})
		}
		return out
	case v4 && v6:
		return []listPass{{family: familyAny}}
	case v4:
		return []listPass{{family: familyIPv4}}
	case v6:
		return []listPass{{family: familyIPv6}}
	default:
		return nil
	}
}

// finds is true for exactly one pass of a selected entry.
func (p listPass) finds(s *Selection, e *Entry) bool {
	switch {
	case !p.addr.IsValid():
		return true
	case p.reply:
		return e.ReplySource.Addr() == p.addr && !s.has(e.Source.Addr())
	default:
		return e.Source.Addr() == p.addr
	}
}

func (p listPass) request() (netlink.Message, error) {
	if !p.addr.IsValid() {
		return marshalDump(p.family, nil)
	}
	tuple, flags := uint16(ctaTupleOrig), uint16(ctaFilterOrigFlags)
	if p.reply {
		tuple, flags = ctaTupleReply, ctaFilterReplyFlags
	}
	return marshalDump(p.family, []netfilter.Attribute{
		{Type: tuple, Nested: true, Children: []netfilter.Attribute{{Type: ctaTupleIP, Nested: true,
			Children: []netfilter.Attribute{{Type: ctaIPv4Src, Data: p.addr.AsSlice()}}}}},
		{Type: ctaFilter, Nested: true, Children: []netfilter.Attribute{flagsAttr(flags, filterIPSrc)}},
	})
}

// List calls f with each selected entry. An entry in the table during the whole call is listed at
// least once, and possibly again if the table changes. The Entry is overwritten after f returns. If
// f returns an error, List returns it. While f waits, other reads of the table wait too; deletions
// do not.
func (c *Conn) List(ctx context.Context, s *Selection, f func(*Entry) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range s.passes(c.reply) {
		req, err := p.request()
		if err == nil {
			err = repeat(func() error {
				return c.pass(ctx, req, s, func(e *Entry) error {
					if !p.finds(s, e) {
						return nil
					}
					return f(e)
				})
			})
		}
		if err != nil {
			return fmt.Errorf("list flows: %w", explain(err))
		}
	}
	return nil
}
