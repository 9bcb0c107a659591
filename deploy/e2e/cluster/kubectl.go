package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// LinkKubectl makes a link to cmd/controlplane in dir by which it is kubectl, and returns its path.
func LinkKubectl(binary, dir string) (string, error) {
	target, err := filepath.Abs(binary)
	if err != nil {
		return "", fmt.Errorf("link kubectl: %w", err)
	}
	link := filepath.Join(dir, "kubectl")
	if err := os.RemoveAll(link); err != nil {
		return "", fmt.Errorf("link kubectl: %w", err)
	}
	if err := os.Symlink(target, link); err != nil {
		return "", fmt.Errorf("link kubectl: %w", err)
	}
	return link, nil
}
