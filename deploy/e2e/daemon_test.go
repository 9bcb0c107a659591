package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// daemon is weft on one node: one process or several.
type daemon struct {
	node     *lab.Node
	socket   string
	programs []program
	running  []*lab.Process
}

type program struct {
	name string
	argv []string
}

// patience bounds weft's end after SIGTERM.
const patience = 3 * time.Minute

// newDaemon starts `weft run`, or the processes of the DaemonSet with exactly its arguments, users and
// capabilities.
func newDaemon(n *lab.Node, kubeconfig string, single bool) (*daemon, error) {
	dir := filepath.Join(runDir, n.Name())
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o750); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", n.Name(), err)
	}
	d := &daemon{node: n, socket: filepath.Join(dir, "weft.sock")}
	if single {
		d.programs = []program{{name: n.Name() + "-weft", argv: []string{
			binary("weft"), "run", "--kubeconfig", kubeconfig, "--hostname-override", n.Name(),
			"--cluster-cidr", lab.Join(lab.ClusterCIDRs()), "--socket", d.socket, "--state-dir", filepath.Join(dir, "state"),
			"--metrics-bind-address", "", "--healthz-bind-address", "",
		}}}
		return d, nil
	}
	set, err := daemonSet("split/weft.yaml")
	if err != nil {
		return nil, err
	}
	if err := shareWithFrontends(dir, kubeconfig); err != nil {
		return nil, fmt.Errorf("make files of %s: %w", n.Name(), err)
	}
	replace := strings.NewReplacer(
		"/etc/weft", dir, "/run/weft", dir, "/var/lib/weft", filepath.Join(dir, "state"), "$(NODE_NAME)", n.Name())
	for _, c := range set.Spec.Template.Spec.Containers {
		argv := append(confine(&c, set.Spec.Template.Spec.SecurityContext), binary("weft"))
		for _, a := range c.Args {
			argv = append(argv, replace.Replace(a))
		}
		if c.Name == "services" {
			// A pod finds the API server by its service account's files; a process by a kubeconfig.
			argv = append(argv, "--kubeconfig", kubeconfig)
		}
		d.programs = append(d.programs, program{name: n.Name() + "-" + c.Name, argv: argv})
	}
	return d, nil
}

// shareWithFrontends lets the frontends' users enter dir, make their sockets in the directory beside
// it, and read the kubeconfig.
func shareWithFrontends(dir, kubeconfig string) error {
	objects, err := manifests("split/weft.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if text, ok, err := unstructured.NestedString(o.Object, "data", "config.yaml"); ok || err != nil {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
			services := dir + "-services"
			return errors.Join(err, os.Chmod(runDir, 0o755), os.Chmod(dir, 0o755), os.Chmod(kubeconfig, 0o644), //nolint:gosec // for the time of the test
				os.MkdirAll(services, 0o755), os.Chmod(services, 0o777)) //nolint:gosec // as an emptyDir
		}
	}
	return errors.New("split/weft.yaml has no configuration")
}

// confine runs a command with the container's user, groups and capabilities.
func confine(c *corev1.Container, pod *corev1.PodSecurityContext) []string {
	set := "-all"
	uid, gid := *pod.RunAsUser, *pod.RunAsGroup
	if s := c.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			uid, gid = *s.RunAsUser, *s.RunAsGroup
		}
		if s.Capabilities != nil {
			for _, added := range s.Capabilities.Add {
				set += ",+" + strings.ToLower(string(added))
			}
		}
	}
	return []string{
		"setpriv", "--no-new-privs", "--reuid", fmt.Sprint(uid), "--regid", fmt.Sprint(gid), "--groups", fmt.Sprint(pod.SupplementalGroups[0]),
		"--bounding-set", set, "--inh-caps", "-all",
	}
}

func daemonSet(file string) (*appsv1.DaemonSet, error) {
	objects, err := manifests(file)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		var set appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &set, true); err != nil {
			return nil, fmt.Errorf("read DaemonSet of %s: %w", file, err)
		}
		return &set, nil
	}
	return nil, fmt.Errorf("read %s: no DaemonSet in it", file)
}

func (d *daemon) start() error {
	d.running = nil
	for _, p := range d.programs {
		proc, err := d.node.Start(p.name, filepath.Join(logDir, p.name+".log"), nil, p.argv...)
		if err != nil {
			return err
		}
		d.running = append(d.running, proc)
	}
	return nil
}

// kill acts as a crash.
func (d *daemon) kill() error {
	var errs []error
	for _, p := range d.running {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

func (d *daemon) stop() error {
	var errs []error
	for _, p := range d.running {
		errs = append(errs, p.Stop(patience))
	}
	return errors.Join(errs...)
}

func (d *daemon) err() error {
	var errs []error
	for _, p := range d.running {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

func (d *daemon) tails(lines int) string {
	var b strings.Builder
	for _, p := range d.running {
		fmt.Fprintf(&b, "--- %s\n%s\n", p.Name, p.Tail(lines))
	}
	return b.String()
}

// with handles
func (d *daemon) ruleset(ctx context.Context) (string, error) {
	return d.node.Run(ctx, "nft", "-a", "list", "ruleset")
}
