package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/nft/kernel"
)

type node struct {
	Config
	dial   func() (*client.Client, error)
	open   func() (*kernel.Conn, error)
	tables func() ([]kernel.TableInfo, error)
	// services returns the state of the Service frontend, empty without the frontend.
	services func() (*model.Snapshot, error)
	// nil until checkConditions stores them
	processes atomic.Pointer[[]*conditions.Process]

	// mu guards closers.
	mu      sync.Mutex
	closers []io.Closer
}

func newNode(ctx context.Context, cfg Config) *node {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Root = cmp.Or(cfg.Root, "/")
	n := &node{Config: cfg}
	n.dial = once(n, func() (*client.Client, error) {
		return client.Dial(ctx, client.Config{Socket: cfg.Socket, Publisher: cfg.Publisher, DialTimeout: -1})
	})
	n.open = once(n, func() (*kernel.Conn, error) { return kernel.Open(kernel.Config{}) })
	n.tables = sync.OnceValues(func() ([]kernel.TableInfo, error) {
		c, err := n.open()
		if err != nil {
			return nil, err
		}
		return c.Tables()
	})
	n.services = sync.OnceValues(func() (*model.Snapshot, error) {
		state, err := n.readServices(ctx)
		if errors.As(err, new(*get.NoFrontendError)) {
			return &model.Snapshot{}, nil
		}
		return state, err
	})
	return n
}

// once opens a connection at the first call; n.close closes it.
func once[C io.Closer](n *node, open func() (C, error)) func() (C, error) {
	return sync.OnceValues(func() (C, error) {
		c, err := open()
		if err == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.closers = append(n.closers, c)
		}
		return c, err
	})
}

func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.closers {
		_ = c.Close()
	}
}

func (n *node) readServices(ctx context.Context) (*model.Snapshot, error) {
	state, err := get.ReadServices(ctx, &cli.Connection{Socket: n.Socket, Publisher: n.Publisher}, model.Key{})
	if err != nil {
		return nil, err
	}
	services, err := state.Models()
	return &model.Snapshot{Revision: state.Model.Revision, Node: model.Node{Addresses: state.Model.NodeAddresses}, Services: services}, err
}

// running reports whether a weft answers on the socket. checkSocket reports if not.
func (n *node) running() bool {
	_, err := n.dial()
	return err == nil
}

// text returns the file's trimmed text, which is empty if the file is missing.
func (n *node) text(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(n.Root, path)) //nolint:gosec // files of the kernel
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// number returns false if the file is missing or empty.
func (n *node) number(path string) (int, bool, error) {
	text, err := n.text(path)
	if err != nil || text == "" {
		return 0, false, err
	}
	v, err := strconv.Atoi(text)
	return v, true, err
}

// devices returns the base names of matching files below Root, except lo.
func (n *node) devices(pattern string) []string {
	// The pattern is valid.
	found, _ := filepath.Glob(filepath.Join(n.Root, pattern))
	var out []string
	for _, path := range found {
		if name := filepath.Base(path); name != "lo" {
			out = append(out, name)
		}
	}
	return out
}

// perCPU sums the columns of a file in /proc/net/stat, nil if missing: a line of names and a line
// of hexadecimal numbers for each CPU.
func (n *node) perCPU(file string) (map[string]uint64, error) {
	text, err := n.text("proc/net/stat/" + file)
	if err != nil || text == "" {
		return nil, err
	}
	head, rest, _ := strings.Cut(text, "\n")
	names := strings.Fields(head)
	out := make(map[string]uint64, len(names))
	for line := range strings.Lines(rest) {
		for i, word := range strings.Fields(line) {
			v, err := strconv.ParseUint(word, 16, 64)
			if err != nil || i >= len(names) {
				return nil, fmt.Errorf("read /proc/net/stat/%s: %q is not a number of a column", file, word)
			}
			out[names[i]] += v
		}
	}
	return out, nil
}

const maxAnswer = 16 << 20

func httpGet(ctx context.Context, address, path string) (code int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, strings.TrimSpace(string(b)), err
}
