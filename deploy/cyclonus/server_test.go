package cyclonus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/objects"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// apiServer is an API server in place of the manifests.
type apiServer struct {
	*apitest.Server
	// away is true while it is stopped, disturbed if connections have ended since followed.
	away, disturbed bool
	outages         int
}

// follow restarts weft on all nodes with an API server that has the objects.
func (w *world) follow(c *policytest.Cluster) (*apiServer, error) {
	address := netip.AddrPortFrom(w.lab.Control.Addresses.V4, 6443).String()
	s, err := apitest.Start(net.Listen, address)
	if err != nil {
		return nil, err
	}
	s.Install(objects.NewScheme())
	a := &apiServer{Server: s}
	a.apply(c.Objects())
	config := filepath.Join(runDir, "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u}], clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}"
	errs := []error{os.WriteFile(config, fmt.Appendf(nil, text, "http://"+address), 0o600)}
	for i, d := range w.daemons {
		errs = append(errs, d.stop(i%2 == 0))
		if w.daemons[i], err = newDaemon(d.node, i == 1, "--kubeconfig", config); err == nil {
			err = w.daemons[i].start()
		}
		errs = append(errs, err)
	}
	return a, errors.Join(errs...)
}

func (a *apiServer) apply(changes []policytest.Change) {
	for _, c := range changes {
		if c.New != nil {
			a.Set(c.New.(apitest.Object))
		} else {
			a.Delete(c.Old.(apitest.Object))
		}
	}
}

// disturb closes the connections of all watches, or stops the API server until the next call. Sometimes
// the watches are then too old, and list again.
func (a *apiServer) disturb(rng *rand.Rand) error {
	a.disturbed = true
	a.Forget()
	switch {
	case a.away:
		if rng.IntN(2) == 0 {
			a.Compact()
		}
		a.away = false
		return a.Start()
	case rng.IntN(2) == 0:
		a.Compact()
		a.Cut()
	default:
		a.Stop()
		a.away = true
		a.outages++
	}
	return nil
}

// followed waits until all nodes follow policies, pods and namespaces again. Otherwise a late change
// would fall into the next epoch, which did not plan it.
func (a *apiServer) followed(ctx context.Context, nodes int) error {
	if !a.disturbed {
		return nil
	}
	a.disturbed = false
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	const idle = 500 * time.Millisecond
	before, since := 0, time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all, missing := 0, false
		for _, resource := range []string{"pods", "namespaces", "networkpolicies", "clusternetworkpolicies"} {
			n := 0
			for _, r := range a.Requests(resource) {
				if r.Verb == "watch" || r.Verb == "stream" {
					n++
				}
			}
			all, missing = all+n, missing || n < nodes
		}
		if all != before {
			before, since = all, time.Now()
		}
		if !missing && time.Since(since) > idle {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("the nodes do not follow the API server again")
		}
	}
}
