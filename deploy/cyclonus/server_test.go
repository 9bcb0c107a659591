package cyclonus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/policy/objects"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

const kubeconfig = runDir + "/kubeconfig"

type apiServer struct {
	*apitest.Server
	// objects of the cluster by kind and name
	objects map[string]apitest.Object
	// away is true while it is stopped, disturbed if connections have ended since followed.
	away, disturbed bool
}

// newAPIServer has the lab's nodes, and writes kubeconfig.
func newAPIServer(t *testing.T, l *lab.Lab) *apiServer {
	t.Helper()
	address := netip.AddrPortFrom(l.Control.Addresses.V4, 6443).String()
	s, err := apitest.Start(net.Listen, address)
	must(t, err)
	t.Cleanup(s.Stop)
	s.Install(objects.NewScheme())
	for _, node := range l.Nodes {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name(), UID: types.UID(node.Name())}}
		for _, p := range node.PodCIDRs {
			o.Spec.PodCIDRs = append(o.Spec.PodCIDRs, p.String())
		}
		o.Spec.PodCIDR = o.Spec.PodCIDRs[0]
		for _, addr := range node.Addresses.All() {
			o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
		}
		s.Set(o)
	}
	const text = "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u}], clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}"
	must(t, os.MkdirAll(filepath.Dir(kubeconfig), 0o755))
	must(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, text, "http://"+address), 0o600))
	return &apiServer{Server: s, objects: map[string]apitest.Object{}}
}

// replace makes the cluster's objects the only ones beside the lab's nodes.
func (a *apiServer) replace(c *policytest.Cluster) {
	gone := maps.Clone(a.objects)
	for _, change := range c.Objects() {
		delete(gone, idOf(change.New))
	}
	a.apply(c.Objects())
	for id, o := range gone {
		a.Delete(o)
		delete(a.objects, id)
	}
}

func (a *apiServer) apply(changes []policytest.Change) {
	for _, c := range changes {
		if c.New == nil {
			a.Delete(c.Old.(apitest.Object))
			delete(a.objects, idOf(c.Old))
			continue
		}
		// The generator's nodes have other addresses than the lab's.
		if _, ok := c.New.(*corev1.Node); !ok {
			a.Set(c.New.(apitest.Object))
			a.objects[idOf(c.New)] = c.New.(apitest.Object)
		}
	}
}

func idOf(o metav1.Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }

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
				if slices.Contains([]string{"watch", "stream"}, r.Verb) {
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
