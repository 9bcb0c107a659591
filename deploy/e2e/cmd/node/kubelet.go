package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"

	"github.com/weft-proxy/weft/deploy/e2e/node"
)

func runKubelet(args []string, stderr io.Writer) error {
	cfg, err := parseKubelet(args, stderr)
	if err != nil {
		return err
	}
	if err := node.Isolate(cfg.Name); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if cfg.Runtime, err = newRuntime(cfg); err != nil {
		return err
	}
	return node.Run(ctx, cfg)
}

func parseKubelet(args []string, output io.Writer) (node.Config, error) {
	var cfg node.Config
	flags := flag.NewFlagSet("node kubelet", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&cfg.Name, "name", "", "name of the Node object")
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", "", "path of a kubeconfig file")
	flags.StringVar(&cfg.Root, "root", "", "directory for volumes, logs and sockets; a short absolute path")
	flags.Func("node-ips", "addresses of the node, IPv4 and IPv6 with a comma", addresses(&cfg.Addresses))
	flags.Func("cluster-dns", "addresses of the DNS Service, with commas", addresses(&cfg.ClusterDNS))
	if err := flags.Parse(args); err != nil {
		return node.Config{}, err
	}
	if flags.NArg() > 0 {
		return node.Config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return cfg, nil
}

func addresses(list *[]netip.Addr) func(string) error {
	return func(value string) error {
		for s := range strings.SplitSeq(value, ",") {
			addr, err := netip.ParseAddr(s)
			if err != nil {
				return err
			}
			*list = append(*list, addr)
		}
		return nil
	}
}
