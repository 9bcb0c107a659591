package kubeproxy

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Write writes the configuration in force to a file as YAML, as kube-proxy's
// --write-config-to does. It replaces a file that exists.
func (s *Settings) Write(file string) error {
	data, err := yaml.Marshal(s.Configuration)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
