package knft

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/knftables"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Config configures an Adapter.
type Config struct {
	// Family and Table are the defaults of all objects, as in knftables.New. Without both, every object
	// must name its own, and the List methods fail.
	Family knftables.Family
	Table  string
	// Fragment defaults to "FAMILY-TABLE", or "knft" without them, with a suffix if the table's name is not
	// valid for a fragment.
	Fragment string
	// Priority orders the rules of fragments in a chain, the lowest first.
	Priority int32
	// Lifetime is sticky (the default), durable or session.
	Lifetime weftv1.Lifetime
}

func (c *Config) validate() error {
	if (c.Family == "") != (c.Table == "") {
		return errors.New("family and table: give both or neither")
	}
	if c.Family != "" {
		if _, err := newTableID(string(c.Family), c.Table); err != nil {
			return err
		}
	}
	return nil
}

// Adapter implements knftables.Interface.
type Adapter struct {
	cfg     Config
	client  *client.Client
	session *client.Session
	// makes transactions, which only knftables can do
	blank *knftables.Fake

	// turn holds a token while a transaction runs.
	turn chan struct{}
	// turn guards:

	// empty until known
	publisher string
	// loaded: content was read back. published: this session has committed a snapshot. committed: the
	// aggregator has the fragment.
	loaded, published, committed bool
	// sent, with an unknown outcome
	unsettled *update

	// mu guards content, which the session reads at a resync.
	mu      sync.Mutex
	content *content
}

var _ knftables.Interface = (*Adapter)(nil)

// New returns an Adapter that publishes over c. It starts a session, which Close ends. The first
// transaction reads the fragment back.
//
// Possible errors: an invalid Config.
func New(c *client.Client, cfg Config) (*Adapter, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("new knftables adapter: %w", err)
	}
	cfg.Fragment = cmp.Or(cfg.Fragment, fragmentName(string(cfg.Family), cfg.Table))
	a := &Adapter{
		cfg: cfg, client: c, blank: knftables.NewFake(cfg.Family, cfg.Table),
		turn: make(chan struct{}, 1), content: newContent(),
	}
	a.session = c.Session(client.SessionConfig{Snapshot: a.snapshot})
	return a, nil
}

// Close ends the adapter's session, but not the client. Published content stays, unless its lifetime is
// session.
func (a *Adapter) Close() error { return a.session.Close() }

// NewTransaction implements knftables.Interface.
func (a *Adapter) NewTransaction() *knftables.Transaction { return a.blank.NewTransaction() }

func (a *Adapter) snapshot(string) *weftv1.Fragment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fragment()
}

// bytes of a fragment's name
const maxIdentity = 63

func fragmentName(family, table string) string {
	if family == "" {
		return "knft"
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		default:
			return '-'
		}
	}, strings.ToLower(table))
	name := family + "-" + plain
	if plain == table && len(name) <= maxIdentity {
		return name
	}
	sum := sha256.Sum256([]byte(table))
	tag := "-" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxIdentity-len(tag))] + tag
}
