package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// holds is how often TestHold replaces weft, and how often it kills it.
var holds = flag.Int("hold.times", 5, "updates and kills of TestHold, each")

// TestHold replaces weft and kills it, and each time another program flushes the ruleset, at a random
// instant. A port that a fragment closes stays closed, and the Service goes on answering.
func TestHold(t *testing.T) {
	if !inOwnNamespace(t, "-hold.times", fmt.Sprint(*holds)) {
		return
	}
	dir := t.TempDir()
	// command runs a program, or weft.
	command := func(name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		if name == "weft" {
			c.Path, c.Err = os.Args[0], nil
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, args := range []string{"link set lo up", "addr add 10.244.1.5/32 dev lo", "route add default dev lo"} {
		command("ip", strings.Fields(args)...)
	}
	manifests, socket := filepath.Join(dir, "manifests"), filepath.Join(dir, "weft.sock")
	writeFile(t, filepath.Join(manifests, "web.yaml"), serviceManifest(80, "TCP"))
	hold := startWeft(t, "hold", "--socket", filepath.Join(dir, "hold.sock"))
	args := []string{
		"run", "--standby", "--manifests", manifests, "--hostname-override", "node-a", "--socket", socket, "--state-dir", filepath.Join(dir, "state"),
		"--metrics-bind-address=", "--healthz-bind-address=",
	}
	w := startWeft(t, args...)
	w.says(t, "a holder keeps the netlink socket")

	server, err := net.Listen("tcp", "10.244.1.5:8080")
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	answers := func() bool {
		c, err := net.DialTimeout("tcp", "10.96.0.10:80", time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	eventually(t, "the Service answers", answers)

	closed, err := net.ListenPacket("udp", "127.0.0.1:9999")
	must(t, err)
	t.Cleanup(func() { _ = closed.Close() })
	var passed, sent atomic.Int64
	go func() {
		b := make([]byte, 16)
		for {
			if _, _, err := closed.ReadFrom(b); err != nil {
				return
			}
			passed.Add(1)
		}
	}()
	rules := filepath.Join(dir, "closed.nft")
	writeFile(t, rules, "table inet closed { chain input { type filter hook input priority 0; udp dport 9999 counter drop; }; }\n")
	command("weft", "apply", "-f", rules, "--socket", socket)
	go func() {
		c, err := net.Dial("udp", "127.0.0.1:9999")
		if err != nil {
			return
		}
		for t.Context().Err() == nil {
			_, _ = c.Write([]byte("in?"))
			sent.Add(1)
			<-time.After(time.Millisecond)
		}
	}()

	for n := range 2 * *holds {
		next, signal := w, syscall.SIGKILL
		update := n%2 == 0
		if update {
			signal = syscall.SIGTERM
			next = startWeft(t, args...)
			next.says(t, "standing by")
		}
		flushed, cancel := context.WithCancel(t.Context())
		at := time.Duration(rand.IntN(200)) * time.Millisecond
		go func() {
			defer cancel()
			<-time.After(at)
			command("nft", "flush", "ruleset")
		}()
		_ = w.end(t, signal)
		if !update {
			next = startWeft(t, args...)
		}
		<-flushed.Done()
		if !answers() {
			t.Fatalf("round %d: the Service does not answer after the ruleset was flushed", n)
		}
		w = next
		w.says(t, "a holder keeps the netlink socket")
		if n == *holds {
			// A holder that is replaced gets the socket from the weft that runs.
			must(t, hold.end(t, syscall.SIGTERM))
			hold = startWeft(t, "hold", "--socket", filepath.Join(dir, "hold.sock"))
			hold.says(t, "keeping the netlink socket of a weft")
		}
	}
	if passed.Load() > 0 || sent.Load() < 100 {
		t.Errorf("%d of %d packets passed the closed port", passed.Load(), sent.Load())
	}
	t.Logf("%d updates and %d kills, the ruleset flushed each time: %d of %d packets passed the closed port", *holds, *holds, passed.Load(), sent.Load())
	if err := w.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("weft ends with %v", err)
	}
	if out := command("nft", "list", "tables"); !strings.Contains(out, "table inet closed") {
		t.Errorf("the tables are not there: %s", out)
	}
	if out := command("weft", "cleanup", "--socket", socket); !strings.Contains(out, "removed table inet closed") {
		t.Errorf("weft cleanup without a weft says %s", out)
	}
}
