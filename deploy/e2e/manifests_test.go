package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// deployManifests: the API server accepts every file of deploy/kubernetes, and weft accepts the command
// lines of the manifests and systemd units.
func deployManifests(t *testing.T, e *env) {
	variants, err := filepath.Glob("../kubernetes/*/weft.yaml")
	if err != nil || len(variants) == 0 {
		t.Fatalf("find manifests: %v, %d files", err, len(variants))
	}
	for _, path := range variants {
		variant := filepath.Base(filepath.Dir(path))
		for _, file := range []string{"rbac.yaml", "weft.yaml"} {
			objects, err := manifests(filepath.Join(variant, file))
			if err == nil && len(objects) == 0 {
				err = errors.New("nothing in it")
			}
			if err == nil {
				err = apply(e.ctx, e.cluster, true, objects...)
			}
			if err != nil {
				t.Errorf("%s/%s: %v", variant, file, err)
			}
		}
		set, err := daemonSet(filepath.Join(variant, "weft.yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, c := range slices.Concat(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers) {
			expand := strings.NewReplacer("$(NODE_NAME)", "node-1")
			var args []string
			for _, a := range c.Args {
				args = append(args, expand.Replace(a))
			}
			e.understood(t, variant+" "+c.Name, args)
		}
	}
	units, err := filepath.Glob("../systemd/*.service")
	if err != nil || len(units) == 0 {
		t.Fatalf("find units: %v, %d files", err, len(units))
	}
	for _, path := range units {
		args, err := execStart(path)
		if err != nil {
			t.Error(err)
			continue
		}
		e.understood(t, path, args)
	}
}

// With --help, unknown flags and invalid values are still errors.
func (e *env) understood(t *testing.T, where string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, 3*time.Minute)
	defer cancel()
	if _, err := e.lab.Control.Run(ctx, binary("weft"), append(slices.Clone(args), "--help")...); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

// execStart returns a unit's arguments, with the unit's own variables, without variables for
// administrators.
func execStart(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var variables []string
	for line := range strings.Lines(string(b)) {
		if setting, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment="); ok {
			name, value, _ := strings.Cut(setting, "=")
			variables = append(variables, "$"+name, value)
		}
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
		if !ok {
			continue
		}
		args := strings.Fields(strings.NewReplacer(variables...).Replace(command))[1:]
		return slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "$") }), nil
	}
	return nil, fmt.Errorf("read %s: no ExecStart", path)
}

// deployProbes: the node that runs as the manifest says answers the manifest's health checks.
func deployProbes(t *testing.T, e *env) {
	set, err := daemonSet("split/weft.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := e.daemons[1]
	for _, c := range set.Spec.Template.Spec.Containers {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe == nil {
				continue
			}
			get := probe.HTTPGet
			if err := d.get(e, fmt.Sprintf("http://%s:%d%s", get.Host, get.Port.IntValue(), get.Path)); err != nil {
				t.Errorf("container %s: %v", c.Name, err)
			}
		}
	}
}

// Any status but 200 is an error.
func (d *daemon) get(e *env, url string) error {
	c := http.Client{Transport: &http.Transport{DialContext: d.node.Dial, DisableKeepAlives: true}, Timeout: answerTime}
	req, err := http.NewRequestWithContext(e.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s: %s", url, res.Status, body)
	}
	return nil
}
