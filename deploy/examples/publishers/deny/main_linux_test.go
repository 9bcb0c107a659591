package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// daemon runs an aggregator on the kernel of a namespace, until stop or the end of the test.
func daemon(t *testing.T, ns *nfttest.NS, socket string) (path string, stop func()) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: conn, StateDir: t.TempDir()}, Socket: socket})
	return d.Socket, func() {
		// The open connection owns the tables.
		if err := errors.Join(d.Stop(), conn.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// logged may be read during writes.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) has(s string) func() bool {
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.text.String(), s)
	}
}

// story is a running example and its file.
type story struct {
	*testing.T
	ns   *nfttest.NS
	file string
	log  *logged
}

func (s *story) write(text string) {
	s.Helper()
	// As editors do: never half a file.
	if err := os.WriteFile(s.file+".new", []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		s.Fatal(err)
	}
}

// await waits until the kernel has exactly these elements.
func (s *story) await(elements string) {
	s.Helper()
	want := "\n\t\ttype ipv4_addr\n\t\tflags interval\n"
	if elements != "" {
		want += "\t\telements = { " + elements + " }\n"
	}
	aggregatortest.Eventually(s, "nft lists "+elements, func() bool {
		out, _ := s.ns.Output("", "nft", "list", "set", "inet", "example", "blocked")
		return strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want+"}"), " "))
	})
}

func TestExampleKeepsTheSetEqualToItsFile(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	socket, stop := daemon(t, ns, "")
	s := &story{T: t, ns: ns, file: filepath.Join(t.TempDir(), "deny.txt"), log: &logged{}}
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--file", s.file, "--socket", socket, "--interval", "10ms"}, s.log)
	}()

	aggregatortest.Eventually(t, "the missing file is reported", s.log.has("no such file"))
	s.write("# none yet\n")
	s.await("")
	s.write("192.0.2.1\n198.51.100.0/24 # a test net\n")
	s.await("192.0.2.1, 198.51.100.0/24")
	handles := ns.Run(t, "nft", "-a", "list", "chain", "inet", "example", "input")

	// Only differences are sent: the rule stays.
	s.write("198.51.100.0/24\n203.0.113.7\n")
	s.await("198.51.100.0/24, 203.0.113.7")
	aggregatortest.Eventually(t, "the commit is logged", s.log.has("addresses=2"))
	if again := ns.Run(t, "nft", "-a", "list", "chain", "inet", "example", "input"); again != handles {
		t.Errorf("the chain was written anew:\n%s\n%s", handles, again)
	}

	// A mistake is reported, and changes nothing; then it is corrected.
	s.write("203.0.113.7\n192.0.2.999\n")
	aggregatortest.Eventually(t, "the rejection is logged", s.log.has("blocked { 192.0.2.999 }"))
	s.await("198.51.100.0/24, 203.0.113.7")
	s.write("203.0.113.7\n192.0.2.99\n")
	s.await("192.0.2.99, 203.0.113.7")

	// Another aggregator replaces this one, and the set is gone.
	stop()
	ns.Run(t, "nft", "flush", "ruleset")
	daemon(t, ns, socket)
	s.await("192.0.2.99, 203.0.113.7")

	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.await("192.0.2.99, 203.0.113.7")
}

// TestRunFails: the program ends on a wrong flag, or if it is stopped before an aggregator answers.
func TestRunFails(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"--files", "deny.txt"}, &out); err == nil || !strings.Contains(out.String(), "-file string") {
		t.Errorf("an unknown flag: %v, and the usage is %q", err, out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	socket := filepath.Join(t.TempDir(), "weft.sock")
	if err := run(ctx, []string{"--socket", socket}, &out); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("no aggregator: %v, want an error that names %s", err, socket)
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deny.txt")
	for text, want := range map[string][]string{
		"":                                    {},
		"# nothing\n\n":                       {},
		"10.0.0.2\n10.0.0.1 # why\n10.0.0.2":  {"10.0.0.1", "10.0.0.2"},
		" 10.0.0.0/8\r\n\t10.0.0.1 10.0.0.2 ": {"10.0.0.0/8", "10.0.0.1", "10.0.0.2"},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v: want %q", text, got, err, want)
		}
	}
}
