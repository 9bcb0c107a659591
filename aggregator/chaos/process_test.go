package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// configEnv makes this test binary one of the processes.
const configEnv = "WEFT_CHAOS_CONFIG"

// childConfig is what a process is started with.
type childConfig struct {
	Socket string
	// Publisher is the name of a publisher. The aggregator has none, and all that follows.
	Publisher string
	StateDir  string
	// NoOwner leaves the tables open to other processes, as before Linux 6.9.
	NoOwner bool
	// Rate is in commits a second; 0 means no limit.
	Rate  float64
	Grace time.Duration
}

// runChild runs the process of a configuration.
func runChild(text string) error {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	if cfg.Publisher != "" {
		return runPublisher(cfg, os.Stdin, os.Stdout)
	}
	return runDaemon(cfg, os.Stdin, os.Stdout)
}

// process is a child process of the conductor.
type process struct {
	cmd *exec.Cmd
	in  *lines
}

// event is a reply with the process that it comes from.
type event struct {
	from *process
	reply
}

// start runs a process in a namespace. Its replies, and at last replyEnded, go to
// events; its standard error is appended to a file.
func (c *conductor) start(ns *nfttest.NS, config childConfig, log string) *process {
	c.t.Helper()
	exe, err := os.Executable()
	c.must(err)
	text, err := json.Marshal(config)
	c.must(err)
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), configEnv+"="+string(text))
	p.cmd.Stderr = c.log(log)
	stdin, err := p.cmd.StdinPipe()
	c.must(err)
	stdout, err := p.cmd.StdoutPipe()
	c.must(err)
	p.in = &lines{w: stdin}
	c.must(ns.Do(p.cmd.Start))
	go func() {
		readLines(stdout, func(line []byte) {
			r := reply{}
			if err := json.Unmarshal(line, &r); err != nil {
				r = reply{Kind: replyUnknown, Error: fmt.Sprintf("bad line %.80q: %v", line, err)}
			}
			c.events <- event{p, r}
		})
		// All it wrote is read: reap it.
		c.events <- event{p, reply{Kind: replyEnded, Error: fmt.Sprint(p.cmd.Wait())}}
	}()
	return p
}

// signal sends a signal; a process that has ended ignores it.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// The words between the conductor and its publishers: JSON lines, commands to a
// publisher's standard input, replies from its standard output.

// Operations of a command.
const (
	opPut      = "put"      // the fragment on the session
	opWithdraw = "withdraw" // take the fragment away on the session
	opApply    = "apply"    // the fragment by a unary call
	opDelete   = "delete"   // take it away by a unary call
	opReopen   = "reopen"   // end the session and the connection, and make new ones
)

// command is one thing that a publisher is to do.
type command struct {
	ID   uint64 `json:"id"`
	Op   string `json:"op"`
	Name string `json:"name,omitempty"`
	// Fragment is what the fragment holds after the command; absent where it
	// is taken away.
	Fragment json.RawMessage `json:"fragment,omitempty"`
}

// Kinds of a reply.
const (
	replyReady     = "ready"     // the process is up
	replyCommitted = "committed" // the command's update was acknowledged
	replyRejected  = "rejected"  // it was refused
	replyUnknown   = "unknown"   // it cannot be known
	replySynced    = "synced"    // the session brought a fragment back by itself, or was refused
	replyEnded     = "ended"     // the process is gone; made by the conductor's reader
)

// reply is what a publisher says of a command, or by itself.
type reply struct {
	ID       uint64   `json:"id,omitempty"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name,omitempty"`
	Revision uint64   `json:"revision,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// lines writes JSON lines; it is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}

// readLines calls f with each line of r; a last line without an end is left
// out: its writer was killed.
func readLines(r io.Reader, f func([]byte)) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		f(line)
	}
}

func encodeFragment(f *weftv1.Fragment) json.RawMessage {
	b, err := protojson.Marshal(f)
	if err != nil {
		panic(err) // it is the generator's
	}
	return b
}

func decodeFragment(b json.RawMessage) (*weftv1.Fragment, error) {
	if len(b) == 0 {
		return nil, nil
	}
	f := new(weftv1.Fragment)
	return f, protojson.Unmarshal(b, f)
}

// runDaemon is the main function of an aggregator process: what "weft
// aggregator" does, without its flags. It ends with its standard input, and
// gracefully on SIGTERM.
func runDaemon(cfg childConfig, in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	conn, err := kernel.Open(kernel.Config{NoOwner: cfg.NoOwner})
	if err != nil {
		return err
	}
	defer conn.Close()
	if cfg.NoOwner == conn.Owner() {
		return fmt.Errorf("ownership is %t: this needs Linux 6.9", conn.Owner())
	}
	flows, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer flows.Close()
	limit := rate.Limit(cfg.Rate)
	if cfg.Rate == 0 {
		limit = rate.Inf
	}
	agg, err := aggregator.New(aggregator.Config{
		Kernel: conn, Flows: flows, StateDir: cfg.StateDir, Rate: limit, SessionGrace: cfg.Grace, Logger: log,
	})
	if err != nil {
		return err
	}
	srv, err := server.Listen(server.Config{Socket: cfg.Socket, Aggregator: agg, Logger: log})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return agg.Run(ctx) })
	g.Go(func() error { return srv.Serve(ctx) })
	g.Go(func() error {
		select {
		case <-agg.Ready():
			return (&lines{w: out}).write(reply{Kind: replyReady})
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// child is a publisher process: it does what the conductor says, with
// aggregator/client, and knows only what it was told.
type child struct {
	cfg childConfig
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
func runPublisher(cfg childConfig, in io.Reader, out io.Writer) error {
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
	c, err := client.Dial(context.Background(), client.Config{Socket: p.cfg.Socket, Publisher: p.cfg.Publisher, DialTimeout: time.Minute})
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
