package render

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

type change = publish.Change[model.Key, model.Service]

// division is a Service's change, divided into ports.
type division struct {
	change
	was, is *model.Service
	// alike is true if one Service can have ports of both. Otherwise the ports of was leave first.
	alike  bool
	pieces []piece
	size   int
}

// was or is may be nil.
type piece struct {
	of      *division
	was, is *model.Port
	size    int
	// taken is true if the piece is in the next update or unchanged. left is true if only the old port leaves
	// in the next update.
	taken, left bool
	in          *bundle
}

// bundle has the pieces that hand listeners over to each other.
type bundle struct {
	pieces []*piece
	// size of the smallest Service
	rank, size int
	large      bool
}

// In bundles larger than maxBundle the old ports leave first.
const maxBundle = 1 << 15

// Divide implements publish.Divisible. It divides Services into ports. Ports that hand listeners over are in
// one update, up to maxBundle.
func (r *Renderer) Divide(all []change, most int) (now, later []change) {
	return r.divideWithin(all, most, maxBundle)
}

func (r *Renderer) divideWithin(all []change, most, largest int) (now, later []change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := divider{Renderer: r, most: most, largest: max(most, largest)}
	divisions, total := make([]*division, len(all)), 0
	for i, c := range all {
		divisions[i] = of.divide(c)
		total += divisions[i].size
	}
	if total <= most {
		return all, nil
	}
	for n, b := range of.bundles(divisions) {
		if n == 0 && b.large && of.leave(b) {
			break
		}
		if of.most -= b.size; n > 0 && of.most < 0 {
			break
		}
		for _, p := range b.pieces {
			p.taken = true
		}
	}
	for _, d := range divisions {
		switch next := d.next(); next {
		case d.New:
			now = append(now, d.change)
		case d.Old:
			later = append(later, d.change)
		default:
			now = append(now, change{Key: d.Key, Old: d.Old, New: next})
			later = append(later, change{Key: d.Key, Old: next, New: d.New})
		}
	}
	return now, later
}

// divider chooses pieces for the next update.
type divider struct {
	*Renderer
	// most is the room left in the update, largest the size from which a bundle is large.
	most, largest int
}

func (r *divider) divide(c change) *division {
	form := func(s *model.Service) *model.Service {
		if s == nil || check(s) != nil {
			return r.none.service
		}
		return s
	}
	d := &division{change: c, was: form(c.Old), is: form(c.New), size: 1}
	d.alike = d.is != r.none.service && (len(d.was.Ports) == 0 || alike(d.was, d.is))
	for was, is := d.was.Ports, d.is.Ports; len(was)+len(is) > 0; {
		p := piece{of: d}
		order := -1
		if len(was) == 0 {
			order = 1
		} else if d.alike && len(is) > 0 {
			order = cmp.Or(strings.Compare(was[0].Name, is[0].Name), cmp.Compare(was[0].Protocol, is[0].Protocol))
		}
		if order <= 0 {
			p.was, was = &was[0], was[1:]
			p.size += r.portSize(d.was, p.was, true)
		}
		if order >= 0 {
			p.is, is = &is[0], is[1:]
			p.size += r.portSize(d.is, p.is, true)
		}
		if p.taken = order == 0 && p.was.Equal(p.is); !p.taken {
			d.size += p.size
		}
		d.pieces = append(d.pieces, p)
	}
	return d
}

func alike(a, b *model.Service) bool {
	for f, ip := range a.ClusterIPs {
		if ip.IsValid() != b.ClusterIPs[f].IsValid() {
			return false
		}
	}
	return a.InternalLocal == b.InternalLocal && a.ExternalLocal == b.ExternalLocal && a.Affinity == b.Affinity
}

// bundles returns the smallest Services first, and large handovers last.
func (r *divider) bundles(divisions []*division) []*bundle {
	at := make(map[listenerKey]*piece)
	var out []*bundle
	for _, d := range divisions {
		for i := range d.pieces {
			p := &d.pieces[i]
			if p.taken {
				continue
			}
			p.in = &bundle{pieces: []*piece{p}, rank: d.size, size: p.size}
			out = append(out, p.in)
			claim := func(port *model.Port, f model.Family) {
				listen(port, f, func(addr netip.Addr, number uint16, _ *model.External) {
					k := listenerKey{addr: addr, port: number, protocol: port.Protocol, family: f}
					if other := at[k]; other != nil {
						other.in.join(p.in)
					}
					at[k] = p
				})
			}
			r.cfg.eachFamily(d.was, p.was, claim)
			r.cfg.eachFamily(d.is, p.is, claim)
		}
	}
	// A Service whose old form leaves first must not take over listeners afterwards.
	for _, d := range divisions {
		if !d.alike && slices.ContainsFunc(d.pieces, func(p piece) bool { return p.is != nil && len(p.in.pieces) > 1 }) {
			for i := range d.pieces {
				d.pieces[i].in.join(d.pieces[0].in)
			}
		}
	}
	out = slices.DeleteFunc(out, func(b *bundle) bool {
		return b.pieces == nil || len(b.pieces) == 1 && b.pieces[0].was == nil && !b.pieces[0].of.alike
	})
	for _, b := range out {
		b.large = len(b.pieces) > 1 && b.size > r.largest
	}
	slices.SortStableFunc(out, func(a, b *bundle) int { return cmp.Or(index(a.large)-index(b.large), cmp.Compare(a.rank, b.rank)) })
	return out
}

func (b *bundle) join(o *bundle) {
	if b == o {
		return
	}
	if len(b.pieces) < len(o.pieces) {
		b, o = o, b
	}
	for _, p := range o.pieces {
		p.in = b
	}
	b.pieces, b.rank, b.size = append(b.pieces, o.pieces...), min(b.rank, o.rank), b.size+o.size
	o.pieces = nil
}

// leave marks old pieces as left while there is room, but at least one.
func (r *divider) leave(b *bundle) (some bool) {
	for _, p := range b.pieces {
		if p.was == nil || some && r.most <= 0 {
			continue
		}
		p.left, some = true, true
		r.most -= r.portSize(p.of.was, p.was, true)
	}
	return some
}

func (d *division) next() *model.Service {
	of, ports, moved, left := d.is, []model.Port(nil), false, false
	for _, p := range d.pieces {
		port := p.is
		if p.taken {
			moved = moved || p.in != nil
		} else if port, left = p.was, left || !p.left || p.is != nil; p.left {
			port, moved = nil, true
		} else if !d.alike && port != nil {
			of = d.was
		}
		if port != nil {
			ports = append(ports, *port)
		}
	}
	if !left {
		return d.New
	}
	if !moved {
		return d.Old
	}
	out := *of
	out.Ports = ports
	return &out
}
