package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// user is a cluster administrator at a shell, with kubectl, helm and weft on the PATH, at the top of
// the tree.
type user struct {
	host            *lab.Namespace
	dir, kubeconfig string
}

// dir is the user's home.
func newUser(host *lab.Namespace, dir, kubeconfig string) (*user, error) {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, fmt.Errorf("make home of user: %w", err)
	}
	if _, err := cluster.LinkKubectl(program("controlplane"), bin); err != nil {
		return nil, err
	}
	for _, name := range []string{"helm", "weft"} {
		target, err := filepath.Abs(program(name))
		if err == nil {
			err = os.Symlink(target, filepath.Join(bin, name))
		}
		if err != nil {
			return nil, fmt.Errorf("link program of user: %w", err)
		}
	}
	return &user{host: host, dir: dir, kubeconfig: kubeconfig}, nil
}

// types runs a script as a shell does, and returns all of its output.
func (u *user) types(ctx context.Context, script string) (string, error) {
	return u.host.Run(ctx, "env", "HOME="+u.dir, "KUBECONFIG="+u.kubeconfig, "PATH="+filepath.Join(u.dir, "bin")+":"+os.Getenv("PATH"),
		"bash", "-euo", "pipefail", "-c", "exec 2>&1; cd "+repository+"; "+script)
}
