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

	"github.com/weft-proxy/weft/frontends/services/model"
)

// DefaultRetry is the time until a port that could not be opened is tried again.
const DefaultRetry = 5 * time.Second

// reasonNotStarted is kube-proxy's reason of the event about a port that cannot be
// opened.
const reasonNotStarted = "FailedToStartServiceHealthcheck"

// Events takes what the owner of a Service should hear of. It must not block.
type Events interface {
	Service(name types.NamespacedName, kind, reason, message string)
}

// ServersConfig says where the servers of Services listen.
type ServersConfig struct {
	// NodeName is this node's name in Kubernetes, for events.
	NodeName string
	// Families are those that the node has.
	Families [model.Families]bool
	// NodePortAddresses are as in render.Config.
	NodePortAddresses []netip.Prefix
	// Healthy reports whether the proxy is healthy; nil means that it is.
	Healthy func() bool
	// Network is the host's; nil means Host.
	Network Network
	// Events takes warnings about Services; nil means that nobody does.
	Events Events
	// Retry is the time until a port that could not be opened is tried again,
	// and until addresses of interfaces are looked at again where
	// NodePortAddresses asks for some of them. 0 means DefaultRetry.
	Retry time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
}

// target is what is committed of one Service.
type target struct {
	port uint16
	// served are the families that the Service has, local the endpoints here.
	served [model.Families]bool
	local  [model.Families]int
}

// spot is where the server of one Service listens.
type spot struct {
	service model.Key
	at      netip.AddrPort
}

// server is one open port. Both are closed: one that does not serve yet does not
// know of its listener.
type server struct {
	http     *http.Server
	listener net.Listener
}

// Servers answer on the healthCheckNodePorts of Services.
type Servers struct {
	cfg   ServersConfig
	log   *slog.Logger
	nudge chan struct{}

	mu     sync.Mutex
	node   model.Node
	wanted map[model.Key]target
	open   map[spot]*server
	// told is the last error of each Service that was reported.
	told map[model.Key]string
}

// NewServers returns servers that listen nowhere yet.
func NewServers(cfg ServersConfig) *Servers {
	if cfg.Network == nil {
		cfg.Network = Host{}
	}
	if cfg.Retry == 0 {
		cfg.Retry = DefaultRetry
	}
	if cfg.Healthy == nil {
		cfg.Healthy = func() bool { return true }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Servers{
		cfg: cfg, log: cfg.Logger, nudge: make(chan struct{}, 1),
		wanted: make(map[model.Key]target), open: make(map[spot]*server), told: make(map[model.Key]string),
	}
}

// Apply takes what a commit has changed. Counts are answered from now on. Only where
// ports, families or the node differ, or a port could not be opened before, Run looks
// at what to open and to close.
func (s *Servers) Apply(services []model.Change, node *model.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := node != nil || len(s.told) > 0
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

// Run opens and closes ports until ctx ends, and returns nil then.
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
		case <-s.nudge:
		case <-retry:
		}
	}
}

// reconcile listens where it should and nowhere else. It returns true if it should
// be called again soon.
func (s *Servers) reconcile(ctx context.Context, serving *sync.WaitGroup) (again bool) {
	want, again := s.spots()
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
			// The address has just gone, or is one of IPv6 that the kernel still
			// looks for duplicates of: nobody has to hear of it.
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

// spots returns where to listen, ordered, so that of two Services with one port the
// same one is always first; again is true where that can change without a commit.
func (s *Servers) spots() (out []spot, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wanted) == 0 {
		return nil, false
	}
	var addrs, host []netip.Addr
	for f, have := range s.cfg.Families {
		if !have {
			continue
		}
		n := nodePortsOf(s.cfg.NodePortAddresses, &s.node, model.Family(f))
		if n.all {
			addrs = append(addrs, unspecified(model.Family(f)))
			continue
		}
		if len(n.prefixes) == 0 {
			continue
		}
		again = true
		if host == nil {
			var err error
			if host, err = s.cfg.Network.Addresses(); err != nil {
				s.log.Error("the addresses for health checks of Services are not known: trying again", "error", err, "after", s.cfg.Retry)
				// What is open stays.
				return s.opened(), true
			}
		}
		addrs = append(addrs, n.match(host)...)
	}
	for name, t := range s.wanted {
		for _, a := range addrs {
			if t.served[model.FamilyOf(a)] {
				out = append(out, spot{name, netip.AddrPortFrom(a, t.port)})
			}
		}
	}
	sortSpots(out)
	return out, again
}

// opened returns where something listens; s.mu is held.
func (s *Servers) opened() (out []spot) {
	for at := range s.open {
		if t, ok := s.wanted[at.service]; ok && t.port == at.at.Port() && t.served[model.FamilyOf(at.at.Addr())] {
			out = append(out, at)
		}
	}
	sortSpots(out)
	return out
}

func sortSpots(list []spot) {
	slices.SortFunc(list, func(a, b spot) int {
		return cmp.Or(model.CompareKeys(a.service, b.service), a.at.Compare(b.at))
	})
}

// close closes what is open and not in want.
func (s *Servers) close(want []spot) {
	keep := make(map[spot]bool, len(want))
	for _, at := range want {
		keep[at] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, srv := range s.open {
		if keep[at] {
			continue
		}
		// The listener is closed in any case; who is connected has no claim.
		_, _ = srv.http.Close(), srv.listener.Close()
		delete(s.open, at)
		s.log.Debug("closed the health check of a Service", "service", at.service.String(), "address", at.at)
	}
}

// listen opens one address and serves it.
func (s *Servers) listen(ctx context.Context, at spot, serving *sync.WaitGroup) error {
	l, err := s.cfg.Network.Listen(ctx, tcp(model.FamilyOf(at.at.Addr())), at.at.String())
	if err != nil {
		return err
	}
	srv := &server{listener: l, http: &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.answer(w, at.service, model.FamilyOf(at.at.Addr())) }),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
	s.mu.Lock()
	s.open[at] = srv
	s.mu.Unlock()
	s.log.Debug("opened the health check of a Service", "service", at.service.String(), "address", at.at)
	serving.Go(func() { s.serve(at, srv) })
	return nil
}

// serve serves one address until it is closed; should it end by itself, it is
// opened again.
func (s *Servers) serve(at spot, srv *server) {
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

// report says of each Service once why its port cannot be opened.
func (s *Servers) report(failed map[model.Key]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.told {
		if failed[name] == nil {
			delete(s.told, name)
		}
	}
	for name, err := range failed {
		if s.told[name] == err.Error() {
			continue
		}
		s.told[name] = err.Error()
		port := s.wanted[name].port
		s.log.Error("the health check of a Service cannot be opened: trying again",
			"service", name.String(), "port", port, "error", err.Error(), "after", s.cfg.Retry)
		if s.cfg.Events != nil {
			s.cfg.Events.Service(name, "Warning", reasonNotStarted,
				fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v", s.cfg.NodeName, name.String(), port, err))
		}
	}
}

// body is kube-proxy's, character by character.
const body = `{
	"service": {
		"namespace": %q,
		"name": %q
	},
	"localEndpoints": %d,
	"serviceProxyHealthy": %v
}`

// answer tells a load balancer whether to send traffic for a Service here, of the
// family by which it asks.
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
	// The reader may have gone; there is nobody to tell.
	_, _ = fmt.Fprintf(w, body, name.Namespace, name.Name, local, healthy)
}
