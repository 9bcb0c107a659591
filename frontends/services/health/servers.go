package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// DefaultRetry is the retry delay of a failed port.
const DefaultRetry = 5 * time.Second

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
	NodeName string
	Families [model.NumFamilies]bool
	// as in model.NodePortAddressesOf
	NodePortAddresses []netip.Prefix
	Healthy           func() bool
	Network           Network
	Events            Events
	// Retry is the delay before a failed port is retried, and before interface addresses are reread. 0 means
	// DefaultRetry.
	Retry  time.Duration
	Logger *slog.Logger
}

type target struct {
	port uint16
	// local are the numbers of local endpoints
	served [model.NumFamilies]bool
	local  [model.NumFamilies]int
}

type listenAddress struct {
	service model.Key
	at      netip.AddrPort
}

// server has the listener too, because an http.Server does not know it before Serve.
type server struct {
	http     *http.Server
	listener net.Listener
}

// Servers answers on the healthCheckNodePorts of Services.
type Servers struct {
	cfg      ServersConfig
	log      *slog.Logger
	nudge    chan struct{}
	release  sync.Once
	released chan struct{}

	mu       sync.Mutex
	node     model.Node
	wanted   map[model.Key]target
	open     map[listenAddress]*server
	reported map[model.Key]string
}

// NewServers returns servers without listening.
func NewServers(cfg ServersConfig) *Servers {
	cfg.Retry = cmp.Or(cfg.Retry, DefaultRetry)
	return &Servers{
		cfg: cfg, log: cfg.Logger, nudge: make(chan struct{}, 1), released: make(chan struct{}),
		wanted: make(map[model.Key]target), open: make(map[listenAddress]*server), reported: make(map[model.Key]string),
	}
}

// Apply sets the ports and numbers of changed Services. A nil node means no change.
func (s *Servers) Apply(services []model.Change, node *model.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := node != nil || len(s.reported) > 0
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
	if moved && len(s.wanted)+len(s.open) > 0 {
		s.wake()
	}
}

func (s *Servers) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Release makes Run close all ports and return.
func (s *Servers) Release() { s.release.Do(func() { close(s.released) }) }

// Run opens and closes ports until ctx ends or Release is called.
func (s *Servers) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer s.close(nil)
	for {
		var retry <-chan time.Time
		if s.reconcile(ctx, &serving) {
			retry = time.After(s.cfg.Retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.released:
			return nil
		case <-s.nudge:
		case <-retry:
		}
	}
}

// reconcile returns true if it must be called again soon.
func (s *Servers) reconcile(ctx context.Context, serving *sync.WaitGroup) (again bool) {
	want, again, err := s.listenAddresses()
	if err != nil {
		s.log.Error("the addresses for health checks of Services are not known: trying again", "error", err, "after", s.cfg.Retry)
		return true
	}
	s.close(want)
	failed := make(map[model.Key]error)
	for _, at := range want {
		s.mu.Lock()
		_, open := s.open[at]
		s.mu.Unlock()
		if open {
			continue
		}
		err := s.listen(ctx, at, serving)
		switch {
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			// The address was just removed, or is in IPv6 duplicate address detection.
			again = true
		case err != nil:
			failed[at.service] = errors.Join(failed[at.service], err)
		}
	}
	if ctx.Err() == nil {
		s.report(failed)
	}
	return again || len(failed) > 0
}

// listenAddresses always puts the same of two Services with one port first. again is true if the
// result can change without a commit.
func (s *Servers) listenAddresses() (out []listenAddress, again bool, err error) {
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
		n := model.NodePortAddressesOf(s.cfg.NodePortAddresses, &s.node, model.Family(f))
		if n.All {
			addrs = append(addrs, unspecified[f])
			continue
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
				out = append(out, listenAddress{name, netip.AddrPortFrom(a, t.port)})
			}
		}
	}
	slices.SortFunc(out, func(a, b listenAddress) int {
		return cmp.Or(model.CompareKeys(a.service, b.service), a.at.Compare(b.at))
	})
	return out, again, nil
}

func (s *Servers) close(want []listenAddress) {
	keep := sets.New(want...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, srv := range s.open {
		if keep.Has(at) {
			continue
		}
		// Closes the listener in any case; open connections may be cut.
		_, _ = srv.http.Close(), srv.listener.Close()
		delete(s.open, at)
		s.log.Debug("closed the health check of a Service", "service", at.service.String(), "address", at.at)
	}
}

func (s *Servers) listen(ctx context.Context, at listenAddress, serving *sync.WaitGroup) error {
	l, err := s.cfg.Network.Listen(ctx, tcp[model.FamilyOf(at.at.Addr())], at.at.String())
	if err != nil {
		return err
	}
	srv := &server{listener: l, http: &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.answer(w, at.service, model.FamilyOf(at.at.Addr())) }),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
	s.mu.Lock()
	s.open[at] = srv
	s.mu.Unlock()
	s.log.Debug("opened the health check of a Service", "service", at.service.String(), "address", at.at)
	serving.Go(func() { s.serve(at, srv) })
	return nil
}

// reconcile reopens the address.
func (s *Servers) serve(at listenAddress, srv *server) {
	err := srv.http.Serve(srv.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return
	}
	s.log.Error("the health check of a Service ended: opening it again", "service", at.service.String(), "address", at.at, "error", err)
	s.mu.Lock()
	if s.open[at] == srv {
		delete(s.open, at)
	}
	s.mu.Unlock()
	s.wake()
}

// report reports each error once per Service.
func (s *Servers) report(failed map[model.Key]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.reported {
		if failed[name] == nil {
			delete(s.reported, name)
		}
	}
	for name, err := range failed {
		if s.reported[name] == err.Error() {
			continue
		}
		s.reported[name] = err.Error()
		port := s.wanted[name].port
		s.log.Error("the health check of a Service cannot be opened: trying again",
			"service", name.String(), "port", port, "error", err.Error(), "after", s.cfg.Retry)
		s.cfg.Events.Service(name, "Warning", reasonNotStarted,
			fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v", s.cfg.NodeName, name.String(), port, err))
	}
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
