// Command example is the smallest complete publisher, meant to be copied: it
// keeps a set of weft's ruleset equal to a text file, and has packets from the
// addresses in it dropped. The file has an address or prefix per line; blank
// lines and what follows a # are ignored.
//
// It has the three parts of a publisher: what it wants, as one fragment
// (snapshot); the way there from what it wanted before (want); and a
// client.Session, which reconnects by itself and sends the snapshot when the
// aggregator does not have the fragment.
//
// A file with a mistake is refused as a whole, and logged. What was committed
// last stays in force, also when this program ends: a fragment whose lifetime
// is LIFETIME_SESSION would go.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run publishes the file until ctx ends.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("file", "deny.txt", "addresses and prefixes to drop, one per line")
	socket := flags.String("socket", client.DefaultSocket, "path of the aggregator's socket")
	interval := flags.Duration("interval", time.Second, "how often the file is read")
	if err := flags.Parse(args); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	c, err := client.Dial(ctx, client.Config{Socket: *socket, Publisher: "example", Logger: log})
	if err != nil {
		return err
	}
	defer c.Close()
	var p publisher
	session := c.Session(client.SessionConfig{Snapshot: p.snapshot})
	defer session.Close()
	tick := time.NewTicker(*interval)
	defer tick.Stop()
	for told := ""; ; {
		keys, err := read(*file)
		if err == nil {
			err = p.publish(ctx, session, keys, log)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && p.inForce:
			told = ""
		case err != nil && err.Error() != told:
			// With %+v a rejection says all that is wrong, not only the first.
			log.Error("the last good list stays in force", "error", fmt.Sprintf("%+v", err))
			told = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// read returns the addresses and prefixes of a file.
func read(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		keys = append(keys, strings.Fields(line)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// publisher is what this program wants the aggregator to have.
type publisher struct {
	// inForce is true while the last update was committed: patches build on it.
	inForce bool
	// refused is when it was not.
	refused time.Time
	// mu guards keys: the session asks for a snapshot on its own goroutine.
	mu   sync.Mutex
	keys []string
}

// retry is how long after a refusal the same is sent again: another publisher
// may have been in its way.
const retry = 30 * time.Second

// publish sends what is new in keys. After a refusal it sends all of them.
func (p *publisher) publish(ctx context.Context, s *client.Session, keys []string, log *slog.Logger) (err error) {
	change := p.want(keys)
	if change == nil && (p.inForce || time.Since(p.refused) < retry) {
		return nil
	}
	var revision uint64
	if p.inForce {
		revision, err = s.Patch(ctx, &weftv1.Patch{Fragment: "deny", Tables: []*weftv1.TablePatch{
			{Family: "inet", Name: "example", Elements: []*weftv1.ElementPatch{change}},
		}})
	} else {
		revision, err = s.Put(ctx, p.snapshot("deny"))
	}
	if p.inForce = err == nil; err != nil {
		p.refused = time.Now()
		return err
	}
	log.Info("committed", "revision", revision, "added", len(change.GetAdd()), "removed", len(change.GetRemove()))
	return nil
}

// want notes what is wanted from now on, and returns what is new; nil is
// nothing.
func (p *publisher) want(keys []string) *weftv1.ElementPatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys != nil && slices.Equal(keys, p.keys) {
		return nil
	}
	change := &weftv1.ElementPatch{Set: "blocked"}
	for _, key := range keys {
		if _, had := slices.BinarySearch(p.keys, key); !had {
			change.Add = append(change.Add, &weftv1.Element{Key: key})
		}
	}
	for _, key := range p.keys {
		if _, has := slices.BinarySearch(keys, key); !has {
			change.Remove = append(change.Remove, key)
		}
	}
	p.keys = keys
	return change
}

// snapshot returns the fragment as it is wanted now.
func (p *publisher) snapshot(name string) *weftv1.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	blocked := &weftv1.Set{Name: "blocked", Type: "ipv4_addr", Flags: []string{"interval"}}
	for _, key := range p.keys {
		blocked.Elements = append(blocked.Elements, &weftv1.Element{Key: key})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
		Family: "inet", Name: "example", Sets: []*weftv1.Set{blocked},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop", Comment: "example: deny list"}},
		}},
	}}}
}
