package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options describe a Control.
type Options struct {
	// optional path of the configuration file
	File string
	// the daemon's user; nil means the user of the process
	Self *uint32
	// default: System
	Lookup Lookup
	// nil discards
	Logger *slog.Logger
	// optional
	Registerer prometheus.Registerer
}

// Control holds the policy in force. A nil Control limits no publisher.
type Control struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	uid     uint32

	policy atomic.Pointer[Policy]
	// closed by the next change
	changed atomic.Pointer[chan struct{}]

	// held while the file is read; unread is the last read error, or empty
	mu     sync.Mutex
	data   []byte
	unread string
	// nil if the file is in force
	refused atomic.Pointer[error]

	refusals *Repeats
}

// Open reads the configuration, if there is one.
//
// Possible errors: a *FileError, errors of the file system, including a missing file, errors of the
// metrics registry.
func Open(opts Options) (*Control, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Lookup.User == nil || opts.Lookup.Group == nil {
		opts.Lookup = System()
	}
	c := &Control{opts: opts, log: opts.Logger, uid: uint32(os.Geteuid())} //nolint:gosec // a uid
	if opts.Self != nil {
		c.uid = *opts.Self
	}
	c.refusals = NewRepeats(func(publisher, limit string, withheld int) {
		c.log.Warn("refused more", "publisher", publisher, "limit", limit, "not_logged", withheld)
	})
	changed := make(chan struct{})
	c.changed.Store(&changed)
	m, err := newMetrics(opts.Registerer, opts.File != "")
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	c.metrics = m
	if opts.File == "" {
		c.policy.Store(&Policy{})
		return c, nil
	}
	if c.data, err = Read(opts.File); err != nil {
		return nil, err
	}
	p, err := Parse(opts.File, c.data, opts.Lookup)
	if err != nil {
		return nil, err
	}
	c.metrics.reloaded.SetToCurrentTime()
	c.policy.Store(p)
	return c, nil
}

// Close logs the numbers of unlogged refusals.
func (c *Control) Close() { c.refusals.Close() }

// Policy returns the policy in force.
func (c *Control) Policy() *Policy { return c.policy.Load() }

// Publisher returns the current configuration of a publisher, or nil if it has no limits.
func (c *Control) Publisher(name string) *Publisher {
	if c == nil {
		return nil
	}
	return c.Policy().Publisher(name)
}

// Resolve is Policy.Resolve of the policy in force.
func (c *Control) Resolve(peer *Peer, want string) (Identity, error) {
	return c.Policy().Resolve(peer, peer.NetAdmin || peer.UID != 0 && peer.UID == c.uid, want)
}

// Changed returns a channel that is closed after the file is read again.
func (c *Control) Changed() <-chan struct{} { return *c.changed.Load() }

// Current returns why the last good file is in force instead of the current one, or nil.
func (c *Control) Current() error {
	if err := c.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// Reload reads the file again, even if unchanged, because its names may have new ids. On an error
// the policy stays.
//
// Possible errors: a *FileError, errors of the file system, including a missing file.
func (c *Control) Reload() error { return c.load(true) }

func (c *Control) load(force bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, err := Read(c.opts.File)
	same := err == nil && c.unread == "" && bytes.Equal(data, c.data) || err != nil && err.Error() == c.unread
	if same && !force {
		return nil
	}
	var p *Policy
	if err != nil {
		c.unread = err.Error()
	} else {
		c.data, c.unread = data, ""
		p, err = Parse(c.opts.File, data, c.opts.Lookup)
	}
	if err != nil {
		c.refused.Store(&err)
		c.metrics.reloadErrors.Inc()
		c.log.Error("the configuration cannot be used: the last good one stays in force", "file", c.opts.File, "error", err)
		return err
	}
	c.refused.Store(nil)
	c.metrics.reloaded.SetToCurrentTime()
	c.policy.Store(p)
	changed := make(chan struct{})
	close(*c.changed.Swap(&changed))
	c.log.Info("configuration read", "file", c.opts.File, "publishers", len(p.Publishers))
	return nil
}

// Refused counts a refusal in the metrics, and logs it once a minute for each publisher and limit.
func (c *Control) Refused(peer *Peer, r *Refusal, method string) {
	publisher := unnamed
	if c.Publisher(r.Publisher) != nil {
		publisher = r.Publisher
	}
	c.metrics.refusals.WithLabelValues(publisher, string(r.Limit)).Inc()
	skipped, ok := c.refusals.Log(publisher, string(r.Limit), time.Now())
	if !ok {
		return
	}
	args := []any{
		"method", method, "publisher", clip(r.Publisher), "limit", string(r.Limit),
		"pid", peer.PID, "uid", peer.UID, "gid", peer.GID, "executable", peer.Executable, "error", r.Text,
	}
	if skipped > 0 {
		args = append(args, "not_logged", skipped)
	}
	c.log.Warn("refused", args...)
}
