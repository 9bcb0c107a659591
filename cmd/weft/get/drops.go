package get

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// namesAge is the age up to which pods' names are used.
const namesAge = 2 * time.Second

type dropsFlags struct {
	conn   cli.Connection
	output cli.Output
	follow bool
	file   string
}

func newDropsCmd() *cobra.Command {
	f := &dropsFlags{}
	cmd := &cobra.Command{
		Use:   "drops",
		Short: "Show packets that network policies dropped, with the names of pods",
		Long: `Show the packets that network policies dropped and the kernel logged, with the pods
of this node that have the addresses now. The frontend must run with
--policy-drop-log, which limits how many packets are logged; without it, this fails.

It reads the kernel's log, for which it needs to be root, or another log that has
the kernel's messages.`,
		Example: `  weft get drops
  weft get drops -f
  journalctl -kf | weft get drops --file -`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for further packets")
	cmd.Flags().StringVar(&f.file, "file", "", "file to read in place of the kernel's log; - is the standard input")
	f.conn.AddFlags(cmd)
	f.output.AddFlag(cmd, "text", "json")
	return cmd
}

func (f *dropsFlags) run(ctx context.Context, stdin io.Reader, out, stderr io.Writer) error {
	names := &podNames{read: func() ([]*PodView, error) { return ReadPods(ctx, &f.conn) }, stderr: stderr}
	logged, stateErr := readDropLog(ctx, &f.conn)
	off := stateErr == nil && logged == 0
	printed := false
	err := f.read(ctx, stdin, f.follow && !off, func(line string) error {
		p, ok := parseDrop(line)
		if !ok {
			return nil
		}
		printed = true
		p.From.Pod, p.To.Pod = names.of(p.From.Address), names.of(p.To.Address)
		if f.output.Format == "json" {
			return json.NewEncoder(out).Encode(p)
		}
		_, err := fmt.Fprintln(out, p.String())
		return err
	})
	switch {
	case err != nil || printed && !(f.follow && off):
		return err
	case off:
		return errNotLogged
	default:
		return stateErr
	}
}

var errNotLogged = errors.New("dropped packets are not logged: restart the frontend with --policy-drop-log=N to log N packets a second for each set of policies; the metric weft_policy_dropped_packets_total counts all")

func (f *dropsFlags) read(ctx context.Context, stdin io.Reader, follow bool, each func(line string) error) error {
	if f.file == "" {
		return readKernelLog(ctx, follow, each)
	}
	if f.follow && f.file != "-" {
		return cli.Usagef("-f follows the kernel's log: for a file use tail -f FILE | weft get drops --file -")
	}
	if f.file != "-" {
		log, err := os.Open(f.file)
		if err != nil {
			return cli.Usagef("--file: %v", err)
		}
		defer log.Close()
		stdin = log
	}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && ctx.Err() == nil {
		if err := each(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// podNames has names of this node's pods by address.
type podNames struct {
	read   func() ([]*PodView, error)
	stderr io.Writer
	names  map[netip.Addr]string
	at     time.Time
	failed bool
}

// of uses old names while the frontend does not answer.
func (n *podNames) of(addr netip.Addr) string {
	if time.Since(n.at) > namesAge {
		n.at = time.Now()
		pods, err := n.read()
		if err == nil {
			n.names, n.failed = addressesOf(pods), false
		} else if !n.failed {
			n.failed = true
			fmt.Fprintf(n.stderr, "weft: no names of pods: %v\n", err)
		}
	}
	return n.names[addr]
}

// addressesOf joins the names of pods with the same address by ",".
func addressesOf(pods []*PodView) map[netip.Addr]string {
	out := make(map[netip.Addr]string)
	for _, p := range pods {
		for _, text := range p.Addresses {
			if addr, err := netip.ParseAddr(text); err == nil {
				out[addr] = strings.TrimPrefix(out[addr]+","+p.Text(), ",")
			}
		}
	}
	return out
}
