package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

func newAccessCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "access",
		Short:   "Check a configuration of publishers, without a daemon",
		Example: "  weft access check --config weft.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAccessCheckCmd())
	return cmd
}

func newAccessCheckCmd() *cobra.Command {
	var c accessCheck
	cmd := &cobra.Command{
		Use:   "check --config FILE [--as PUBLISHER|PEER [-f FILE]]",
		Short: "Validate a configuration; show what a publisher may do, and whether a fragment would be admitted",
		Long: `Validate the file of "weft run --config" that says who may publish what. All its
errors are reported, with their lines.

With --as, list what a publisher may do, and which line of the file decides. Name a
publisher, or describe a process: uid:NUMBER, and if the file matches by them
gid:NUMBER, executable:PATH and cgroup:PATH, joined by commas. uid:0 is root with
CAP_NET_ADMIN: name the publisher of a root without it. With -f too, check
whether a .nft file of that publisher would be admitted. It is checked as if it were
the publisher's only fragment. What it refers to must be in the file. No daemon is
asked, so it is not known what other publishers declare: the parts of tables that they
may use too, and for which no entry of allow.shared is a grant, are listed, because the
fragment is refused if another publisher declared one of them first. With a daemon that
has the configuration, "weft plan --publisher PUBLISHER -f FILE" decides.

Exit codes: 0 no errors, 1 the configuration has errors, no publisher matches or the
fragment would be refused, 2 the command line is wrong.`,
		Example: `  weft access check --config weft.yaml
  weft access check --config weft.yaml --as uid:1234,gid:100
  weft access check --config weft.yaml --as cni -f deny.nft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.includes.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&c.config, "config", "", "the configuration")
	cmd.Flags().StringVar(&c.as, "as", "", "a publisher's name, or uid:N[,gid:N][,executable:PATH][,cgroup:PATH]")
	cmd.Flags().StringVarP(&c.file, "file", "f", "", "a .nft file; - reads standard input")
	cmd.Flags().Int32Var(&c.priority, "priority", 0, "priority of the fragment")
	// Errors are unknown flags.
	_ = cmd.MarkFlagFilename("config", "yaml")
	_ = cmd.MarkFlagFilename("file", "nft")
	return cmd
}

type accessCheck struct {
	config, as, file string
	priority         int32
	includes         nftfile.IncludePath
}

func (c *accessCheck) run(stdin io.Reader, stdout io.Writer) error {
	switch {
	case c.config == "":
		return cli.Usagef("weft access check: name the configuration with --config (see weft access check --help)")
	case c.file != "" && c.as == "":
		return cli.Usagef("weft access check: say with --as who publishes %s", c.file)
	}
	control, err := access.Open(access.Options{File: c.config})
	if err != nil {
		return err
	}
	if c.as == "" {
		names := cli.Map(control.Policy().Publishers, func(p *access.Publisher) string { return p.Name })
		_, err := fmt.Fprintf(stdout, "%s: ok, %s: %s\n", c.config, counted(len(names), "publisher"), strings.Join(names, ", "))
		return err
	}
	name, err := c.resolve(control.Policy(), stdout)
	if err != nil {
		return err
	}
	if c.file == "" {
		return printRights(stdout, name, control.Publisher(name))
	}
	bundle, err := c.includes.Read(stdin, c.file)
	if err != nil {
		return err
	}
	return c.admit(control, name, bundle, stdout)
}

func (c *accessCheck) resolve(policy *access.Policy, stdout io.Writer) (string, error) {
	if !strings.Contains(c.as, ":") {
		if policy.Publisher(c.as) == nil {
			return "", fmt.Errorf("%s has no publisher %s: only administrators may act under that name, without limits", c.config, c.as)
		}
		return c.as, nil
	}
	peer, err := parsePeer(c.as)
	if err != nil {
		return "", err
	}
	id, err := policy.Resolve(peer, peer.UID == 0, "")
	if err != nil {
		return "", err
	}
	also := make([]string, 0)
	for _, p := range policy.Publishers {
		if _, err := policy.Resolve(peer, false, p.Name); err == nil && p.Name != id.Publisher {
			also = append(also, p.Name)
		}
	}
	fmt.Fprintf(stdout, "%s acts as publisher %s", c.as, id.Publisher)
	switch {
	case id.Admin:
		fmt.Fprint(stdout, ", and as an administrator may act as every publisher")
	case len(also) > 0:
		fmt.Fprintf(stdout, ", and may act as %s", strings.Join(also, ", "))
	}
	fmt.Fprintln(stdout)
	return id.Publisher, nil
}

func parsePeer(text string) (*access.Peer, error) {
	peer, given := &access.Peer{}, map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(part, ":")
		var err error
		var id uint64
		switch key {
		case "uid":
			id, err = strconv.ParseUint(value, 10, 32)
			peer.UID = uint32(id)
		case "gid":
			id, err = strconv.ParseUint(value, 10, 32)
			peer.GID = uint32(id)
		case "executable":
			peer.Executable = value
		case "cgroup":
			peer.Cgroups = append(peer.Cgroups, value)
		default:
			err = errors.New("unknown key")
		}
		if err != nil {
			return nil, cli.Usagef("--as %s: want uid:NUMBER, gid:NUMBER, executable:PATH and cgroup:PATH, got %q", text, part)
		}
		given[key] = true
	}
	if !given["uid"] {
		return nil, cli.Usagef("--as %s: a process has a uid: add uid:NUMBER", text)
	}
	return peer, nil
}

func printRights(w io.Writer, name string, p *access.Publisher) error {
	if p == nil {
		_, err := fmt.Fprintf(w, "publisher %s is not in the configuration: it has all rights and no limits\n", name)
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintf(tw, "RIGHT OF %s\tVALUE\tDECIDED BY\n", name)
	for _, r := range p.Rights() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Name, r.Value, r.Where)
	}
	return tw.Flush()
}

func (c *accessCheck) admit(control *access.Control, publisher string, bundle *ruleset.Bundle, stdout io.Writer) error {
	key := desired.Key{Publisher: publisher, Name: cmp.Or(nftfile.FragmentName("", c.file), "stdin")}
	state := merge.New()
	b := admission.NewSnapshot(admission.Config{Access: control}, key, state.Scope())
	b.AddFragment(&weftv1.Fragment{Name: key.Name, Priority: c.priority, Nft: bundle.Text})
	update, err := b.Finish()
	note := ""
	var shared []ungranted
	if p := control.Publisher(publisher); err == nil && p != nil {
		if !p.Admin {
			shared = ungrantedParts(control.Policy(), p, update)
		}
		// The state has no other publishers, and so cannot lack grants.
		err = state.ApplyWithin(update, admission.OverLimit(p, key), nil)
		if r := (*desired.Rejection)(nil); errors.As(err, &r) {
			// Another publisher may declare the missing object.
			err, note = nil, fmt.Sprintf(", if other fragments declare what it refers to (%v); limits were not checked", r)
		}
	}
	rejected := (*admission.RejectedError)(nil)
	switch {
	case err == nil:
		fmt.Fprintf(stdout, "fragment %s would be admitted%s\n", key, note)
		printUngranted(stdout, shared)
		return nil
	case !errors.As(err, &rejected):
		return err
	}
	nftfile.Locate(bundle, rejected.Violations)
	fmt.Fprintln(stdout, (&client.RejectedError{Fragment: key.String(), Violations: rejected.Violations}).Detail())
	if !slices.ContainsFunc(rejected.Violations, func(v *weftv1.Violation) bool {
		return v.GetReason() == weftv1.Violation_REASON_PERMISSION || v.GetReason() == weftv1.Violation_REASON_LIMIT
	}) {
		return fmt.Errorf("access check: fragment %s is not valid", key)
	}
	return fmt.Errorf("access check: %s does not admit fragment %s", c.config, key)
}

// ungranted are parts of a table that need a grant if another publisher declared them first.
type ungranted struct {
	table nft.TableID
	// such as "chain input"
	parts []string
	// with access to the table
	publishers []string
	// the deciding line
	where string
}

// ungrantedParts returns parts in all shared tables: only a daemon knows who declared one first.
func ungrantedParts(policy *access.Policy, p *access.Publisher, update *desired.Update) []ungranted {
	var all []ungranted
	for i := range update.Tables {
		tu := &update.Tables[i]
		u := ungranted{table: tu.Table, publishers: othersOf(policy, p, tu.Table)}
		if len(u.publishers) == 0 {
			continue
		}
		for _, at := range merge.PartsOf(tu) {
			if p.Shared(at.Table, at.Kind, at.Name, u.publishers[0]) == nil {
				continue
			}
			if at.Kind == "" {
				u.parts = append(u.parts, "flag dormant")
			} else {
				u.parts = append(u.parts, at.Kind+" "+at.Name)
			}
		}
		if len(u.parts) > 0 {
			u.where = p.Where("allow.shared")
			all = append(all, u)
		}
	}
	return all
}

func othersOf(policy *access.Policy, p *access.Publisher, table nft.TableID) []string {
	var names []string
	for _, other := range policy.Publishers {
		if other != p && other.Table(table) == nil {
			names = append(names, other.Name)
		}
	}
	return names
}

func printUngranted(w io.Writer, all []ungranted) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "It would be refused if another publisher declared one of these parts first (weft plan asks the daemon):")
	for _, u := range all {
		fmt.Fprintf(w, "  table %s, which %s may use: %s: no grant names %s (%s)\n", u.table, strings.Join(u.publishers, ", "),
			strings.Join(u.parts, ", "), map[bool]string{true: "it", false: "them"}[len(u.parts) == 1], u.where)
	}
}
