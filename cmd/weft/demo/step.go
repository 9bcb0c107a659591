package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// step is one thing that the demo shows.
type step struct {
	name string
	// expect says what ought to be observed.
	expect string
	// run does it and says in words what was observed. An error means that it
	// is not what was expected; a skipped error that it can't be observed here.
	run func(d *demo, ctx context.Context) (observed string, err error)
	// needed is true for a step without which the others mean nothing.
	needed bool
}

// skipped is why a step can't be run on this machine.
type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

// run runs the steps in order and prints each, then the ruleset.
func (d *demo) run(ctx context.Context) error {
	began := time.Now()
	fmt.Fprintln(d.out, "weft demo: two nodes, three servers and three clients in pods, one client outside;")
	fmt.Fprintln(d.out, "every one a network namespace, every weft a process of its own")
	fmt.Fprintln(d.out)
	count := map[string]int{}
	for i, s := range steps {
		start := time.Now()
		observed, err := s.run(d, ctx)
		verdict := "PASS"
		var skip *skipped
		switch {
		case errors.As(err, &skip):
			verdict, observed = "SKIP", skip.why
		case err != nil:
			verdict = "FAIL"
			observed = strings.TrimPrefix(observed+"; "+err.Error(), "; ")
		}
		count[verdict]++
		fmt.Fprintf(d.out, "%s %2d  %s (%s)\n", verdict, i+1, s.name, time.Since(start).Round(time.Millisecond))
		fmt.Fprintf(d.out, "         expected  %s\n         observed  %s\n", s.expect, observed)
		if ctx.Err() != nil {
			return fmt.Errorf("demo stopped: %w", context.Cause(ctx))
		}
		if verdict == "FAIL" && s.needed {
			break
		}
	}
	fmt.Fprintln(d.out)
	d.printRuleset(ctx)
	fmt.Fprintf(d.out, "%d passed, %d failed, %d skipped, in %s\n", count["PASS"], count["FAIL"], count["SKIP"], time.Since(began).Round(time.Millisecond))
	if n := count["FAIL"]; n > 0 {
		return fmt.Errorf("%w: %d of %d steps", errFailed, n, len(steps))
	}
	return nil
}

// steps are all that the demo shows, in an order that they depend on.
var steps = []step{
	{
		name:   "weft run starts on both nodes, on a directory of manifests",
		expect: "it listens on its socket, and what it publishes is committed",
		run:    (*demo).startAll, needed: true,
	},
	{
		name:   "a pod to a ClusterIP, over TCP and UDP",
		expect: "web-1, web-2 and web-3 all answer, and see the pod's own address",
		run:    (*demo).clusterIP, needed: true,
	},
	{
		name:   "IPv6 from a pod to a ClusterIP, over TCP and UDP",
		expect: "web-1, web-2 and web-3 all answer, and see the pod's own address",
		run:    (*demo).clusterIPOverIPv6,
	},
	{
		name:   "a client outside of the cluster to a NodePort of each node, over TCP and UDP",
		expect: "all servers answer, also those of the other node, and see an address of the node in place of the client's",
		run:    (*demo).nodePort,
	},
	{
		name:   "a NetworkPolicy of the cluster lets shell-1 reach web, and not shell-2",
		expect: "shell-1 reaches the pods of web on both nodes, shell-2 none",
		run:    (*demo).isolateWeb,
	},
	{
		name:   "the NetworkPolicy lets shell-2 reach web, too",
		expect: "both get through; the policy stays in force until the end",
		run:    (*demo).admitShell,
	},
	{
		name:   "another process publishes a policy over the socket: a set of denied pods, with shell-1 in it",
		expect: "shell-1 reaches nothing any more, shell-2 does",
		run:    (*demo).publishPolicy, needed: true,
	},
	{
		name:   "the policy process patches its set: shell-2 in place of shell-1",
		expect: "shell-1 gets through again, shell-2 does not",
		run:    (*demo).patchPolicy,
	},
	{
		name:   "an endpoint leaves, while a UDP client keeps sending to it from one source port",
		expect: "another server answers the client within a second; the TCP connection to a server that stays is not touched",
		run:    (*demo).removeEndpoint,
	},
	{
		name:   "another program changes weft's tables: nft add, delete, flush",
		expect: "each is refused: operation not permitted",
		run:    (*demo).refuseOthers,
	},
	{
		name:   "another program flushes everything: nft flush ruleset",
		expect: "new flows are made all the time, and none fails; the TCP connection stays up",
		run:    (*demo).foreignFlush,
	},
	{
		name:   "kill -9 of weft",
		expect: "new flows are made all the time, and none fails; the TCP connection stays up",
		run:    (*demo).killWeft,
	},
	{
		name:   "weft starts again",
		expect: "it commits nothing: every rule keeps its handle, every element stays, the kernel counts no change but the takeover",
		run:    (*demo).restartWeft,
	},
	{
		name:   "the restarted weft does its work",
		expect: "the endpoint that was removed comes back and answers; the policy process has reconnected, and a patch takes effect",
		run:    (*demo).afterRestart,
	},
	{
		name:   "the TCP connection of the second step",
		expect: "it is still up, and every byte came back",
		run:    (*demo).streamAtEnd,
	},
}
