package links

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	// The wait before a new socket.
	retry = 500 * time.Millisecond
	// Changes are delivered after a pause without messages, and at the latest after maxBatch.
	pause    = time.Millisecond
	maxBatch = 50 * time.Millisecond
)

// Config describes a Tracker.
type Config struct {
	// Deliver receives the addresses with a changed Link. Required.
	Deliver func(map[netip.Addr]model.Link)
	// Nil discards.
	Logger *slog.Logger
}

// Tracker follows the links of the pods in a network namespace.
type Tracker struct {
	deliver func(map[netip.Addr]model.Link)

	mu        sync.Mutex // guards the fields below
	table     *table
	delivered map[netip.Addr]model.Link
	adopted   map[netip.Addr]string // by Adopt, until bound

	synced   chan struct{}
	syncOnce sync.Once
	buffer   int // in bytes
	warn     func(message string, err error)
}

// New returns a tracker; required fields must be set.
func New(cfg Config) (*Tracker, error) {
	if cfg.Deliver == nil {
		return nil, errors.New("configure link tracker: Deliver is required")
	}
	log, logged := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), make(map[string]bool)
	warn := func(message string, err error) {
		if reason := message + err.Error(); !logged[reason] {
			logged[reason] = true
			log.Warn(message, "error", err)
		}
	}
	return &Tracker{deliver: cfg.Deliver, table: newTable(warn), delivered: make(map[netip.Addr]model.Link), synced: make(chan struct{}), buffer: 4 << 20, warn: warn}, nil
}

// Synced returns a channel that is closed once the state at the start was delivered.
func (t *Tracker) Synced() <-chan struct{} { return t.synced }

// Adopt delivers the bridge ports known to an earlier process, if these still exist: the kernel may
// have forgotten the neighbours.
func (t *Tracker) Adopt(ports map[netip.Addr]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.adopted = ports
	if len(t.table.ifaces) > 0 {
		t.bindAdopted(t.table)
		t.difference()
	}
}

func (t *Tracker) bindAdopted(in *table) {
	if len(t.adopted) == 0 {
		return
	}
	index := make(map[string]int32)
	for i, of := range in.ifaces {
		index[of.name] = i
	}
	for addr, name := range t.adopted {
		if port := index[name]; port != 0 && in.ifaces[in.ifaces[port].master].bridge {
			in.bind(addr, in.ifaces[port].master, port)
		}
	}
	t.adopted = nil
}

// Run follows the thread's network namespace until ctx ends.
func (t *Tracker) Run(ctx context.Context) error {
	for {
		err := t.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		t.warn("interfaces of pods: asking the kernel again for everything", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

func (t *Tracker) follow(ctx context.Context) error {
	s, err := subscribe(t.buffer)
	if err != nil {
		return err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, s.Close)()
	if err := t.load(); err != nil {
		return err
	}
	t.syncOnce.Do(func() { close(t.synced) })
	for {
		messages, err := receive(s, 0)
		for end := time.Now().Add(maxBatch); err == nil; messages, err = receive(s, pause) {
			t.apply(messages)
			if time.Now().After(end) {
				break
			}
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return err
		}
		t.mu.Lock()
		t.difference()
		t.mu.Unlock()
	}
}

func (t *Tracker) apply(messages []syscall.NetlinkMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		t.table.apply(m.Header.Type, m.Header.Flags, m.Data)
	}
}

// load reads the whole table and keeps the ports of addresses.
func (t *Tracker) load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := newTable(t.warn)
	for _, d := range dumps {
		messages, err := ask(d.request, unix.NLM_F_DUMP, d.data...)
		if err != nil {
			return err
		}
		for _, m := range messages {
			now.apply(d.answer, 0, m)
		}
		if d.answer == unix.RTM_NEWLINK {
			now.keepPorts(t.table)
			t.bindAdopted(now)
		}
	}
	for addr := range t.delivered {
		now.changed[addr] = struct{}{}
	}
	t.table = now
	t.difference()
	return nil
}

func (t *Tracker) difference() {
	changes := make(map[netip.Addr]model.Link)
	for addr := range t.table.changed {
		if link := t.table.link(addr); link != t.delivered[addr] {
			changes[addr], t.delivered[addr] = link, link
			if link == (model.Link{}) {
				delete(t.delivered, addr)
			}
		}
	}
	t.table.changed = make(set)
	if len(changes) > 0 {
		t.deliver(changes)
	}
}
