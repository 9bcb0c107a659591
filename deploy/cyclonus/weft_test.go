package cyclonus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

type daemon struct {
	node     *lab.Node
	commands [][]string
	running  []*lab.Process
}

// newDaemon starts `weft run --network-policy`, or the aggregator and `weft policy` apart.
func newDaemon(node *lab.Node, apart bool, from ...string) (*daemon, error) {
	dir := filepath.Join(runDir, node.Name())
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o750); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", node.Name(), err)
	}
	weft := tests.Path("weft")
	socket := []string{"--socket", filepath.Join(dir, "weft.sock")}
	quiet := []string{"--metrics-bind-address", "", "--healthz-bind-address", ""}
	follow := append([]string{"--hostname-override", node.Name()}, from...)
	state := []string{"--state-dir", filepath.Join(dir, "state")}
	var cidrs []string
	for _, p := range lab.ClusterCIDRs() {
		cidrs = append(cidrs, p.String())
	}
	d := &daemon{node: node}
	if apart {
		d.commands = [][]string{
			join([]string{weft, "aggregator", "--metrics-bind-address", ""}, socket, state),
			join([]string{weft, "policy"}, socket, follow, quiet),
		}
	} else {
		d.commands = [][]string{join([]string{weft, "run", "--network-policy", "--cluster-cidr", strings.Join(cidrs, ",")}, socket, state, follow, quiet)}
	}
	return d, nil
}

func join(parts ...[]string) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (d *daemon) start() error {
	d.running = nil
	for i, argv := range d.commands {
		name := fmt.Sprintf("%s-%d", d.node.Name(), i)
		p, err := d.node.Start(name, filepath.Join(logDir, name+".log"), nil, argv...)
		if err != nil {
			return err
		}
		d.running = append(d.running, p)
	}
	return nil
}

// stop sends SIGKILL or SIGTERM.
func (d *daemon) stop(kill bool) error {
	var errs []error
	for _, p := range d.running {
		if kill {
			errs = append(errs, p.Kill())
		} else {
			errs = append(errs, p.Stop(10*time.Second))
		}
	}
	return errors.Join(errs...)
}

// err reports an ended process, with the end of its log.
func (d *daemon) err() error {
	var errs []error
	for _, p := range d.running {
		if err := p.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s on %s: %w\n%s", p.Name, d.node.Name(), err, p.Tail(20)))
		}
	}
	return errors.Join(errs...)
}

// manifestDir has the objects for all nodes.
const manifestDir = runDir + "/manifests"

// api is the directory of manifests, in place of an API server.
type api struct {
	// contents by name
	files map[string]string
}

func newAPI(n *network) (*api, error) {
	for _, dir := range []string{manifestDir, logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make directory: %w", err)
		}
	}
	a := &api{files: map[string]string{}}
	for _, node := range n.lab.Nodes {
		o := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: node.Name(), UID: types.UID(node.Name())}}
		for _, p := range node.PodCIDRs {
			o.Spec.PodCIDRs = append(o.Spec.PodCIDRs, p.String())
		}
		o.Spec.PodCIDR = o.Spec.PodCIDRs[0]
		for _, addr := range node.Addresses.All() {
			o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
		}
		if err := a.put("node-"+node.Name(), o); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// put atomically writes a file if it differs.
func (a *api) put(name string, o any) error {
	content, err := yaml.Marshal(o)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if a.files[name] == string(content) {
		return nil
	}
	a.files[name] = string(content)
	draft := filepath.Join(runDir, "draft")
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(draft, filepath.Join(manifestDir, name+".yaml"))
}

// set replaces all objects except the nodes.
func (a *api) set(c *policytest.Cluster) error {
	keep := map[string]bool{}
	for _, change := range c.Objects() {
		o := change.New
		// A manifest must have the kind; the generator's objects do not.
		switch p := o.(type) {
		case *networkingv1.NetworkPolicy:
			p = p.DeepCopy()
			p.TypeMeta = metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}
			o = p
		case *v1alpha2.ClusterNetworkPolicy:
			p = p.DeepCopy()
			p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "ClusterNetworkPolicy"}
			o = p
		}
		kind := reflect.TypeOf(o).Elem().Name()
		name := fmt.Sprintf("object-%s-%s-%s", kind, o.GetNamespace(), o.GetName())
		keep[name] = true
		if err := a.put(name, o); err != nil {
			return err
		}
	}
	for name := range a.files {
		if strings.HasPrefix(name, "object-") && !keep[name] {
			delete(a.files, name)
			if err := os.Remove(filepath.Join(manifestDir, name+".yaml")); err != nil {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}

type world struct {
	*network
	api         *api
	daemons     []*daemon
	connections connections
}

func newWorld(n *network) (*world, error) {
	w := &world{network: n, connections: connections{network: n, open: map[flow]net.Conn{}}}
	var err error
	if w.api, err = newAPI(n); err != nil {
		return nil, errors.Join(err, w.close())
	}
	for i, node := range n.lab.Nodes {
		d, err := newDaemon(node, i == 1, "--manifests", manifestDir)
		if err == nil {
			w.daemons = append(w.daemons, d)
			err = d.start()
		}
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	if err := w.tracked(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// Connection tracking begins with weft's tables. An earlier flow may look as if its answer had begun
// it.
func (w *world) tracked() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, d := range w.daemons {
		for _, family := range []string{"ip", "ip6"} {
			for {
				_, err := d.node.Run(ctx, "nft", "list", "table", family, "weft-policy")
				if err == nil {
					break
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return errors.Join(err, d.err())
				}
			}
		}
	}
	return nil
}

func (w *world) close() error {
	w.connections.close()
	var errs []error
	for _, d := range w.daemons {
		errs = append(errs, d.stop(false))
	}
	return errors.Join(errs...)
}

func (w *world) err() error {
	var errs []error
	for _, d := range w.daemons {
		errs = append(errs, d.err())
	}
	return errors.Join(errs...)
}

func (w *world) rulesets(ctx context.Context) string {
	var b strings.Builder
	for _, d := range w.daemons {
		for _, family := range []string{"ip", "ip6"} {
			out, err := d.node.Run(ctx, "nft", "list", "table", family, "weft-policy")
			fmt.Fprintf(&b, "--- %s\n%s%v\n", d.node.Name(), out, err)
		}
	}
	return b.String()
}
