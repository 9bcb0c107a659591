// Command takeover does one thing that a process of weft could be made to do, and fails if it may not.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	do, arg := os.Args[1], os.Args[len(os.Args)-1]
	var err error
	switch do {
	case "nft":
		err = writeTable()
	case "conntrack":
		err = deleteEntry(ctx)
	case "flows":
		err = ask(ctx, deleteFlow)
	case "cleanup":
		err = ask(ctx, func(ctx context.Context, c *client.Client) error {
			_, err := c.Cleanup(ctx)
			return err
		})
	case "read":
		_, err = os.ReadFile(arg)
	case "write":
		err = os.WriteFile(arg, nil, 0o600)
	case "signal":
		var pid int
		if pid, err = strconv.Atoi(arg); err == nil {
			err = syscall.Kill(pid, 0)
		}
	default:
		err = fmt.Errorf("unknown %q", do)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// writeTable adds a table, and removes it.
func writeTable() error {
	c, err := kernel.Open(kernel.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	table := nft.TableID{Family: nft.FamilyIP, Name: "takeover"}
	for _, op := range []kernel.Op{kernel.AddTable{Table: table}, kernel.DeleteTable{Table: table}} {
		if _, err := c.Commit([]kernel.Op{op}); err != nil {
			return err
		}
	}
	return nil
}

// errNone is a table of connection tracking without entries.
var errNone = errors.New("connection tracking has no entry")

// deleteEntry deletes entries of connection tracking.
func deleteEntry(ctx context.Context) error {
	c, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	var all []conntrack.Entry
	if err := c.List(ctx, conntrack.SelectAll(), func(e *conntrack.Entry) error {
		all = append(all, *e)
		return nil
	}); err != nil {
		return err
	}
	if len(all) == 0 {
		return errNone
	}
	_, err = c.Delete(ctx, all[:1])
	return err
}

// ask calls f with a connection to the aggregator.
func ask(ctx context.Context, f func(context.Context, *client.Client) error) error {
	c, err := client.Dial(ctx, client.Config{Socket: "/run/weft/weft.sock"})
	if err != nil {
		return err
	}
	defer c.Close()
	return f(ctx, c)
}

// deleteFlow deletes an entry of connection tracking through the aggregator.
func deleteFlow(ctx context.Context, c *client.Client) error {
	var all []client.Flow
	if err := c.ListAllFlows(ctx, func(part []client.Flow) error {
		all = append(all, part...)
		return nil
	}); err != nil {
		return err
	}
	if len(all) == 0 {
		return errNone
	}
	_, err := c.DeleteFlows(ctx, all[:1])
	return err
}
