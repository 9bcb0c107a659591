package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

// tell sends the process a line "FRAGMENT LIFETIME KEY...": it is to publish that.
func (p *process) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		t.Fatal(err)
	}
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
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
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
		if err := put(list(f[0], f[1], f[2:]...)); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), server.PublisherKey, publisher)
	stream, err := newAPI(conn).Publish(ctx)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session(client.SessionConfig{})
	return func(f *weftv1.Fragment) error {
		ctx, cancel := context.WithTimeout(t.Context(), aggregatortest.Wait)
		defer cancel()
		_, err := s.Put(ctx, f)
		return err
	}
}
