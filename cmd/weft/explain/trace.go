package explain

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
)

const (
	tracePublisher = "weft-trace"
	maxTrace       = 10 * time.Minute
	maxTraced      = 10_000
	maxRate        = 1000
	// traceGrace is the rules' time to live after --time.
	traceGrace   = 2 * time.Second
	withdrawTime = 5 * time.Second
)

type tracing struct {
	conn          cli.Connection
	selection     selection
	count         int
	patience      time.Duration
	json          bool
	out, progress io.Writer
}

// NewTrace returns the command "weft trace".
func NewTrace() *cobra.Command {
	var t tracing
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "trace [--from POD|ADDRESS|node|outside] [--to SERVICE|ADDRESS[:PORT]]",
		Short: "Show which rules real packets pass, as they pass them, and whose these are",
		Long: `Show which rules real packets pass in the kernel, as they pass them: of all programs, with
the fragment of weft's rules. weft explain says what would happen to a packet; weft
trace shows what happens.

Packets are selected by rules that weft trace publishes for the time that it runs, at most
--rate packets a second, and that are removed at its end, also if it is killed. It needs
root, in the network namespace of the node. --from and --to are those of weft explain;
the packet is selected as it arrives, before its addresses are translated.`,
		Example: `  weft trace --to shop/web:80
  weft trace --from 10.244.1.5 --protocol udp --count 3
  weft trace --from node --to 10.96.0.1:443 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t.json, t.out, t.progress = output.Format == "json", cmd.OutOrStdout(), cmd.ErrOrStderr()
			return t.run(cmd.Context())
		},
	}
	t.conn.AddFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&t.selection.from, "from", "", "where the packets come from")
	set.StringVar(&t.selection.to, "to", "", "where they are sent to")
	// Errors are unknown flags.
	_ = cmd.RegisterFlagCompletionFunc("from", get.CompletePods(&t.conn))
	_ = cmd.RegisterFlagCompletionFunc("to", get.CompleteServices(&t.conn))
	set.StringVar(&t.selection.protocol, "protocol", "", "tcp, udp, sctp or icmp (default: that of the Service's port, or all)")
	set.StringVar(&t.selection.in, "interface", "", "interface through which they come in")
	set.IntVar(&t.selection.rate, "rate", 10, "select at most so many packets a second")
	set.IntVarP(&t.count, "count", "n", 10, "end after so many packets")
	set.DurationVar(&t.patience, "time", 30*time.Second, "end after this time, at most 10m")
	output.AddFlag(cmd, "text", "json")
	return cmd
}

func (t *tracing) check() error {
	switch {
	case t.selection.from == "" && t.selection.to == "":
		return cli.Usagef("weft trace: name the packets with --from or --to")
	case strings.ContainsAny(t.selection.in, "\"\\*") || len(t.selection.in) >= unix.IFNAMSIZ:
		return cli.Usagef("--interface %q: this is not the name of an interface", t.selection.in)
	case t.count < 1 || t.count > maxTraced:
		return cli.Usagef("--count %d: want 1 to %d", t.count, maxTraced)
	case t.patience <= 0 || t.patience > maxTrace:
		return cli.Usagef("--time %v: want more than 0 and at most %v", t.patience, maxTrace)
	case t.selection.rate < 1 || t.selection.rate > maxRate:
		return cli.Usagef("--rate %d: want 1 to %d", t.selection.rate, maxRate)
	}
	return nil
}

func (t *tracing) run(ctx context.Context) error {
	if err := t.check(); err != nil {
		return err
	}
	conn, err := kernel.Open(kernel.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	// Before the rules, so that no event is missed.
	events, err := conn.Trace(ctx)
	if err != nil {
		return err
	}
	reader, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	a := &asker{conn: t.conn, host: newHost()}
	fragment, err := t.fragment(ctx, a)
	if err != nil {
		return err
	}
	remove, err := t.publish(ctx, fragment)
	if err != nil {
		return err
	}
	defer remove()
	read := func() (*eval.Ruleset, error) { return load.Kernel(reader) }
	if a.rules, err = read(); err != nil {
		return err
	}
	fmt.Fprintf(t.progress, "tracing for %v or %d packets: %s\n", t.patience, t.count, t.selection.describe())
	c := &collector{asker: a, load: read, own: fragment.GetName(), print: t.print, left: t.count}
	return c.run(ctx, events)
}

func (t *tracing) fragment(ctx context.Context, a *asker) (*weftv1.Fragment, error) {
	name := "weft-trace-" + strings.ToLower(rand.Text()[:8])
	text, err := t.selection.rules(ctx, a, name)
	if err != nil {
		return nil, err
	}
	return &weftv1.Fragment{
		Name: name, Nft: text, Lifetime: weftv1.Lifetime_LIFETIME_SESSION,
		Expiration: &weftv1.Fragment_Ttl{Ttl: durationpb.New(t.patience + traceGrace)},
	}, nil
}

// publish uses a session with a time to live: weft removes the rules when this process ends.
func (t *tracing) publish(ctx context.Context, f *weftv1.Fragment) (remove func(), err error) {
	cl, err := client.Dial(ctx, client.Config{Socket: t.conn.Socket, Publisher: cmp.Or(t.conn.Publisher, tracePublisher)})
	if err != nil {
		return nil, err
	}
	s := cl.Session(client.SessionConfig{})
	remove = func() {
		ctx, cancel := context.WithTimeout(context.Background(), withdrawTime)
		defer cancel()
		if _, err := s.Withdraw(ctx, f.GetName()); err != nil {
			fmt.Fprintf(t.progress, "weft: the rules that select packets stay for %v at most: %v\n", t.patience+traceGrace, err)
		}
		_, _ = s.Close(), cl.Close()
	}
	if _, err := s.Put(ctx, f); err != nil {
		remove()
		return nil, fmt.Errorf("select packets: %w", err)
	}
	return remove, nil
}

func (t *tracing) print(p *Traced) error {
	if t.json {
		return json.NewEncoder(t.out).Encode(p)
	}
	fmt.Fprintf(t.out, "%s %s from %s to %s through %s%s\n", p.Time.Local().Format("15:04:05.000"), p.Protocol, p.From, p.To, cmp.Or(p.In, wordNode), prefixed(", ", p.Flags))
	printSteps(t.out, p.Steps)
	_, err := fmt.Fprintf(t.out, "  %s%s\n\n", p.Sentence, prefixed("\n  By ", p.By))
	return err
}
