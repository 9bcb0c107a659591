package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// LinkKubectl links cmd/controlplane into dir as kubectl.
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
