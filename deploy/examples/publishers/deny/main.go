// Command example is a small publisher to copy: it keeps a set of weft's ruleset equal to a text file, and
// drops packets from the addresses in the file. The file has an address or prefix per line, and comments after
// a #.
//
//	example --file deny.txt --socket /run/weft/weft.sock --interval 1s
//
// The aggregator rejects a list with a mistake as a whole. The list is sent again after 30 seconds or when
// the file changes. The last committed list stays in force, even after the program ends.
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
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// A rejected list is sent again, because the conflict may be gone.
const retry = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

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
	session := c.Session(client.SessionConfig{})
	defer session.Close()
	var revision uint64
	var problem string
	var rejected []string
	var again time.Time
	for tick := time.NewTicker(*interval); ; {
		keys, err := read(*file)
		if err == nil && (!slices.Equal(keys, rejected) || time.Now().After(again)) {
			// Put sends only differences from the last list.
			last := revision
			if revision, err = session.Put(ctx, fragment(keys)); err != nil {
				rejected, again = keys, time.Now().Add(retry)
			} else if rejected, problem = nil, ""; revision != last {
				log.Info("committed", "revision", revision, "addresses", len(keys))
			}
		}
		if err != nil && ctx.Err() == nil && err.Error() != problem {
			// %+v prints all violations of a rejection, not only the first.
			log.Error("the last good list stays in force", "error", fmt.Sprintf("%+v", err))
			problem = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// read returns each address and prefix once.
func read(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	keys := []string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		keys = append(keys, strings.Fields(line)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys), err
}

func fragment(keys []string) *weftv1.Fragment {
	blocked := &weftv1.Set{Name: "blocked", Type: "ipv4_addr", Flags: []string{"interval"}}
	for _, key := range keys {
		blocked.Elements = append(blocked.Elements, &weftv1.Element{Key: key})
	}
	return &weftv1.Fragment{Name: "deny", Tables: []*weftv1.Table{{
		Family: "inet", Name: "example", Sets: []*weftv1.Set{blocked},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop", Comment: "example: deny list"}},
		}},
	}}}
}
