package explain

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

const flagUID = "uid"

// New returns the command.
func New() *cobra.Command {
	var (
		conn   cli.Connection
		q      Question
		output cli.Output
		uid    uint32
	)
	cmd := &cobra.Command{
		Use:   "explain --from POD|ADDRESS|node|outside --to SERVICE|ADDRESS[:PORT]",
		Short: "Say what happens to a packet: which rules it passes, whose they are, and where it goes",
		Long: `Say what happens to the first packet of a connection. The rules of all programs
in the kernel are evaluated, and routes and addresses are those of this node;
nothing is sent, and nothing is changed.

--from is "node" for this node itself, "outside" for a client beyond the default
route, an address, or a pod of this node as NAMESPACE/NAME. --to is an address
with a port, a Service as NAMESPACE/NAME:PORT, where PORT is a number or a name,
or pod/NAMESPACE/NAME:PORT.

Where the kernel chooses at random, all ways are listed. Where something is not
known, the answer says what. It has to run in the network namespace of the node,
with CAP_NET_ADMIN. With --ruleset only the routes are those of the kernel.`,
		Example: `  weft explain --from shop/client --to shop/web:80
  weft explain --from outside --to 192.0.2.1:30080
  weft explain --from 10.244.1.5 --to 10.96.0.10:53 --protocol udp
  weft explain --from node --to 10.244.2.7:8080 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed(flagUID) {
				if q.From != wordNode {
					return cli.Usagef("--%s: it goes with --from %s: packets of others have no user", flagUID, wordNode)
				}
				q.UID = &uid
			}
			answer, err := Ask(cmd.Context(), conn, q)
			if err != nil {
				return err
			}
			return output.Write(cmd.OutOrStdout(), answer, func() error { return Print(cmd.OutOrStdout(), answer) })
		},
	}
	conn.AddFlags(cmd)
	set := cmd.Flags()
	set.StringVar(&q.From, "from", "", "where the packet comes from")
	set.StringVar(&q.To, "to", "", "where it is sent to")
	// Errors are unknown flags.
	_ = cmd.RegisterFlagCompletionFunc("from", get.CompletePods(&conn))
	_ = cmd.RegisterFlagCompletionFunc("to", get.CompleteServices(&conn))
	set.StringVar(&q.Protocol, "protocol", "", `tcp, udp, sctp or icmp (default: that of the Service's port, or "tcp")`)
	set.StringVar(&q.In, "interface", "", "interface through which it comes in (default: that of the route to its source)")
	set.Uint16Var(&q.Port, "source-port", 40000, "source port of the packet")
	set.BoolVar(&q.IPv6, "ipv6", false, "prefer IPv6 if both ends have both")
	set.Uint32Var(&q.Mark, "mark", 0, "mark of the packet when it arrives")
	set.Uint32Var(&uid, flagUID, 0, "with --from node: the user whose process sends it, for rules that ask")
	set.StringVar(&q.Ruleset, "ruleset", "", `file with a ruleset to evaluate instead of the kernel's, as "nft list ruleset" prints it`)
	output.AddFlag(cmd, "text", "json", "yaml")
	return cmd
}
