package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// gate holds back what a connection delivers, as a busy server would.
type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	// data and end let bytes and the end of the connection pass.
	data, end bool
	// held is the number of bytes that were read and do not pass.
	held int
	conn unixConn
}

// unixConn is a connection with a descriptor.
type unixConn interface {
	net.Conn
	syscall.Conn
}

func newGate() *gate {
	g := &gate{data: true, end: true}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(data, end bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.data, g.end = data, end
	g.cond.Broadcast()
}

// waiting returns the number of bytes that the peer has written and that are
// not read yet.
func (g *gate) waiting(t *testing.T) int {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	raw, err := g.conn.SyscallConn()
	must(t, err)
	var n int
	var ierr error
	if err := raw.Control(func(fd uintptr) { n, ierr = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil || ierr != nil {
		t.Fatal(err, ierr)
	}
	return n + g.held
}

// pass waits until a read of n bytes may be delivered.
func (g *gate) pass(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held += n
	for n > 0 && !g.data || n == 0 && !g.end {
		g.cond.Wait()
	}
	g.held -= n
}

// gatedListener puts its first connection behind a gate.
type gatedListener struct {
	net.Listener
	gate *gate
	once sync.Once
}

func (l *gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.once.Do(func() {
		u, ok := c.(unixConn)
		if !ok {
			return
		}
		l.gate.mu.Lock()
		l.gate.conn = u
		l.gate.mu.Unlock()
		c = gatedConn{u, l.gate}
	})
	return c, nil
}

type gatedConn struct {
	unixConn
	gate *gate
}

func (c gatedConn) Read(b []byte) (int, error) {
	n, err := c.unixConn.Read(b)
	c.gate.pass(n)
	return n, err
}

// gated runs a daemon whose first connection is behind a gate.
func gated(t *testing.T, k aggregator.Kernel, reg prometheus.Registerer) (socket string, g *gate) {
	t.Helper()
	a, err := aggregator.New(aggregator.Config{Kernel: k, Registerer: reg})
	must(t, err)
	socket, g = aggregatortest.Socket(t), newGate()
	s, err := server.Listen(server.Config{Socket: socket, Aggregator: a})
	must(t, err)
	s.WrapListener(func(l net.Listener) net.Listener { return &gatedListener{Listener: l, gate: g} })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(ctx) })
	wg.Go(func() { _ = s.Serve(ctx) })
	t.Cleanup(func() { g.set(true, true); cancel(); wg.Wait() })
	return socket, g
}

// counter returns the value of a metric without labels.
func counter(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("metric %s not found", name)
	return 0
}

// TestKilledPublisherDoesNotOverruleItsSuccessor kills a publisher whose last
// snapshot is in the socket still, has its successor's committed, and only then
// lets the server read what the dead one wrote.
func TestKilledPublisherDoesNotOverruleItsSuccessor(t *testing.T) {
	k, reg := &aggregatortest.Kernel{}, prometheus.NewRegistry()
	socket, g := gated(t, k, reg)
	first := startProcess(t, socket, "agent", false)
	first.hear(t, "ready")
	aggregatortest.Eventually(t, "the first is connected", func() bool { return counter(t, reg, "weft_sessions") == 1 })
	g.set(false, false)
	var keys []string
	line := "list sticky"
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("10.0.0.%d", i))
		line += " " + keys[i]
	}
	first.tell(t, line)
	size := proto.Size(list("list", "sticky", keys...))
	aggregatortest.Eventually(t, "the snapshot is in the socket", func() bool { return g.waiting(t) > size })
	first.kill(t)

	second := startProcess(t, socket, "agent", true)
	second.tell(t, "list sticky 192.0.2.1")
	second.hear(t, "put list")

	// The bytes come, but not yet the end of the connection.
	g.set(true, false)
	aggregatortest.Eventually(t, "the dead one's snapshot is dropped", func() bool { return counter(t, reg, "weft_updates_dropped_total") == 1 })
	if got := k.Elements(demo, "list"); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Fatalf("elements %v: want the successor's", got)
	}
	g.set(true, true)
	aggregatortest.Eventually(t, "the first is gone", func() bool { return counter(t, reg, "weft_sessions") == 1 })
	if got := k.Elements(demo, "list"); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Fatalf("elements %v: want the successor's", got)
	}
}

// blocking is a kernel whose commits wait until they are released.
type blocking struct {
	aggregatortest.Kernel
	released chan struct{}
	release  func()
	// commits counts those that have begun.
	commits atomic.Int32
}

func newBlocking() *blocking {
	b := &blocking{released: make(chan struct{})}
	b.release = sync.OnceFunc(func() { close(b.released) })
	return b
}

func (b *blocking) Commit(ops []kernel.Op) (kernel.Stats, error) {
	b.commits.Add(1)
	<-b.released
	return b.Kernel.Commit(ops)
}

// TestResetStreamDoesNotOverruleTheNextOne cancels a stream, and a unary call, while
// their updates wait for the writer, and sends others on the same connection.
func TestResetStreamDoesNotOverruleTheNextOne(t *testing.T) {
	k := newBlocking()
	d, conn := start(t, k)
	t.Cleanup(k.release)
	api := newAPI(conn)
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), server.PublisherKey, "agent")
	pending := func(n int) {
		t.Helper()
		aggregatortest.Eventually(t, fmt.Sprintf("%d updates wait", n), func() bool { return d.Aggregator.Pending() >= n })
	}
	send := func(ctx context.Context, f *weftv1.Fragment) grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse] {
		t.Helper()
		s, err := api.Publish(ctx)
		must(t, err)
		must(t, s.Send(&weftv1.PublishRequest{Id: 1, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}))
		return s
	}
	busy := send(ctx, list("busy", "sticky", "10.0.0.1"))
	aggregatortest.Eventually(t, "the writer is busy", func() bool { return k.commits.Load() == 1 })
	sctx, reset := context.WithCancel(ctx)
	send(sctx, list("streamed", "sticky", "10.0.0.2"))
	pending(1)
	applied := make(chan error, 1)
	go func() {
		_, err := api.Apply(sctx, &weftv1.ApplyRequest{Fragment: list("applied", "sticky", "10.0.0.3")})
		applied <- err
	}()
	pending(2)
	reset()
	if err := <-applied; status.Code(err) != codes.Canceled {
		t.Fatalf("cancelled call: %v", err)
	}
	next := send(ctx, list("streamed", "sticky", "192.0.2.1"))
	// The stream that was reset leaves its fragment behind: that is queued too.
	pending(4)
	k.release()
	for _, s := range []grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]{busy, next} {
		if resp, err := s.Recv(); err != nil || resp.GetCommitted() == nil {
			t.Fatalf("answer %v, error %v", resp, err)
		}
	}
	if n := len(k.Commits()); n != 2 {
		t.Fatalf("%d commits: want those of the streams that live", n)
	}
	if got := k.Elements(demo, "streamed"); !slices.Equal(got, []string{"192.0.2.1"}) || k.Elements(demo, "applied") != nil {
		t.Fatalf("kernel holds\n%s", k)
	}
}

// TestClosedSendingSideIsAlive closes the sending side of a stream while its last
// update waits: it is committed and acknowledged.
func TestClosedSendingSideIsAlive(t *testing.T) {
	k, reg := newBlocking(), prometheus.NewRegistry()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Registerer: reg}})
	conn := dial(t, d.Socket)
	t.Cleanup(k.release)
	ctx := aggregatortest.Context(t)
	s, err := newAPI(conn).Publish(ctx)
	must(t, err)
	send := func(id uint64, name string) {
		t.Helper()
		f := list(name, "sticky", "10.0.0.1")
		must(t, s.Send(&weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}))
	}
	send(1, "a")
	aggregatortest.Eventually(t, "the writer is busy", func() bool { return k.commits.Load() == 1 })
	send(2, "b")
	send(3, "c")
	must(t, s.CloseSend())
	aggregatortest.Eventually(t, "the session has ended", func() bool { return counter(t, reg, "weft_sessions") == 0 })
	k.release()
	for range 3 {
		if resp, err := s.Recv(); err != nil || resp.GetCommitted() == nil {
			t.Fatalf("answer %v, error %v", resp, err)
		}
	}
	wantErr(t, "the end of the stream", errorOf(s.Recv()), io.EOF)
}

// The environment of a test binary that is a publisher.
const (
	envSocket    = "WEFT_TEST_SOCKET"
	envPublisher = "WEFT_TEST_PUBLISHER"
	envSession   = "WEFT_TEST_SESSION"
)

// process is a publisher in a process of its own.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startProcess starts one. With lasting it holds a client.Session, else one bare
// stream on one connection.
func startProcess(t *testing.T, socket, publisher string, lasting bool) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPublisherProcess$")
	cmd.Env = append(os.Environ(), envSocket+"="+socket, envPublisher+"="+publisher)
	if lasting {
		cmd.Env = append(cmd.Env, envSession+"=1")
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	p.in, p.out = in, bufio.NewScanner(out)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

// tell sends the process a line "FRAGMENT LIFETIME KEY...": it is to publish that.
func (p *process) tell(t *testing.T, line string) {
	t.Helper()
	must(t, errorOf(fmt.Fprintln(p.in, line)))
}

// hear waits for a line of the process.
func (p *process) hear(t *testing.T, want string) {
	t.Helper()
	for p.out.Scan() {
		if p.out.Text() == want {
			return
		}
	}
	t.Fatalf("the process ended without %q: %v", want, p.out.Err())
}

// kill ends the process as the kernel does when memory is short, and reaps it.
func (p *process) kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Kill())
	// The error says that it was killed.
	_ = p.cmd.Wait()
}

// TestPublisherProcess is the other side of process: not a test where it was not
// started as one.
func TestPublisherProcess(t *testing.T) {
	socket := os.Getenv(envSocket)
	if socket == "" {
		return
	}
	open := bareStream
	if os.Getenv(envSession) != "" {
		open = lastingSession
	}
	put := open(t, socket, os.Getenv(envPublisher))
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		f := strings.Fields(in.Text())
		must(t, put(list(f[0], f[1], f[2:]...)))
		fmt.Println("put " + f[0])
	}
}

// list is a fragment with a set in table ip demo.
func list(name, lifetime string, keys ...string) *weftv1.Fragment {
	set := &weftv1.Set{Name: name, Type: "ipv4_addr"}
	for _, k := range keys {
		set.Elements = append(set.Elements, &weftv1.Element{Key: k})
	}
	return &weftv1.Fragment{
		Name: name, Lifetime: weftv1.Lifetime(weftv1.Lifetime_value["LIFETIME_"+strings.ToUpper(lifetime)]),
		Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Sets: []*weftv1.Set{set}}},
	}
}

// bareStream returns what sends a snapshot on one stream of one connection,
// without waiting for an answer.
func bareStream(t *testing.T, socket, publisher string) func(*weftv1.Fragment) error {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	ctx := metadata.AppendToOutgoingContext(t.Context(), server.PublisherKey, publisher)
	stream, err := newAPI(conn).Publish(ctx)
	must(t, err)
	id := uint64(0)
	return func(f *weftv1.Fragment) error {
		id++
		return stream.Send(&weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
	}
}

// lastingSession returns what puts a fragment, and waits until it is committed.
func lastingSession(t *testing.T, socket, publisher string) func(*weftv1.Fragment) error {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Socket: socket, Publisher: publisher, DialTimeout: aggregatortest.Wait})
	must(t, err)
	s := c.Session(client.SessionConfig{})
	return func(f *weftv1.Fragment) error {
		ctx, cancel := context.WithTimeout(t.Context(), aggregatortest.Wait)
		defer cancel()
		_, err := s.Put(ctx, f)
		return err
	}
}

// TestHungPublisherLosesItsLease stops a publisher without killing it: its
// connection stays open without an answer. When it continues, it comes back by itself.
func TestHungPublisherLosesItsLease(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: k},
		Limits: func(c *server.Config) { c.KeepaliveTime, c.KeepaliveTimeout = time.Second, time.Second },
	})
	p := startProcess(t, d.Socket, "agent", true)
	p.tell(t, "brief session 10.0.0.1")
	p.hear(t, "put brief")
	p.tell(t, "stays sticky 10.0.0.2")
	p.hear(t, "put stays")
	signal := func(s syscall.Signal) {
		t.Helper()
		must(t, p.cmd.Process.Signal(s))
	}
	signal(syscall.SIGSTOP)
	aggregatortest.Eventually(t, "the session's fragment is withdrawn", func() bool { return k.Elements(demo, "brief") == nil })
	if got := fmt.Sprint(k.Elements(demo, "stays")); got != "[10.0.0.2]" {
		t.Fatalf("sticky fragment holds %s", got)
	}
	signal(syscall.SIGCONT)
	aggregatortest.Eventually(t, "the publisher is back", func() bool { return len(k.Elements(demo, "brief")) == 1 })
	p.tell(t, "stays sticky 10.0.0.3")
	p.hear(t, "put stays")
	if got := fmt.Sprint(k.Elements(demo, "stays")); got != "[10.0.0.3]" {
		t.Fatalf("sticky fragment holds %s", got)
	}
}

func TestLeaseIsChecked(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: &aggregatortest.Kernel{}})
	must(t, err)
	for _, cfg := range []server.Config{
		{Aggregator: a, KeepaliveTime: time.Millisecond},
		{Aggregator: a, KeepaliveTimeout: -time.Second},
		{},
	} {
		cfg.Socket = aggregatortest.Socket(t)
		if s, err := server.Listen(cfg); err == nil {
			_ = s.Close()
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
