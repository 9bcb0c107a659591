package specs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2/types"
)

// List returns the full names of all sig-network specs in program.
func List(ctx context.Context, program string) ([]string, error) {
	dir, err := os.MkdirTemp("", "specs")
	if err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "list.json")
	out, err := exec.CommandContext(ctx, program, "--ginkgo.dry-run", "--ginkgo.succinct", "--ginkgo.no-color",
		`--ginkgo.focus=\[sig-network\]`, "--ginkgo.json-report="+file, "--provider=local").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list specs: %w: %s", err, bytes.TrimSpace(out))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	var reports []types.Report
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, fmt.Errorf("list specs: %w", err)
	}
	var names []string
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if name := spec.FullText(); spec.LeafNodeType == types.NodeTypeIt && OfNetwork(name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
