package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/listen"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const reasonNotStarted = "FailedToStartServiceHealthcheck"

// Events reports events about Services. kind is "Normal" or "Warning", reason is one word. It must not block.
type Events interface {
	Service(name types.NamespacedName, kind, reason, message string)
}

// NoEvents discards events.
type NoEvents struct{}

// Service implements Events.
func (NoEvents) Service(types.NamespacedName, string, string, string) {}

// ServersConfig configures Servers.
type ServersConfig struct {
	// for events
	NodeName          string
	Families          [model.NumFamilies]bool
	NodePortAddresses model.NodePortList
	Healthy           func() bool
	Network           Network
	Events            Events
	// Retry is the delay before a failed port is retried, and before interface addresses are reread. 0 means
	// listen.DefaultRetry.
	Retry  time.Duration
	Logger *slog.Logger
}

type target struct {
	port uint16
	// local are the numbers of local endpoints
	served [model.NumFamilies]bool
	local  [model.NumFamilies]int
}

// Servers answers on the healthCheckNodePorts of Services. Run opens and closes the ports.
type Servers struct {
	*listen.Listeners
	cfg ServersConfig

	mu     sync.Mutex
	node   model.Node
	wanted map[model.Key]target
}

// NewServers returns servers without listening.
func NewServers(cfg ServersConfig) *Servers {
	s := &Servers{cfg: cfg, wanted: make(map[model.Key]target)}
	s.Listeners = listen.New(listen.Config{
		Name: "health checks", Want: s.addresses, Server: s.server, Failed: s.failed, Retry: cfg.Retry, Logger: cfg.Logger,
		Listen: func(ctx context.Context, network, address string) (net.Listener, error) {
			return cfg.Network.Listen(ctx, network, address)
		},
	})
	return s
}

// Apply sets the ports and numbers of changed Services. A nil node means no change.
func (s *Servers) Apply(services []model.Change, node *model.Node) {
	if s.change(services, node) {
		s.Wake()
	}
}

// change reports whether the ports may differ.
func (s *Servers) change(services []model.Change, node *model.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := node != nil || s.Failing()
	before := len(s.wanted)
	for _, c := range services {
		was, had := s.wanted[c.Name]
		if c.New == nil || c.New.HealthCheckNodePort == 0 {
			delete(s.wanted, c.Name)
			moved = moved || had
			continue
		}
		t := target{port: c.New.HealthCheckNodePort, local: c.New.LocalReady}
		for f, ip := range c.New.ClusterIPs {
			t.served[f] = ip.IsValid()
		}
		s.wanted[c.Name] = t
		moved = moved || !had || was.port != t.port || was.served != t.served
	}
	if node != nil {
		s.node = *node
	}
	return moved && before+len(s.wanted) > 0
}

func (s *Servers) addresses() (out []listen.Address, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wanted) == 0 {
		return nil, false, nil
	}
	var addrs, host []netip.Addr
	for f, have := range s.cfg.Families {
		if !have {
			continue
		}
		n := s.cfg.NodePortAddresses.Of(&s.node, model.Family(f))
		if n.All {
			addrs = append(addrs, unspecified[f])
			continue
		}
		if s.cfg.NodePortAddresses.Loopback[f] {
			addrs = append(addrs, model.Loopback[f])
		}
		if len(n.Prefixes) == 0 {
			continue
		}
		again = true
		if host == nil {
			if host, err = s.cfg.Network.Addresses(); err != nil {
				return nil, true, err
			}
		}
		addrs = append(addrs, matching(host, n.Prefixes)...)
	}
	for name, t := range s.wanted {
		for _, a := range addrs {
			if t.served[model.FamilyOf(a)] {
				out = append(out, listen.Address{Service: name, At: netip.AddrPortFrom(a, t.port)})
			}
		}
	}
	return out, again, nil
}

// server closes the listener too, because an http.Server does not know it before Serve.
type server struct {
	*http.Server
	listener net.Listener
}

func (s server) Serve() error {
	if err := s.Server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s server) Close() { _, _ = s.Server.Close(), s.listener.Close() }

func (s *Servers) server(at listen.Address, l net.Listener) listen.Server {
	return server{listener: l, Server: &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.answer(w, at.Service, model.FamilyOf(at.At.Addr())) }),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}}
}

func (s *Servers) failed(at listen.Address, err error) {
	s.cfg.Events.Service(at.Service, "Warning", reasonNotStarted,
		fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v", s.cfg.NodeName, at.Service.String(), at.At.Port(), err))
}

// kube-proxy's answer, byte for byte
const body = `{
	"service": {
		"namespace": %q,
		"name": %q
	},
	"localEndpoints": %d,
	"serviceProxyHealthy": %v
}`

func (s *Servers) answer(w http.ResponseWriter, name model.Key, f model.Family) {
	healthy := s.cfg.Healthy()
	s.mu.Lock()
	local := s.wanted[name].local[f]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", fmt.Sprint(local))
	status := http.StatusServiceUnavailable
	if local > 0 && healthy {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, body, name.Namespace, name.Name, local, healthy)
}
