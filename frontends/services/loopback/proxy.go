package loopback

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/listen"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	reasonNotStarted = "FailedToStartLoopbackNodePort"
	dialTimeout      = 5 * time.Second
	// of a connection to an endpoint, which may vanish with its node
	keepAlive      = time.Minute
	maxConnections = 4096
)

// Config describes a Proxy.
type Config struct {
	// for events
	NodeName string
	// to serve
	Families [model.NumFamilies]bool
	// Listen must return a *net.TCPListener.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// nil means net.Dialer
	Dial   func(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error)
	Events health.Events
	// Connections bounds the connections of all ports. 0 means 4,096, or a sixteenth of the limit of open
	// files if that is less. Ports bounds the listeners; 0 means a quarter of this limit.
	Connections, Ports int
	// 0 means listen.DefaultRetry
	Retry  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur > 1<<20 {
		files.Cur = 1 << 20
	}
	c.Connections = cmp.Or(c.Connections, max(1, min(maxConnections, int(files.Cur/16))))
	c.Ports = cmp.Or(c.Ports, int(files.Cur/4))
	if c.Dial == nil {
		d := &net.Dialer{KeepAlive: keepAlive}
		c.Dial = func(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
			return d.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
		}
	}
}

// Proxy serves the NodePorts. Run opens and closes the ports.
type Proxy struct {
	*listen.Listeners
	cfg      Config
	room     chan struct{}
	failures [model.NumFamilies]atomic.Uint64

	mu     sync.Mutex
	wanted map[model.Key]map[netip.AddrPort]*target
}

// target is where connections to one port go.
type target struct {
	endpoints model.Endpoints
	affinity  time.Duration
	// the endpoint of the last connection, with affinity
	pinned netip.AddrPort
	used   time.Time
}

// New returns a proxy without listening.
func New(cfg Config) *Proxy {
	cfg.setDefaults()
	p := &Proxy{cfg: cfg, room: make(chan struct{}, cfg.Connections), wanted: make(map[model.Key]map[netip.AddrPort]*target)}
	p.Listeners = listen.New(listen.Config{
		Name: "NodePorts on loopback addresses", Want: p.addresses, Listen: p.listen, Server: p.server, Failed: p.failed,
		Retry: cfg.Retry, Logger: cfg.Logger,
	})
	return p
}

// Serves reports whether NodePorts of a family are served.
func (p *Proxy) Serves(f model.Family) bool { return p.cfg.Families[f] }

// Failures returns how often a port of a family could not be opened.
func (p *Proxy) Failures(f model.Family) uint64 { return p.failures[f].Load() }

// Apply takes committed changes.
func (p *Proxy) Apply(changes []model.Change) {
	moved := false
	p.mu.Lock()
	for _, c := range changes {
		was := p.wanted[c.Name]
		var is map[netip.AddrPort]*target
		p.each(c.New, func(at netip.AddrPort, endpoints model.Endpoints) {
			t := was[at]
			if t == nil {
				t, moved = new(target), true
			}
			if t.endpoints = endpoints; t.affinity != c.New.Affinity {
				t.affinity, t.pinned = c.New.Affinity, netip.AddrPort{}
			}
			if is == nil {
				is = make(map[netip.AddrPort]*target)
			}
			is[at] = t
		})
		moved = moved || len(is) != len(was)
		if p.wanted[c.Name] = is; is == nil {
			delete(p.wanted, c.Name)
		}
	}
	p.mu.Unlock()
	if moved {
		p.Wake()
	}
}

// each yields the ports with an endpoint. s may be nil.
func (p *Proxy) each(s *model.Service, f func(netip.AddrPort, model.Endpoints)) {
	if s == nil {
		return
	}
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.Protocol != model.TCP || port.NodePort == 0 {
			continue
		}
		for fam, addr := range model.Loopback {
			endpoints := port.Backends[fam].Cluster
			if s.ExternalLocal {
				endpoints = port.Backends[fam].Local
			}
			if p.cfg.Families[fam] && s.ClusterIPs[fam].IsValid() && endpoints.Len() > 0 {
				f(netip.AddrPortFrom(addr, port.NodePort), endpoints)
			}
		}
	}
}

func (p *Proxy) addresses() (out []listen.Address, again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, ports := range p.wanted {
		for at := range ports {
			out = append(out, listen.Address{Service: name, At: at})
		}
	}
	return out, false, nil
}

func (p *Proxy) listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	// Other parts of the process need files too.
	if p.Open(model.IPv4)+p.Open(model.IPv6) >= p.cfg.Ports {
		err = fmt.Errorf("listen on %s: %d NodePorts are open, a quarter of the limit of open files: raise this limit", address, p.cfg.Ports)
	} else {
		l, err = p.cfg.Listen(ctx, network, address)
	}
	if err != nil {
		p.failures[model.FamilyOf(netip.MustParseAddrPort(address).Addr())].Add(1)
	}
	return l, err
}

func (p *Proxy) failed(first listen.Address, err error) {
	p.cfg.Events.Service(first.Service, "Warning", reasonNotStarted,
		fmt.Sprintf("node %s does not serve a NodePort on a loopback address: %v", p.cfg.NodeName, err))
}

// With affinity all clients are one, because they have one address.
func (p *Proxy) pick(at listen.Address) (netip.AddrPort, bool) {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.wanted[at.Service][at.At]
	if t == nil {
		return netip.AddrPort{}, false
	}
	if t.affinity == 0 {
		return t.endpoints.At(rand.IntN(t.endpoints.Len())).Addr, true
	}
	if !t.pinned.IsValid() || now.Sub(t.used) > t.affinity || !t.endpoints.Has(t.pinned) {
		t.pinned = t.endpoints.At(rand.IntN(t.endpoints.Len())).Addr
	}
	t.used = now
	return t.pinned, true
}
