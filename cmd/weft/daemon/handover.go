package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/frontends/event"
	"github.com/weft-proxy/weft/nft"
)

const flagHandover = "handover"

const (
	handoverPoll = time.Second
	// consecutive looks with kube-proxy's rules in force
	handoverLooks = 3
	labelPatience = 5 * time.Second
)

const reasonHandover = "WeftHandsOver"

// handover gives the node back to kube-proxy if the Node's label asks for that: weft removes its
// rules once kube-proxy's are in force.
type handover struct {
	label func(context.Context) (string, error)
	// release closes the ports that kube-proxy needs.
	release func()
	// inForce returns why kube-proxy's rules are not in force.
	inForce func(context.Context) error
	// cleanup removes weft's rules, and ends the daemon.
	cleanup func(context.Context) ([]nft.TableID, error)
	event   func(kind, reason, message string)
	log     *slog.Logger
}

func (d *daemon) newHandover() *handover {
	return &handover{
		label: d.cluster.proxyLabel, inForce: newPeerProbe(d.settings.HTTP.metrics).check, cleanup: d.tables.Cleanup,
		release: func() {
			d.releasePorts()
			for _, f := range d.frontends {
				if r, ok := f.(interface{ ReleasePorts() }); ok {
					r.ReleasePorts()
				}
			}
		},
		event: d.cluster.events.Node, log: d.log.With("component", "handover"),
	}
}

func (f *Flags) checkHandover() error {
	switch {
	case !f.handover:
		return nil
	case !f.takeover:
		return cli.Usagef("--%s: it goes with --%s", flagHandover, flagTakeover)
	case f.frontend.manifests != "":
		return cli.Usagef("--%s: it needs an API server, whose Node says which proxy the node has, and not --manifests", flagHandover)
	case f.aggregator.writer.Standby:
		return cli.Usagef("--%s: it does not go with --standby: a weft that takes over needs the rules of the one that ends", flagHandover)
	}
	return nil
}

// proxyLabel returns the node's value of takeover.Label, or "".
func (c *cluster) proxyLabel(ctx context.Context) (string, error) {
	// weft may list and watch Nodes, but not get them.
	nodes, err := c.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + c.nodeName})
	if err != nil {
		return "", fmt.Errorf("read Node %s: %w", c.nodeName, err)
	}
	if len(nodes.Items) == 0 {
		return "", fmt.Errorf("read Node %s: it does not exist", c.nodeName)
	}
	return nodes.Items[0].Labels[takeover.Label], nil
}

// run returns when the daemon is to end. A failed step leaves the rules unchanged.
func (h *handover) run(ctx context.Context, end <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-end:
	}
	within, cancel := context.WithTimeout(ctx, labelPatience)
	defer cancel()
	label, err := h.label(within)
	switch {
	case err != nil:
		h.log.Warn("it is not known which proxy the node is to have: weft's rules stay", "error", err)
		return
	case label == takeover.Weft || label == takeover.Beside:
		return
	}
	h.log.Info("the node is given back: weft's rules are updated until those of kube-proxy are in force", "label", takeover.Label, "value", label)
	h.event(event.Normal, reasonHandover, "weft updates its rules until those of kube-proxy are in force, and then removes them")
	h.release()
	if !h.await(ctx) {
		return
	}
	tables, err := h.cleanup(ctx)
	if err != nil && ctx.Err() == nil {
		h.log.Error("cannot remove weft's rules: run weft cleanup on this node", "error", err)
		return
	}
	h.log.Info("the node is given back: kube-proxy's rules are in force, and weft's are removed", "tables", len(tables))
}

// await returns false if ctx ends first.
func (h *handover) await(ctx context.Context) bool {
	logged := ""
	for looks := 0; looks < handoverLooks; {
		if !cli.Pause(ctx, handoverPoll) {
			return false
		}
		err := h.inForce(ctx)
		if err == nil {
			// The event is sent at the first look, because the end does not wait for events.
			if looks++; looks == 1 {
				h.event(event.Normal, takeover.ReasonHandedOver, "the rules of kube-proxy are in force, those of weft go")
			}
			continue
		}
		looks = 0
		if err.Error() != logged && !errors.Is(err, context.Canceled) {
			logged = err.Error()
			h.log.Info("weft's rules stay for now", "reason", err)
		}
	}
	return true
}
