package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

type step struct {
	name   string
	expect string
	// run returns the observation, an error if it was unexpected, or a skipped error.
	run func(d *demo, ctx context.Context) (observed string, err error)
	// A failure ends the demo.
	needed bool
}

type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

func (d *demo) run(ctx context.Context, steps []step) error {
	began := time.Now()
	fmt.Fprintln(d.out, "weft demo: two nodes with pods, and a client outside the cluster, as network namespaces; weft runs on each node.")
	fmt.Fprintln(d.out, "The Service web has the pods web-1 and web-2 on node-1, and web-3 on node-2.")
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
			observed += d.logs(observed)
		}
		count[verdict]++
		took := time.Since(start).Round(time.Millisecond)
		if d.verbose || verdict == "FAIL" {
			fmt.Fprintf(d.out, "%s %2d  %s (%s)\n         expected  %s\n         observed  %s\n", verdict, i+1, s.name, took, s.expect, observed)
		} else {
			fmt.Fprintf(d.out, "%s %2d  %s: %s (%s)\n", verdict, i+1, s.name, observed, took)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("demo stopped: %w", context.Cause(ctx))
		}
		if verdict == "FAIL" && s.needed {
			break
		}
	}
	fmt.Fprintln(d.out)
	if d.verbose {
		d.printRuleset(ctx)
	}
	fmt.Fprintf(d.out, "%d passed, %d failed, %d skipped, in %s\n", count["PASS"], count["FAIL"], count["SKIP"], time.Since(began).Round(time.Millisecond))
	if n := count["FAIL"]; n > 0 {
		return fmt.Errorf("%w: %d of %d steps: weft demo -v also prints the rules", errFailed, n, len(steps))
	}
	return nil
}

// steps depend on their order.
var steps = []step{
	{
		name:   "weft starts on both nodes, with Services from manifests",
		expect: "the rules of all Services are in the kernel",
		run:    (*demo).startAll, needed: true,
	},
	{
		name:   "a pod connects to a ClusterIP over TCP and UDP",
		expect: "web-1, web-2 and web-3 all answer, and see the pod's own address",
		run:    (*demo).clusterIP, needed: true,
	},
	{
		name:   "a pod connects to an IPv6 ClusterIP over TCP and UDP",
		expect: "web-1, web-2 and web-3 all answer, and see the pod's own address",
		run:    (*demo).clusterIPOverIPv6,
	},
	{
		name:   "a client outside the cluster connects to the NodePorts of each node",
		expect: "all servers answer, also those of the other node, and see an address of the node in place of the client's",
		run:    (*demo).nodePort,
	},
	{
		name:   "a NetworkPolicy lets the pod shell-1 connect to web, and not shell-2",
		expect: "shell-1 reaches the pods of web on both nodes, shell-2 none",
		run:    (*demo).isolateWeb,
	},
	{
		name:   "the NetworkPolicy is changed to let shell-2 connect, too",
		expect: "both get through; the NetworkPolicy stays in force until the end",
		run:    (*demo).admitShell,
	},
	{
		name:   "another agent on node-1 publishes a deny list through weft, with the pod shell-1 in it",
		expect: "shell-1 does not reach the Service any more, shell-2 does",
		run:    (*demo).publishPolicy, needed: true,
	},
	{
		name:   "the agent puts shell-2 on its deny list in place of shell-1",
		expect: "shell-1 gets through again, shell-2 does not",
		run:    (*demo).patchPolicy,
	},
	{
		name:   "an endpoint is removed while a UDP client keeps sending to it from one source port",
		expect: "another server answers the client within a second; the TCP connection to a server that stays is not touched",
		run:    (*demo).removeEndpoint,
	},
	{
		name:   "another program tries to change weft's rules",
		expect: "each is refused: operation not permitted",
		run:    (*demo).refuseOthers,
	},
	{
		name:   "another program runs nft flush ruleset, under traffic",
		expect: "new flows are made all the time, and none fails; the TCP connection stays up",
		run:    (*demo).foreignFlush,
	},
	{
		name:   "weft is killed with kill -9, under traffic",
		expect: "new flows are made all the time, and none fails; the TCP connection stays up",
		run:    (*demo).killWeft,
	},
	{
		name:   "weft starts again, under traffic",
		expect: "it changes no rule: every rule keeps its handle, every element stays, and the only commit is the takeover of the tables",
		run:    (*demo).restartWeft,
	},
	{
		name:   "the endpoint is added again, and the agent changes its deny list, after the restart",
		expect: "the endpoint answers; the agent has reconnected, and its change takes effect",
		run:    (*demo).afterRestart,
	},
	{
		name:   "the TCP connection that step 2 opened",
		expect: "it is still up, and every byte came back",
		run:    (*demo).streamAtEnd,
	},
}
