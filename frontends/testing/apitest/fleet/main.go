package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

const (
	policyWeft   = "weft"
	policyCapped = "capped"
)

type config struct {
	server, ca, token, policy string
	nodes                     int
}

func main() { os.Exit(start(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func start(args []string, in io.Reader, out, errs io.Writer) int {
	var cfg config
	set := flag.NewFlagSet("fleet", flag.ContinueOnError)
	set.SetOutput(errs)
	set.StringVar(&cfg.server, "server", "", "`URL` of the API server")
	set.StringVar(&cfg.ca, "ca", "", "`file` with the certificate of the API server's authority")
	set.StringVar(&cfg.token, "token", "", "bearer `token` for the API server")
	set.StringVar(&cfg.policy, "policy", policyWeft, "how nodes retry: weft, or capped as in commit 238984c")
	set.IntVar(&cfg.nodes, "nodes", 100, "`number` of nodes")
	if err := set.Parse(args); err != nil {
		return 2
	}
	if err := run(cfg, in, out); err != nil {
		fmt.Fprintln(errs, "fleet:", err)
		return 1
	}
	return 0
}

func run(cfg config, in io.Reader, out io.Writer) error {
	node, err := cfg.node()
	if err != nil {
		return err
	}
	klog.SetLogger(logr.Discard())
	f, err := newFront(cfg)
	if err != nil {
		return err
	}
	f.open()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		return f.obey(in)
	})
	g.Go(func() error { return f.report(ctx, out) })
	for i := range cfg.nodes {
		g.Go(func() error { return node(ctx, fmt.Sprintf("node-%d", i), f.dial) })
	}
	return g.Wait()
}

func (f *front) obey(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch line := lines.Text(); line {
		case "open":
			f.open()
		case "close":
			f.close()
		default:
			return fmt.Errorf("unknown command %q: want open or close", line)
		}
	}
	return lines.Err()
}

func (f *front) report(ctx context.Context, out io.Writer) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var arrivedBefore, refusedBefore int64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		arrived, refused := f.arrived.Load(), f.refused.Load()
		if _, err := fmt.Fprintln(out, arrived-arrivedBefore, refused-refusedBefore, f.watches.Load()); err != nil {
			return err
		}
		arrivedBefore, refusedBefore = arrived, refused
	}
}
