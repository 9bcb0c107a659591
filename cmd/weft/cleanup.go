package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/nft/kernel"
)

func newCleanupCmd() *cobra.Command {
	var (
		socket           string
		kubeProxy, force bool
		drain            time.Duration
	)
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every table that weft made in this network namespace, and end weft if it runs; or the rules of kube-proxy",
		Long: `Remove every table of weft in this network namespace, in one transaction. Tables
of other programs are not touched.

A running weft that answers on the socket removes its tables itself, and ends.
Without --socket it must be one of this network namespace.
Durable fragments stay in its state directory and are published again when weft
starts: delete them first if you do not want that.

With --kube-proxy, remove the rules that kube-proxy left behind instead; weft and
its tables do not change. To take over a node without losing a packet, start weft,
wait until it is ready, stop kube-proxy, and then run this. It refuses to run
while weft's own rules are missing. After mode ipvs it waits until connections
through IPVS have ended, but not longer than --drain. Virtual servers, addresses
and sets of other programs stay, and are named.`,
		Example: `  weft cleanup
  weft cleanup --kube-proxy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeProxy {
				return removeKubeProxy(cmd.Context(), cmd.OutOrStdout(), force, drain)
			}
			if force {
				return cli.Usagef("--force: it goes with --kube-proxy")
			}
			if !cmd.Flags().Changed("socket") {
				if err := checkNetwork(socket); err != nil {
					return err
				}
			}
			tables, daemon, err := cleanUp(cmd.Context(), socket)
			if err != nil {
				return err
			}
			printCleanup(cmd.OutOrStdout(), tables, daemon)
			return nil
		},
	}
	cmd.Flags().StringVar(&socket, "socket", client.DefaultSocket, "path of the Unix socket of a running weft, if there is one")
	cmd.Flags().BoolVar(&kubeProxy, "kube-proxy", false, "remove the rules of kube-proxy, and not those of weft")
	cmd.Flags().BoolVar(&force, "force", false, "with --kube-proxy: even if weft's own rules for Services are missing")
	cmd.Flags().DurationVar(&drain, "drain", takeover.Drain, "with --kube-proxy: how long connections through IPVS may go on before they are ended")
	return cmd
}

func removeKubeProxy(ctx context.Context, w io.Writer, force bool, drain time.Duration) error {
	for start, waited := time.Now(), false; ; waited = true {
		report, err := takeover.Remove(ctx, takeover.Config{Force: force, Cut: time.Since(start) >= drain})
		printTakeover(w, report, err, waited)
		if !errors.Is(err, takeover.ErrWaiting) {
			return err
		}
		if !waited {
			fmt.Fprintln(w, err)
		}
		if !cli.Pause(ctx, time.Second) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// checkNetwork rejects a weft in another network namespace, such as the host's.
func checkNetwork(socket string) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil //nolint:nilerr // no weft listens, or whoever asks it says why it does not answer
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) //nolint:gosec // a descriptor
	if err = errors.Join(err, asked); err != nil {
		return fmt.Errorf("ask who listens at %s: %w", socket, err)
	}
	if err := sameNetwork(cred.Pid); err != nil {
		return fmt.Errorf("the weft at %s: %w: name the socket of the weft that is to end with --socket; if none runs here, name a path without one", socket, err)
	}
	return nil
}

func sameNetwork(pid int32) error {
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	switch of, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); {
	case err != nil:
		return fmt.Errorf("it is not known whether it is of this network namespace: %w", err)
	case of != own:
		return fmt.Errorf("its process %d is of another network namespace", pid)
	}
	return nil
}

// cleanUp asks a running weft (daemon is true), or removes the tables itself.
func cleanUp(ctx context.Context, socket string) (tables []string, daemon bool, err error) {
	tables, err = cli.Ask(ctx, client.Config{Socket: socket, DialTimeout: -1}, func(c *client.Client) ([]string, error) { return c.Cleanup(ctx) })
	// No weft listens, or it stands by.
	if !errors.Is(err, client.ErrUnavailable) {
		return tables, true, err
	}
	tables, err = cleanKernel(socket)
	return tables, false, err
}

// cleanKernel removes weft's tables unless a process other than "weft hold" owns them.
func cleanKernel(socket string) ([]string, error) {
	lease := server.NewLease(server.HoldSocket(socket), slog.New(slog.DiscardHandler))
	conn, err := kernel.Open(kernel.Config{Inherit: lease.Inherit})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	tables, err := conn.Adopt()
	if err != nil {
		if errors.As(err, new(*kernel.OwnedError)) {
			err = fmt.Errorf("%w: name its socket with --socket, or stop it first", err)
		}
		return nil, err
	}
	if len(tables) == 0 {
		return nil, nil
	}
	names, ops := make([]string, len(tables)), make([]kernel.Op, len(tables))
	for i, t := range tables {
		names[i], ops[i] = t.ID.String(), kernel.DeleteTable{Table: t.ID}
	}
	if _, err := conn.Commit(ops); err != nil {
		return nil, fmt.Errorf("remove tables: %w", err)
	}
	return names, nil
}

func printCleanup(w io.Writer, tables []string, daemon bool) {
	for _, t := range tables {
		fmt.Fprintf(w, "removed table %s\n", t)
	}
	if len(tables) == 0 {
		fmt.Fprintln(w, "nothing to remove")
	}
	if daemon {
		fmt.Fprintln(w, "weft has ended; durable fragments stay in its state directory")
	}
}

func printTakeover(w io.Writer, report takeover.Report, err error, again bool) {
	for _, what := range report.Removed {
		fmt.Fprintf(w, "removed %s\n", what)
	}
	if len(report.Removed) == 0 && err == nil && !again {
		fmt.Fprintln(w, "no rules of kube-proxy found")
	}
	for _, notice := range report.Notices {
		fmt.Fprintf(w, "note: %s\n", notice)
	}
}
