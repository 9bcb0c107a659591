package listen

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// DefaultRetry is the retry delay of a failed address.
const DefaultRetry = 5 * time.Second

// Address is where a Service is served.
type Address struct {
	Service model.Key
	At      netip.AddrPort
}

// Server serves one listener.
type Server interface {
	// Serve returns nil after Close.
	Serve() error
	// Close also closes the listener, and may cut connections.
	Close()
}

// Config describes Listeners.
type Config struct {
	// of the listeners, for the log
	Name string
	// Want returns the wanted addresses. again is true if they can change without Wake.
	Want   func() (want []Address, again bool, err error)
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	Server func(Address, net.Listener) Server
	// Failed is called once for each different error of a Service, with its first failed address.
	Failed func(first Address, err error)
	// 0 means DefaultRetry
	Retry  time.Duration
	Logger *slog.Logger
}

// Listeners are the open listeners.
type Listeners struct {
	cfg      Config
	log      *slog.Logger
	nudge    chan struct{}
	release  sync.Once
	released chan struct{}

	mu       sync.Mutex
	open     map[Address]Server
	reported map[model.Key]string
}

// New returns listeners without listening.
func New(cfg Config) *Listeners {
	cfg.Retry, cfg.Logger = cmp.Or(cfg.Retry, DefaultRetry), cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Listeners{
		cfg: cfg, log: cfg.Logger.With("listeners", cfg.Name), nudge: make(chan struct{}, 1), released: make(chan struct{}),
		open: make(map[Address]Server), reported: make(map[model.Key]string),
	}
}

// Wake makes Run call Want.
func (l *Listeners) Wake() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// Open returns the number of open listeners of a family.
func (l *Listeners) Open(f model.Family) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.open {
		if model.FamilyOf(at.At.Addr()) == f {
			n++
		}
	}
	return n
}

// Failing reports whether an address could not be opened.
func (l *Listeners) Failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reported) > 0
}

// Release makes Run close all listeners and return.
func (l *Listeners) Release() { l.release.Do(func() { close(l.released) }) }

// Run opens and closes listeners until ctx ends or Release is called.
func (l *Listeners) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.close(nil)
	for {
		var retry <-chan time.Time
		if l.reconcile(ctx, &serving) {
			retry = time.After(l.cfg.Retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.released:
			return nil
		case <-l.nudge:
		case <-retry:
		}
	}
}

// reconcile returns true if it must be called again soon.
func (l *Listeners) reconcile(ctx context.Context, serving *sync.WaitGroup) (again bool) {
	want, again, err := l.cfg.Want()
	if err != nil {
		l.log.Error("the addresses to listen on are not known: trying again", "error", err, "after", l.cfg.Retry)
		return true
	}
	// The same of two Services with one port is always first.
	slices.SortFunc(want, func(a, b Address) int { return cmp.Or(model.CompareKeys(a.Service, b.Service), a.At.Compare(b.At)) })
	l.close(want)
	failed := make(map[model.Key]failure)
	for _, at := range want {
		l.mu.Lock()
		_, open := l.open[at]
		l.mu.Unlock()
		if open {
			continue
		}
		err := l.listen(ctx, at, serving)
		switch {
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			// The address was just removed, or is in IPv6 duplicate address detection.
			again = true
		case err != nil:
			f, before := failed[at.Service]
			if !before {
				f.first = at
			}
			failed[at.Service] = failure{f.first, errors.Join(f.err, err)}
		}
	}
	if ctx.Err() == nil {
		l.report(failed)
	}
	return again || len(failed) > 0
}

func (l *Listeners) close(want []Address) {
	keep := sets.New(want...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, server := range l.open {
		if keep.Has(at) {
			continue
		}
		server.Close()
		delete(l.open, at)
		l.log.Debug("closed a listener of a Service", "service", at.Service.String(), "address", at.At)
	}
}

// IPv6 listeners do not accept IPv4, so the families do not conflict.
var tcp = [model.NumFamilies]string{"tcp4", "tcp6"}

func (l *Listeners) listen(ctx context.Context, at Address, serving *sync.WaitGroup) error {
	listener, err := l.cfg.Listen(ctx, tcp[model.FamilyOf(at.At.Addr())], at.At.String())
	if err != nil {
		return err
	}
	server := l.cfg.Server(at, listener)
	l.mu.Lock()
	l.open[at] = server
	l.mu.Unlock()
	l.log.Debug("opened a listener of a Service", "service", at.Service.String(), "address", at.At)
	serving.Go(func() { l.serve(at, server) })
	return nil
}

// reconcile reopens the address.
func (l *Listeners) serve(at Address, server Server) {
	err := server.Serve()
	if err == nil {
		return
	}
	l.log.Error("a listener of a Service ended: opening it again", "service", at.Service.String(), "address", at.At, "error", err)
	server.Close()
	l.mu.Lock()
	if l.open[at] == server {
		delete(l.open, at)
	}
	l.mu.Unlock()
	l.Wake()
}

type failure struct {
	first Address
	err   error
}

func (l *Listeners) report(failed map[model.Key]failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.reported {
		if _, still := failed[name]; !still {
			delete(l.reported, name)
		}
	}
	for name, f := range failed {
		if l.reported[name] == f.err.Error() {
			continue
		}
		l.reported[name] = f.err.Error()
		l.log.Error("a listener of a Service cannot be opened: trying again", "service", name.String(), "error", f.err.Error(), "after", l.cfg.Retry)
		l.cfg.Failed(f.first, f.err)
	}
}
