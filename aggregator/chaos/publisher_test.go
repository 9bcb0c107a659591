package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// publisherConfig is what a publisher process is started with.
type publisherConfig struct{ Socket, Name string }

// child is a publisher process: it does what the conductor says, with
// aggregator/client, and knows only what it was told.
type child struct {
	cfg publisherConfig
	out *lines

	client  *client.Client
	session *client.Session

	mu sync.Mutex
	// want is what each fragment should hold, with every command so far; acked
	// what the last acknowledged one made of it.
	want, acked map[string]wanted
}

// wanted is a fragment's content, of a command.
type wanted struct {
	id       uint64
	fragment *weftv1.Fragment
}

// runPublisher is the main function of a publisher process. It ends with its
// standard input.
func runPublisher(cfg publisherConfig, in io.Reader, out io.Writer) error {
	p := &child{cfg: cfg, out: &lines{w: out}}
	if err := p.open(); err != nil {
		return err
	}
	if err := p.out.write(reply{Kind: replyReady}); err != nil {
		return err
	}
	var failed error
	readLines(in, func(line []byte) {
		var c command
		err := json.Unmarshal(line, &c)
		if err == nil {
			err = p.do(&c)
		}
		failed = errors.Join(failed, err)
	})
	return failed
}

// open connects, and waits until there is something to connect to.
func (p *child) open() error {
	c, err := client.Dial(context.Background(), client.Config{Socket: p.cfg.Socket, Publisher: p.cfg.Name, DialTimeout: time.Minute})
	if err != nil {
		return err
	}
	p.client = c
	p.mu.Lock()
	p.want, p.acked = make(map[string]wanted), make(map[string]wanted)
	p.mu.Unlock()
	p.session = c.Session(client.SessionConfig{Snapshot: p.snapshot, OnSync: p.synced})
	return nil
}

func (p *child) snapshot(name string) *weftv1.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want[name].fragment
}

func (p *child) synced(name string, revision uint64, err error) {
	r := outcome(revision, err)
	if r.Kind == replyUnknown {
		// The session will try again.
		return
	}
	r.Name, r.Kind = name, replySynced
	_ = p.out.write(r)
}

// do carries out a command, or starts it.
func (p *child) do(c *command) error {
	f, err := decodeFragment(c.Fragment)
	if err != nil {
		return fmt.Errorf("command %d: %w", c.ID, err)
	}
	switch c.Op {
	case opPut:
		p.desired(c, f)
		p.follow(c, p.session.StartPut(f))
	case opWithdraw:
		p.desired(c, nil)
		p.follow(c, p.session.StartWithdraw(c.Name))
	case opPatch:
		patch := new(weftv1.Patch)
		if err := protojson.Unmarshal(c.Patch, patch); err != nil {
			return fmt.Errorf("command %d: %w", c.ID, err)
		}
		p.desired(c, f)
		p.follow(c, p.session.StartPatch(patch))
	case opApply:
		p.unary(c, func(ctx context.Context, cl *client.Client) (uint64, error) { return cl.Apply(ctx, f) })
	case opDelete:
		p.unary(c, func(ctx context.Context, cl *client.Client) (uint64, error) { return cl.Delete(ctx, "", c.Name) })
	case opReopen:
		_ = p.session.Close()
		_ = p.client.Close()
		if err := p.open(); err != nil {
			return err
		}
		return p.out.write(reply{ID: c.ID, Kind: replyCommitted})
	default:
		return fmt.Errorf("command %d: unknown operation %q", c.ID, c.Op)
	}
	return nil
}

// desired notes what a fragment should hold, before the session is told.
func (p *child) desired(c *command, f *weftv1.Fragment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want[c.Name] = wanted{c.ID, f}
}

// follow reports the outcome of an update of the session.
func (p *child) follow(c *command, pending *client.Pending) {
	p.mu.Lock()
	mine := p.want[c.Name]
	p.mu.Unlock()
	go func() {
		r := outcome(pending.Wait(context.Background()))
		r.ID, r.Name = c.ID, c.Name
		p.finish(c.Name, mine, r.Kind == replyCommitted)
		_ = p.out.write(r)
	}()
}

// finish keeps what was acknowledged. What was not, and no later command builds
// on, is given up: a publisher that knows better would send something else.
func (p *child) finish(name string, mine wanted, committed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case committed && mine.id > p.acked[name].id:
		p.acked[name] = mine
	case !committed && p.want[name].id == mine.id:
		p.want[name] = p.acked[name]
	}
}

// unary makes a call and reports its outcome.
func (p *child) unary(c *command, call func(context.Context, *client.Client) (uint64, error)) {
	cl := p.client
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		revision, err := call(ctx, cl)
		if c.Op == opDelete && errors.Is(err, client.ErrNotFound) {
			err = nil
		}
		r := outcome(revision, err)
		r.ID, r.Name = c.ID, c.Name
		_ = p.out.write(r)
	}()
}

// outcome puts what the client says into words.
func outcome(revision uint64, err error) reply {
	var rejected *client.RejectedError
	switch {
	case err == nil:
		return reply{Kind: replyCommitted, Revision: revision}
	case errors.As(err, &rejected):
		r := reply{Kind: replyRejected, Error: err.Error()}
		for _, v := range rejected.Violations {
			r.Reasons = append(r.Reasons, v.GetReason().String())
		}
		return r
	default:
		return reply{Kind: replyUnknown, Error: err.Error()}
	}
}
